"""Resources: memory, workers, shared memory, descriptors, cores, network, disk. Provoked for real where that is safe."""

import contextlib
import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from perfgate import limits
from perfgate.faults import recognise
from perfgate.watch import SHORTEST_SECONDS
from workloads import cores
from workloads.models import CATALOGUE, MLP
from workloads.optimizations import Workers
from workloads.steps.loading import WORKER_TIMEOUT_SECONDS

CPU = torch.device("cpu")
RECOGNISING = """
import resource, sys
import torch
from perfgate.faults import recognise
def told(act):
    try:
        act()
    except BaseException as error:
        fault = recognise(error)
        print(fault.code, fault.poisons, fault.reason) if fault else print("unrecognised", repr(error))
"""


class Samples(Dataset):
    """Eight samples, each made by a function."""

    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 8

    def __getitem__(self, index):
        self.make()
        return torch.zeros(4)


def fault_of(make, **arguments):
    """What is recognised where loader workers run ``make``, and the exception itself."""
    with pytest.raises(Exception) as caught:
        list(DataLoader(Samples(make), num_workers=2, **arguments))
    return recognise(caught.value), caught.value


def child(code, *, prefix=()):
    """The output of a process that runs ``code``."""
    command = [*prefix, sys.executable, "-c", RECOGNISING + code]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=100).stdout


def test_rs_01_out_of_gpu_memory_is_a_fault_that_poisons():
    """Asked, free, total and other processes are told, and the process is to be replaced."""
    fault = recognise(
        torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB "
            "is free. Process 12 has 7.00 GiB memory in use."
        )
    )
    assert fault.code == "out-of-memory"
    assert fault.poisons
    assert not fault.ends_session
    for part in ("2.00 GiB", "1.00 GiB free of 8.00 GiB", "7.00 GiB (pid 12)"):
        assert part in fault.reason


def test_rs_02_out_of_host_memory_in_torch_and_in_python():
    """The address space of a child is limited, and both ways to say so are recognised."""
    said = child(
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))\n"
        "told(lambda: torch.empty(2**30))\n"
        "told(lambda: bytearray(2**31))\n"
    )
    first, second = said.splitlines()
    assert first.startswith("out-of-memory True out of host memory (asked for 4.00 GiB)")
    assert second.startswith("out-of-memory True out of host memory")


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"memory.max": "max\n"}, None),
        ({"memory.max": "2147483648\n"}, 2**31),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ({"memory/memory.limit_in_bytes": "1073741824\n"}, 2**30),
        ({"memory.max": "max\n", "a/memory.max": "4096000\n", "a/b/memory.max": "max\n"}, 4096000),
        ({}, None),
    ],
)
def test_rs_02_the_memory_limit_of_the_control_group(tmp_path, files, limit):
    """Of both versions, and of every group around this process."""
    proc = with_files(tmp_path, {**files, "proc/self/cgroup": "0::/a/b\n"}) / "proc"
    assert limits.memory_limit_bytes(tmp_path, proc) == limit


def with_files(folder, files):
    """The folder with these files in it."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def test_rs_03_a_killed_loader_worker():
    """With its signal, the number of workers, and who may have killed it."""
    fault, _ = fault_of(lambda: os.kill(os.getpid(), signal.SIGKILL))
    assert fault.code == "loader-died"
    assert "killed by signal: Killed" in fault.reason
    assert "num_workers=2" in fault.reason  # fails where torch renames what it is read from
    assert "OOM killer" in fault.reason
    assert "--shm-size" in fault.reason
    assert not fault.poisons


def test_rs_04_what_a_loader_worker_raises_is_the_benchmark_s_own():
    """With its original traceback, once."""

    def wrong():
        raise ValueError("bad sample")

    fault, error = fault_of(wrong)
    assert fault is None
    assert isinstance(error, ValueError)
    assert str(error).count("Original Traceback") == 1


def test_rs_04_memory_that_a_loader_worker_lacks_is_a_fault():
    """As it would be in the process itself."""
    fault, _ = fault_of(lambda: torch.empty(2**60))
    assert fault.code == "out-of-memory"
    assert "asked for" in fault.reason


def test_rs_05_a_loader_worker_that_hangs():
    """It does not hang the benchmark."""
    fault, _ = fault_of(lambda: time.sleep(2), timeout=1)
    assert fault.code == "loader-hung"
    assert "of 2 (num_workers=2) gave nothing for 1 s" in fault.reason


def test_rs_05_every_loading_step_has_a_timeout_below_the_limit_of_a_benchmark():
    """Else the whole process would be killed for one worker."""
    step = MLP(batch_size=4, width=8, image_size=4).loading_step(Workers(1))
    step.build(CPU)
    assert step._loader.timeout == WORKER_TIMEOUT_SECONDS
    assert WORKER_TIMEOUT_SECONDS < SHORTEST_SECONDS


SHARING = """
from torch.utils.data import DataLoader, Dataset
class Large(Dataset):
    def __len__(self): return 4
    def __getitem__(self, index): return torch.zeros(2**20)
told(lambda: list(DataLoader(Large(), num_workers=1, batch_size=4)))
"""


def test_rs_06_shared_memory_that_is_too_small():
    """In a mount namespace of its own, /dev/shm has 8 MB."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this user may not mount anything")
    mounted = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=8m tmpfs /dev/shm && exec "$@"', "sh"]
    said = child(SHARING, prefix=mounted)
    assert said.startswith("shared-memory False loader workers ran out of shared memory in /dev/shm; it has 8.00 MiB")
    assert "--shm-size=8g" in said


def test_rs_06_little_shared_memory_is_said_before_measuring(tmp_path):
    """Where the suite needs more than there is."""
    total, free = limits.shared_memory(tmp_path)
    assert total >= free > 0
    (said,) = limits.shortages(free * 2, shm=tmp_path, open_files=4096, cgroups=tmp_path, proc=tmp_path)
    assert "docker run --shm-size=8g" in said
    assert not limits.shortages(1, shm=tmp_path, open_files=4096, cgroups=tmp_path, proc=tmp_path)
    assert not limits.shortages(1, shm=tmp_path / "absent", open_files=4096, cgroups=tmp_path, proc=tmp_path)


def test_rs_07_too_many_open_files():
    """``ulimit -n 24`` in a child."""
    said = child(
        "from torch.utils.data import DataLoader\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))\n"
        "told(lambda: list(DataLoader([torch.zeros(1)] * 8, num_workers=8)))\n"
    )
    assert said.startswith("open-files False too many open files (the limit is 24): ulimit -n")
    assert "set_sharing_strategy" in said


def test_rs_07_a_low_limit_of_open_files_is_said_before_measuring(tmp_path):
    """With the command that raises it."""
    nothing = {"shm": tmp_path, "cgroups": tmp_path, "proc": tmp_path}
    (said,) = limits.shortages(open_files=64, **nothing)
    assert said == "this process may open 64 files, fewer than the 256 wanted: ulimit -n 4096"
    assert not limits.shortages(open_files=256, **nothing)


def test_rs_08_no_more_threads_or_processes():
    """Threads take address space, which a child has little of; a fork that is refused says EAGAIN."""
    said = child(
        "import threading, time\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))\n"
        "start = lambda: threading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n"
        "told(lambda: [start() for _ in range(600)])\n"
    )
    assert said.startswith("processes False no more processes or threads")
    assert "ulimit -u" in said
    assert recognise(BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")).code == "processes"


QUOTAS = [
    ({"cpu.max": "max 100000\n"}, 64),
    ({"cpu.max": "150000 100000\n"}, 2),
    ({"cpu.max": "50000 100000\n"}, 1),
    ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 64),
    ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
    ({}, 64),
]


@pytest.mark.parametrize(("files", "expected"), QUOTAS)
def test_rs_09_cores_are_what_affinity_and_quota_leave(tmp_path, monkeypatch, files, expected):
    """Of both versions of control groups; the workloads ask for themselves and agree."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    with_files(tmp_path, files)
    assert limits.effective_cores(tmp_path, tmp_path) == expected
    assert cores.usable_cores(tmp_path) == expected


def test_rs_09_the_quota_of_a_group_around_this_one_counts(tmp_path, monkeypatch):
    """Systemd sets it on slices."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)), raising=False)
    files = {"a.slice/cpu.max": "200000 100000\n", "a.slice/b.scope/cpu.max": "max 100000\n"}
    with_files(tmp_path, {**files, "proc/self/cgroup": "0::/a.slice/b.scope\n"})
    assert limits.effective_cores(tmp_path, tmp_path / "proc") == 2
    nested = with_files(
        tmp_path / "v1",
        {
            "cpu/docker/x/cpu.cfs_quota_us": "400000\n",
            "cpu/docker/x/cpu.cfs_period_us": "100000\n",
            "proc/self/cgroup": "3:cpu,cpuacct:/docker/x\n2:memory:/docker/x\n",
        },
    )
    assert limits.effective_cores(nested, nested / "proc") == 4


def test_rs_09_a_quota_below_the_cores_in_sight_is_said(tmp_path, monkeypatch):
    """A process that uses more is stopped for a while, in the middle of a round."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    with_files(tmp_path, {"cpu.max": "150000 100000\n"})
    (said,) = limits.shortages(open_files=4096, cgroups=tmp_path, proc=tmp_path)
    assert "1.5 of the 8 cores" in said
    assert "--cpuset-cpus" in said


def test_rs_09_more_workers_than_cores_is_a_skip_with_its_reason(monkeypatch):
    """With one core, two workers only take turns."""
    monkeypatch.setattr("workloads.optimizations.dataloading.usable_cores", lambda: 1)
    reason = MLP().loading_step(Workers(2)).unsuitable(CPU)
    assert reason == "2 loader workers need 2 usable cores, this process has 1"


def test_rs_10_memory_pressure_and_swap_are_read(tmp_path):
    """From the kernel's files."""
    with_files(
        tmp_path,
        {
            "pressure/memory": "some avg10=3.20 avg60=1.00 avg300=0.10 total=1\nfull avg10=0.00 avg60=0 avg300=0\n",
            "meminfo": "MemTotal: 1000 kB\nSwapTotal:  2048 kB\nSwapFree: 1024 kB\n",
        },
    )
    readings = limits.memory_readings(tmp_path)
    assert readings == {"memory_pressure": "3.20", "swap_used_bytes": str(2**20)}
    assert "waited for memory in 3.20 % of the time" in limits.strained(readings)


@pytest.mark.parametrize(
    ("readings", "said"),
    [
        ({}, ""),
        ({"memory_pressure": "unknown", "swap_used_bytes": "unknown"}, ""),
        ({"memory_pressure": "0.10", "swap_used_bytes": "1048576"}, ""),
        ({"memory_pressure": "unknown", "swap_used_bytes": "1048576"}, "1.00 MiB of swap are in use"),
        ({"memory_pressure": "1.00", "swap_used_bytes": "0"}, "waited for memory"),
        ({"memory_pressure": "nonsense", "swap_used_bytes": "0"}, ""),
    ],
)
def test_rs_10_what_makes_a_run_noisy(readings, said):
    """Pressure now; swap only where pressure is unknown."""
    found = limits.strained(readings)
    assert said in found
    assert bool(said) == bool(found)


def test_rs_10_absent_files_are_unknown(tmp_path):
    """As on macOS, and in old containers."""
    assert limits.memory_readings(tmp_path) == {"memory_pressure": "unknown", "swap_used_bytes": "unknown"}


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No socket can be made, and no cache of earlier downloads is there."""

    def refuse(*arguments, **options):
        raise AssertionError("a workload asked for the network")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    for name in ("HOME", "XDG_CACHE_HOME", "TORCH_HOME", "PERFGATE_DATA"):
        monkeypatch.setenv(name, str(tmp_path))


@pytest.mark.parametrize("name", CATALOGUE)
def test_rs_11_every_default_workload_runs_without_a_network(offline, name):
    """A step of two samples, and its data source."""
    workload = type(CATALOGUE[name])(batch_size=2)
    step = workload.train_step()
    step.build(CPU)
    step.run()
    assert torch.isfinite(step.last_value())
    assert len(workload.dataset(train=True)) > 0


COMPILING = """
import os
told(lambda: torch.compile(lambda x: x.sin() + x.cos())(torch.zeros(200, 3)))
"""


def test_rs_12_a_cache_folder_that_cannot_be_made(monkeypatch):
    """Named, with the variable that names another."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/proc/nope")
    said = child(COMPILING)
    assert said.startswith("compile-cache False the folder of compiled code, /proc/nope, cannot be used (no such file")
    assert "TORCHINDUCTOR_CACHE_DIR" in said


def test_rs_12_a_cache_folder_on_a_full_disk(tmp_path, monkeypatch):
    """In a mount namespace of its own."""
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this user may not mount anything")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    fill = f"mount -t tmpfs -o size=64k tmpfs {tmp_path} && dd if=/dev/zero of={tmp_path}/x bs=1k count=64 2> /dev/null"
    said = child(COMPILING, prefix=["unshare", "-rm", "sh", "-c", f'{fill}; exec "$@"', "sh"])
    assert said.startswith("compile-cache False")
    assert "no space left on device" in said


def test_rs_12_a_full_disk_elsewhere_is_named_too(tmp_path):
    """``/dev/full`` is always full."""
    with pytest.raises(OSError, match="No space left") as caught, open("/dev/full", "wb", buffering=0) as file:  # noqa: PTH123
        file.write(b"x")
    assert recognise(caught.value).code == "disk-full"
    with contextlib.suppress(OSError):
        (tmp_path / "x").unlink()


def test_rs_12_the_cache_of_a_run_is_its_own(project, monkeypatch):
    """Compile times are cold in every run, unless the user chose the folder."""
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)  # torch sets it where it was imported already
    (project.path / "benches" / "test_tiny.py").write_text(
        "import os\ndef test_cache(measure):\n"
        "    from workloads import MLP\n"
        "    assert 'compile-cache' in os.environ['TORCHINDUCTOR_CACHE_DIR']\n"
        "    measure(MLP(batch_size=4, width=8, image_size=4).train_step())\n",
        encoding="utf-8",
    )
    project.runpytest("benches", "--perfgate-smoke").assert_outcomes(passed=1)
