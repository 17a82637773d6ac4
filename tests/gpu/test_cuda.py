"""On a real GPU: the clock against a kernel of known length, the memory pass against known allocations, counts, NVML.

Not run by ``make test``: ``tox run -e gpu`` does, on a machine that has one.
"""

import gc
import statistics
import subprocess
import sys
import time
from functools import partial

import pytest
import torch

from perfgate.measure import condition
from perfgate.measure.canary import read_canary
from perfgate.measure.clock import CudaClock, check_agreement, time_round
from perfgate.measure.energy import energy_per_step
from perfgate.measure.environment import describe_machine, gpu_of
from perfgate.measure.memory import cuda_peak, forget_workspaces, graph_pools
from perfgate.measure.profiled import count_device_work, profile_step
from workloads import MLP, ResNet18
from workloads.optimizations import AMP, Compile, CudaGraph, CudnnBenchmark

pytestmark = pytest.mark.gpu


@pytest.fixture
def device():
    """The current GPU."""
    return torch.device("cuda", torch.cuda.current_device())


def test_events_and_wall_agree_on_a_spin_kernel(device):
    """A kernel of known cycles; twice the cycles take about twice the time, once the clock has come up."""
    clock = CudaClock(device)
    torch.cuda._sleep(1_000_000_000)
    torch.cuda.synchronize(device)
    medians = []
    for cycles in (20_000_000, 40_000_000):
        target = clock.target(lambda cycles=cycles: torch.cuda._sleep(cycles))
        timings = [time_round(clock, target) for _ in range(9)]
        for timing in timings:
            check_agreement(timing.wall_seconds, timing.event_seconds)
        medians.append(sorted(timing.event_seconds for timing in timings)[4])
        assert medians[-1] == pytest.approx(sorted(timing.wall_seconds for timing in timings)[4], rel=0.05)
    assert medians[1] / medians[0] == pytest.approx(2, rel=0.1)


def test_peak_memory_of_known_allocations(device):
    """What is alive beside the step does not count."""
    beside = torch.empty(64 * 2**20, dtype=torch.uint8, device=device)
    kept = torch.empty(2**20, dtype=torch.uint8, device=device)

    def step():
        first = torch.empty(8 * 2**20, dtype=torch.uint8, device=device)
        del first
        torch.empty(4 * 2**20, dtype=torch.uint8, device=device)

    found = cuda_peak(step, lambda: [kept], device)
    assert found.peak_bytes == 9 * 2**20
    assert found.allocations == 2
    assert found.reserved_bytes >= beside.numel()


def test_memory_of_a_captured_graph(device):
    """Its pool counts once, though gradients lie in it; and a graph of another benchmark is forgotten with it."""
    step = MLP().train_step(CudaGraph())
    step.build(device)
    with step.active():
        step.run()
        found = cuda_peak(step.run, step.resident_tensors, device, graphs=True)
        again = cuda_peak(step.run, step.resident_tensors, device, graphs=True)
        pools = sum(map(len, graph_pools(device)))
    assert found.peak_bytes == again.peak_bytes
    assert found.allocations == 0
    assert pools > 0
    parameters = sum(each.nbytes for each in step.parts.model.parameters())
    assert pools + parameters < found.peak_bytes < pools + 6 * parameters
    step.release()
    del step
    gc.collect()
    forget_workspaces(device)
    torch.cuda.empty_cache()
    assert graph_pools(device) == []


def test_launches_copies_and_synchronisations_are_counted(device):
    """Three kernels, a copy each way, and the wait that ``item`` needs."""
    a = torch.ones(256, 256, device=device)
    source = torch.ones(1000)

    def step():
        (a + 1).mul_(2).sin_()
        source.to(device)
        a[0, 0].item()

    step()
    found = count_device_work(profile_step(step, device))
    assert found["kernel_launches"] == 3
    assert found["copies_to_device"] == 1
    assert found["copies_to_host"] == 1
    assert found["synchronisations"] >= 2


def test_an_added_item_is_seen(device):
    """One synchronisation and one copy more, whatever the noise."""
    step = MLP().train_step()
    step.build(device)
    step.run()
    plain = count_device_work(profile_step(step.run, device))

    def with_item():
        step.run()
        step.last_value().item()

    found = count_device_work(profile_step(with_item, device))
    assert found["copies_to_host"] == plain["copies_to_host"] + 1
    assert found["synchronisations"] > plain["synchronisations"]
    assert found["kernel_launches"] == plain["kernel_launches"]


def test_nvml_finds_this_gpu_by_uuid(device):
    """And its readings have values."""
    gpu = gpu_of(device)
    assert gpu is not None
    readings = gpu.readings()
    assert readings["temperature"].endswith(" C")
    assert gpu.energy_joules() > 0
    assert "gpu" in describe_machine(device, gpu).hard


def test_energy_of_a_spin_kernel(device):
    """Twice as long takes more; at least what an idle GPU draws, at most what it may."""
    gpu = gpu_of(device)
    if gpu.energy_joules() is None:
        pytest.skip("this GPU has no energy counter")
    clock, found = CudaClock(device), {}
    for cycles in (20_000_000, 40_000_000):
        seconds = time_round(clock, clock.target(lambda cycles=cycles: torch.cuda._sleep(cycles))).wall_seconds
        wait = partial(torch.cuda.synchronize, device)
        found[cycles] = energy_per_step(lambda cycles=cycles: torch.cuda._sleep(cycles), wait, gpu, seconds)
        assert all(20 < joules / seconds < 1200 for joules in found[cycles]), (found, seconds)  # watts
    assert statistics.median(found[40_000_000]) > 1.4 * statistics.median(found[20_000_000])


def test_a_quiet_gpu_is_fit_to_measure(device):
    """No flag: a power cap is usual, and no reading that cannot be had makes a benchmark unjudged."""
    gpu = gpu_of(device)
    before = condition.read(gpu, on_gpu=True)
    torch.cuda._sleep(200_000_000)
    torch.cuda.synchronize(device)
    found = condition.between(before, condition.read(gpu, on_gpu=True))
    assert found.unfit == (), found
    if before.texts["other_processes"] == "0":
        assert found.disturbances == (), found


def test_the_canary_sings(device):
    """Both of its works take a time, and not a tenth of a second."""
    assert all(0 < seconds < 0.1 for seconds in read_canary(device).values())


def test_another_process_on_the_gpu_is_seen(device, tmp_path):
    """It is started, seen, and gone. An orphan: our own children are no others. Its time is a disturbance."""
    gpu = gpu_of(device)
    before = gpu.other_processes()
    if before is None:
        pytest.skip("NVML does not tell processes here")
    code = (
        "import pathlib, sys, time, torch; x = torch.ones(1, device='cuda'); up, stop = map(pathlib.Path, sys.argv[1:]);"
        "up.touch()\nwhile not stop.exists(): time.sleep(0.1)"
    )
    up, stop = tmp_path / "up", tmp_path / "stop"
    words = ["sh", "-c", '"$@" >/dev/null 2>&1 &', "sh", sys.executable, "-c", code, str(up), str(stop)]
    subprocess.run(words, check=True)
    try:
        deadline = time.monotonic() + 120
        while not up.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        assert up.exists(), "the other process did not start"
        assert gpu.other_processes() == before + 1
        reading = condition.read(gpu, on_gpu=True)
        (disturbance, _) = condition.between(reading, reading).disturbances
        assert disturbance.endswith("on the GPU before the rounds")
    finally:
        stop.touch()


@pytest.mark.parametrize(
    "technique", [AMP("float16"), AMP(), CudnnBenchmark(), CudaGraph(), Compile("reduce-overhead")], ids=str
)
def test_proofs_on_the_gpu(device, technique):
    """Each is in effect; the graph's launches collapse."""
    step = ResNet18(batch_size=8).train_step(technique)
    step.build(device)
    for _ in range(4):
        step.run()
    assert step.proof({"compiled_graphs": 1, **count_device_work(profile_step(step.run, device))})
    step.release()
