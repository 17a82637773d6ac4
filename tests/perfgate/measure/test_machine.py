"""The machine and this process, as a run tells them; the host; the canary; energy."""

from types import SimpleNamespace

import pytest
import torch

from perfgate.errors import SettingsError
from perfgate.measure import environment, host
from perfgate.measure.canary import read_canary
from perfgate.measure.energy import energy_per_step
from perfgate.measure.nvml import Gpu, Unavailable
from tests.perfgate.measure.fakes import FakeNVML


def test_energy_is_the_counters_difference_per_step():
    """Over windows of at least half a second."""
    counter = iter([0, 100_000, 100_000, 300_000, 300_000, 600_000])  # millijoules
    gpu = Gpu(FakeNVML(nvmlDeviceGetTotalEnergyConsumption=lambda: next(counter)), "x")
    runs = []
    joules = energy_per_step(lambda: runs.append(1), lambda: runs.append("wait"), gpu, 0.05)
    assert joules == (10.0, 20.0, 30.0)
    assert runs == ([1] * 10 + ["wait"]) * 3


def test_of_a_twin_one_window_is_enough():
    """It is shown beside the variant's, and each window costs half a second."""
    counter = iter([0, 100_000])
    gpu = Gpu(FakeNVML(nvmlDeviceGetTotalEnergyConsumption=lambda: next(counter)), "x")
    assert energy_per_step(lambda: None, lambda: None, gpu, 0.05, windows=1) == (10.0,)


def test_without_a_counter_energy_is_unknown():
    """Not zero."""
    gpu = Gpu(FakeNVML(nvmlDeviceGetTotalEnergyConsumption=FakeNVML.NVMLError("not supported")), "x")
    runs = []
    assert energy_per_step(lambda: runs.append(1), lambda: None, gpu, 1.0) == ()
    assert not runs  # a window of half a second would be wasted


@pytest.mark.parametrize(
    ("hard", "slug"),
    [
        ({"cpu": "AMD EPYC", "cores": "2", "architecture": "x86_64"}, "amd-epyc-2c-x86-64"),
        (
            {"cpu": "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "cores": "28", "architecture": "x86_64"},
            "intel-xeon-e5-2680-v4-28c-x86-64",
        ),
        (
            {
                "gpu": "NVIDIA H200",
                "gpu_memory": "140 GiB",
                "gpu_count": "1",
                "mig": "off",
                "cpu": "Xeon",
                "cores": "16",
                "architecture": "x86_64",
            },
            "nvidia-h200-140-1x-xeon-16c-x86-64",
        ),
        (
            {
                "gpu": "H100",
                "gpu_memory": "10 GiB",
                "gpu_count": "1",
                "mig": "1g.10gb",
                "cpu": "X",
                "cores": "4",
                "architecture": "a",
            },
            "h100-10-1x-mig-1g-10gb-x-4c-a",
        ),
        (
            {
                "gpu": "H100 MIG 1g.10gb",
                "gpu_memory": "10 GiB",
                "gpu_count": "1",
                "mig": "1g.10gb",
                "cpu": "X",
                "cores": "4",
                "architecture": "a",
            },
            "h100-mig-1g-10gb-10-1x-x-4c-a",
        ),
        (
            {
                "gpu": "H100",
                "gpu_memory": "80 GiB",
                "gpu_count": "1",
                "mig": "on",
                "cpu": "X",
                "cores": "4",
                "architecture": "a",
            },
            "h100-80-1x-mig-x-4c-a",
        ),
        ({"cpu": "../../etc" + "x" * 90, "cores": "2", "architecture": "x"}, ("etc" + "x" * 90)[:64]),
    ],
)
def test_a_machines_slug_is_readable_and_safe(hard, slug):
    """It names a folder."""
    assert environment.slug(hard) == slug


def test_describing_this_machine():
    """Hard fields decide, soft ones inform."""
    machine = environment.describe_machine(torch.device("cpu"), None)
    assert set(machine.hard) == {"cpu", "cores", "architecture"}
    assert machine.soft["torch"] == torch.__version__


def test_a_gpu_machine_has_its_gpu_in_the_hard_fields(monkeypatch):
    """Model, memory, count and partitioning."""
    properties = SimpleNamespace(name="NVIDIA H200", total_memory=140 * 2**30, uuid="77")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    machine = environment.describe_machine(torch.device("cuda", 0), Gpu(FakeNVML(), "77"))
    assert machine.hard["gpu"] == "NVIDIA H200"
    assert machine.hard["mig"] == "off"
    assert machine.soft["driver"] == "580.1"


def test_a_worker_states_the_whole_machine(monkeypatch):
    """It sees only its share of cores and GPUs, and is no other machine for that."""
    properties = SimpleNamespace(name="NVIDIA H200", total_memory=140 * 2**30, uuid="77")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    machine = environment.describe_machine(torch.device("cuda", 0), None, cores=64, gpu_count=8)
    assert (machine.hard["cores"], machine.hard["gpu_count"]) == ("64", "8")
    assert "-8x-" in machine.slug


def test_nvml_is_asked_for_torchs_own_uuid(monkeypatch):
    """And for nothing on a CPU."""
    asked = []
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="77"))
    monkeypatch.setattr(environment, "find_gpu", lambda uuid: asked.append(uuid) or "gpu")
    assert environment.gpu_of(torch.device("cuda", 0)) == "gpu"
    assert asked == ["77"]
    assert environment.gpu_of(torch.device("cpu")) is None


def test_cuda_without_a_gpu_is_an_error(monkeypatch):
    """With the remedy."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert environment.choose_device("auto").type == "cpu"
    with pytest.raises(SettingsError, match="nvidia-smi"):
        environment.choose_device("cuda")


def test_why_torch_sees_no_gpu(monkeypatch):
    """In its own words, with the driver's version where it is about that."""

    def too_old():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\nUpdate it")

    monkeypatch.setattr(torch.cuda, "init", too_old)
    monkeypatch.setattr(environment, "module_version", lambda: "470.57")
    assert environment.why_no_gpu().endswith("too old (found version 11040); the driver is 470.57")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    assert "CUDA_VISIBLE_DEVICES" in environment.why_no_gpu()


def test_a_process_says_what_changes_its_timing(tmp_path, monkeypatch):
    """Huge pages, threads, waiting; and nothing else of the environment."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    process = environment.describe_process(torch.device("cpu"), None, tmp_path, "src/workloads")
    assert process.tunables["huge_pages"] == "on"
    assert process.threads == torch.get_num_threads()
    assert "hunter2" not in str(process)
    monkeypatch.delenv("GLIBC_TUNABLES")
    assert (
        environment.describe_process(torch.device("cpu"), None, tmp_path, "src/workloads").tunables["huge_pages"]
        == "off"
    )


def test_a_process_says_with_how_many_it_measures_side_by_side(tmp_path, monkeypatch):
    """Where it is told."""
    device = torch.device("cpu")
    monkeypatch.delenv("PERFGATE_WORKERS", raising=False)
    assert "workers" not in environment.describe_process(device, None, tmp_path, "src/workloads").tunables
    monkeypatch.setenv("PERFGATE_WORKERS", "4")
    assert environment.describe_process(device, None, tmp_path, "src/workloads").tunables["workers"] == "4"


def test_a_process_names_its_gpu(tmp_path):
    """And the reason where NVML tells nothing of it."""
    device = torch.device("cpu")
    readings = environment.describe_process(device, Gpu(FakeNVML(), "7"), tmp_path, "src/workloads").readings
    assert (readings["gpu"], readings["temperature"]) == ("GPU-7", "45 C")
    assert "nvml" not in readings
    blind = Unavailable("7", "pip install it")
    readings = environment.describe_process(device, blind, tmp_path, "src/workloads").readings
    assert (readings["gpu"], readings["temperature"], readings["nvml"]) == ("GPU-7", "unknown", "pip install it")


def kernel(root, **files):
    """A root folder with these files; ``__`` stands for a slash."""
    for name, text in files.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def test_frequencies_as_the_kernel_tells_them(tmp_path):
    """Intel says "no turbo", everybody else "boost"."""
    assert set(host.frequencies(tmp_path).values()) == {"unknown"}
    cpu = "sys__devices__system__cpu__"
    kernel(tmp_path, **{f"{cpu}cpu0__cpufreq__scaling_governor": "powersave\n", f"{cpu}cpufreq__boost": "1\n"})
    kernel(tmp_path, **{f"{cpu}smt__active": "0\n"})
    assert host.frequencies(tmp_path) == {"governor": "powersave", "turbo": "on", "smt": "off"}
    kernel(tmp_path, **{f"{cpu}intel_pstate__no_turbo": "1\n"})
    assert host.frequencies(tmp_path)["turbo"] == "off"


@pytest.mark.parametrize(
    ("files", "environment", "found"),
    [
        ({}, {}, "unknown"),
        ({"proc__cpuinfo": "flags : sse\n"}, {}, "bare metal"),
        ({"proc__cpuinfo": "flags : sse hypervisor\n", ".dockerenv": ""}, {}, "virtual machine, container"),
        ({"proc__cpuinfo": "x\n", "proc__1__cgroup": "0::/kubepods/pod1\n"}, {}, "container"),
        ({"proc__cpuinfo": "x\n", "proc__sys__kernel__osrelease": "6.6-microsoft-standard-WSL2\n"}, {}, "WSL"),
        ({"proc__cpuinfo": "x\n"}, {"RUNNER_ENVIRONMENT": "github-hosted"}, "GitHub-hosted"),
        ({"proc__cpuinfo": "x\n"}, {"RUNNER_ENVIRONMENT": "self-hosted"}, "bare metal"),
    ],
)
def test_what_stands_between_this_process_and_the_hardware(tmp_path, files, environment, found):
    """Each of them makes times noisier."""
    assert host.kind(kernel(tmp_path, **files), environment) == found


def test_what_the_kernel_does_not_tell_is_unknown(tmp_path, monkeypatch):
    """As in a container that hides it, or elsewhere than on Linux."""
    monkeypatch.setattr(host.platform, "processor", lambda: "")
    assert host.cpu_model(tmp_path) == "unknown"
    assert host.steal_ticks(tmp_path) == "unknown"
    assert host.transparent_huge_pages(tmp_path) == "unknown"
    kernel(tmp_path, proc__stat="cpu 1 2 3\n", proc__cpuinfo="model name\t: AMD EPYC\n")
    kernel(tmp_path, sys__kernel__mm__transparent_hugepage__enabled="always [madvise] never\n")
    assert host.steal_ticks(tmp_path) == "unknown"
    assert (host.cpu_model(tmp_path), host.transparent_huge_pages(tmp_path)) == ("AMD EPYC", "madvise")

    def refuse():
        raise OSError

    monkeypatch.setattr(host.os, "getloadavg", refuse)
    assert host.load() == "unknown"


def test_the_canary_reads_two_positive_times():
    """A product and a copy."""
    readings = read_canary(torch.device("cpu"))
    assert set(readings) == {"matmul", "copy"}
    assert all(seconds > 0 for seconds in readings.values())
