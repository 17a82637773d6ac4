"""Parts of a machine: equal, disjoint, and never two threads of one core in two of them."""

import subprocess
import sys

import pytest
import torch

from perfgate import shares
from perfgate.errors import SettingsError
from perfgate.shares import Share, physical_cores, share_of


@pytest.fixture
def topology(tmp_path):
    """A machine of four cores with two threads each; the second threads are numbered from 4."""
    for core in range(8):
        folder = tmp_path / f"cpu{core}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{core % 4},{core % 4 + 4}\n", encoding="ascii")
    return tmp_path


@pytest.fixture
def gpus(monkeypatch):
    """Lets torch see so many GPUs."""

    def see(number):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: number)

    return see


@pytest.mark.parametrize(
    ("text", "share"),
    [("1/2", Share(1, 2)), ("0/1", Share(0, 1)), ("", None), ("2", None), ("a/b", None), ("-1/2", None)],
)
def test_a_worker_learns_its_share_from_its_environment(text, share):
    """Anything else is no share."""
    assert share_of({shares.VARIABLE: text}) == share
    assert share_of({}) is None
    if share:
        assert share_of({shares.VARIABLE: str(share)}) == share


@pytest.mark.parametrize("count", range(1, 9))
def test_shares_of_cores_are_disjoint_and_equal(tmp_path, count):
    """Where nothing tells of threads, each core is one."""
    parts = [Share(number, count).of_cores(range(8), tmp_path) for number in range(count)]
    assert len(set().union(*parts)) == sum(map(len, parts))
    assert {len(part) for part in parts} == {8 // count}


@pytest.mark.parametrize("count", range(1, 5))
def test_threads_of_one_core_are_never_divided(topology, count):
    """Each part has both or none."""
    for number in range(count):
        part = set(Share(number, count).of_cores(range(8), topology))
        assert part == {(core + 4) % 8 for core in part}


def test_a_worker_more_than_cores_is_an_error_that_says_the_most(topology):
    """Threads are not cores."""
    with pytest.raises(SettingsError, match=r"-n 5: each worker needs a core of its own, and there are 4: -n 4 is the"):
        Share(0, 5).of_cores(range(8), topology)


def test_only_usable_cores_are_given_away(topology):
    """A container may have some threads of some cores."""
    assert physical_cores([1, 2, 5], topology) == {(1, 5), (2,)}
    assert Share(1, 2).of_cores([1, 2, 5], topology) == [2]


@pytest.mark.parametrize("text", ["0-1", "0-1\n", "1,0", "0,1"])
def test_siblings_are_written_as_lists_and_ranges(topology, text):
    """As the kernel does."""
    (topology / "cpu0" / "topology" / "thread_siblings_list").write_text(text, encoding="ascii")
    assert (0, 1) in physical_cores([0, 1], topology)


@pytest.mark.parametrize("text", ["", "x"])
def test_siblings_that_nobody_understands_are_none(topology, text):
    """Each core is then one of its own."""
    for core in (0, 1):
        (topology / f"cpu{core}" / "topology" / "thread_siblings_list").write_text(text, encoding="ascii")
    assert physical_cores([0, 1], topology) == {(0,), (1,)}


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        (None, ["0", "1"]),
        ("", ["0", "1"]),
        ("3,1", ["3", "1"]),
        ("GPU-aa, GPU-bb", ["GPU-aa", "GPU-bb"]),
        ("MIG-aa,MIG-GPU-bb/1/0", ["MIG-aa", "MIG-GPU-bb/1/0"]),
        ("0,1,2", ["0", "1"]),
    ],
)
def test_gpus_keep_the_names_that_the_environment_gave_them(visible, names):
    """Indices, UUIDs, and those of slices."""
    assert [Share(number, 2).of_gpus(visible, 2) for number in range(2)] == names


def test_a_worker_more_than_gpus_is_an_error_that_says_the_most(gpus):
    """And what else can be done."""
    gpus(2)
    with pytest.raises(
        SettingsError, match=r"-n 3: .* GPU of its own, and torch sees 2: -n 2 is the most.*-device cpu"
    ):
        shares.check(Share(0, 3), "cuda")
    shares.check(Share(0, 2), "cuda")


def test_too_many_workers_for_the_cores(monkeypatch):
    """Asked before any starts."""
    monkeypatch.setattr(shares, "usable_cores", lambda: [0])
    monkeypatch.setattr(shares, "TOPOLOGY", None)
    with pytest.raises(SettingsError, match="-n 1 is the most"):
        shares.check(Share(0, 2), "cpu")


def test_a_worker_sees_its_gpu_alone(gpus, monkeypatch):
    """From its start, and it takes no other then."""
    gpus(2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-aa,GPU-bb")
    found = shares.environment_of(Share(1, 2), "cuda")
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-bb"
    gpus(1)
    for name, value in found.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: pytest.fail("there is one only"))
    shares.take(Share(1, 2), "auto")


def test_a_gpu_that_was_not_set_apart_is_the_current_one(gpus, monkeypatch):
    """Once CUDA has looked, hiding the others would be believed and not be true: all workers would share the first."""
    gpus(2)
    chosen = []
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    shares.take(Share(1, 2), "cuda")
    assert (chosen, shares.os.environ["CUDA_VISIBLE_DEVICES"]) == ([1], "4,5")
    with pytest.raises(SettingsError, match="-n 2 is the most"):
        shares.take(Share(2, 3), "cuda")


@pytest.mark.parametrize(("share", "device"), [(Share(0, 1), "cuda"), (Share(0, 2), "cpu"), (Share(0, 2), "")])
def test_an_environment_without_a_gpu_of_its_own(gpus, share, device):
    """A single worker has all; without a GPU, or where nobody may want one, nothing is hidden."""
    gpus(2)
    side_by_side = {"PERFGATE_WORKERS"} if share.count > 1 else set()
    assert set(shares.environment_of(share, device)) == {"PERFGATE_SHARE", *side_by_side}


def test_a_single_worker_has_the_whole_machine(gpus, monkeypatch):
    """As without ``-n``: same cores, same threads, same GPUs."""
    monkeypatch.setattr(shares.os, "sched_setaffinity", lambda *_: pytest.fail("confined"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for found in (0, 2):
        gpus(found)
        shares.take(Share(0, 1), "auto")
        assert "CUDA_VISIBLE_DEVICES" not in shares.os.environ


CONFINED = """
import os, threading, torch
from perfgate import shares
threading.Thread(target=input, daemon=True).start()
torch.ones(300, 300) @ torch.ones(300, 300)
shares.take(shares.Share(1, 2), "cpu")
found = {tuple(sorted(os.sched_getaffinity(int(each)))) for each in os.listdir("/proc/self/task")}
print(sorted(found), torch.get_num_threads(), os.environ["OMP_NUM_THREADS"])
"""


@pytest.mark.skipif(len(physical_cores(shares.usable_cores())) < 2, reason="needs two cores")
def test_all_threads_are_confined_and_one_core_is_left_to_the_rest():
    """Those that torch started before, too."""
    own = Share(1, 2).of_cores(shares.usable_cores())
    done = subprocess.run([sys.executable, "-c", CONFINED], capture_output=True, text=True, check=True)
    threads = max(1, len(own) - 1)
    assert done.stdout.strip() == f"[{tuple(own)}] {threads} {threads}"


def test_gpus_are_named_by_uuid(gpus, monkeypatch):
    """One, or all that this process sees."""
    gpus(2)
    names = {0: "aa", 1: "bb"}
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda each: type("", (), {"uuid": names[getattr(each, "index", each)]})
    )
    assert shares.gpu_uuids(None) == ["aa", "bb"]
    assert shares.gpu_uuids(torch.device("cuda", 1)) == ["bb"]
