"""The whole procedure on a GPU that is only pretended, with NVML as a fake: every pass, for both sides."""

import itertools
import os
import statistics

import pytest
import torch

from perfgate.errors import NotInEffect
from perfgate.measure import procedure
from perfgate.measure.energy import WINDOWS
from perfgate.measure.nvml import Gpu
from perfgate.measure.procedure import Plan, Subject, measure_step
from perfgate.measure.profiled import Event, profile_step, span
from tests.perfgate.measure.fakes import FakeBenchmark, FakeNVML, processes
from tests.workloads.pretended_gpu import pretended_gpu
from workloads import MLP
from workloads.optimizations import AMP, CudaGraph, ReadLoss

TINY = MLP(batch_size=4, width=8, image_size=4)
CPU = torch.device("cpu")
AFTERWARDS = Event("cudaGraphLaunch", "host", 2**62, 2**62 + 1)
"""A launch that is not the step's."""


@pytest.fixture
def plan(monkeypatch):
    """On the pretended GPU, whose energy counter moves by a joule each time it is read."""
    counter = itertools.count(0, 1000)
    library = FakeNVML(
        nvmlDeviceGetTotalEnergyConsumption=lambda: next(counter),
        nvmlDeviceGetComputeRunningProcesses=lambda: processes(os.getpid()),
    )
    monkeypatch.setattr(procedure, "profile_step", lambda run, device: [*profile_step(run, CPU), AFTERWARDS])
    monkeypatch.setattr("perfgate.measure.energy.WINDOW_SECONDS", 0.001)
    monkeypatch.setitem(procedure.LEAST_SECONDS, "cuda", 0.001)
    monkeypatch.setattr(procedure, "attach", lambda device: None)
    with pretended_gpu(monkeypatch) as device:
        yield Plan(device=device, gpu=Gpu(library, "77"), smoke=False, warmup_seconds=0.002, timed_seconds=0.01)


def measured(plan, step, against=None):
    """The record."""
    subject = Subject(name="benches/test_a.py::test_b", group="a", step=step, against=against)
    return measure_step(FakeBenchmark(), subject, plan)


def test_every_pass_of_both_sides(plan):
    """Event time beside wall time, launches, memory, and energy, of which one window is enough for the twin."""
    record = measured(plan, TINY.train_step(AMP()), TINY.train_step())
    values = {each.metric: each.values for each in record.measurements}
    assert len(values["event_seconds"]) == len(values["wall_seconds"])
    assert all(event <= wall for event, wall in zip(values["event_seconds"], values["wall_seconds"], strict=True))
    assert (len(values["energy_joules"]), len(values["plain_energy_joules"])) == (WINDOWS, 1)
    assert values["plain_energy_joules_per_sample"][0] == values["plain_energy_joules"][0] / 4
    for metric in (
        "kernel_launches",
        "copies_to_host",
        "synchronisations",
        "peak_bytes",
        "reserved_bytes",
        "operators",
    ):
        assert {metric, f"plain_{metric}"} <= values.keys()
    assert values["scalar_reads"] == (0,)
    assert record.flags == ()


def test_an_added_item_is_counted(plan):
    """As on the CPU."""
    record = measured(plan, TINY.train_step(ReadLoss()), TINY.train_step())
    assert record.measurement("scalar_reads").values == (1,)


def test_the_order_and_the_length_of_passes(plan, monkeypatch):
    """Attached first; warm for long enough; memory before the eager count, whose gradients would stay; energy last."""
    log = []

    def noted(name, real):
        def call(*arguments, **named):
            log.append((name, arguments, named))
            return real(*arguments, **named)

        return call

    for name in ("attach", "warm_up", "cuda_peak", "count_eager", "energy_per_step"):
        monkeypatch.setattr(procedure, name, noted(name, getattr(procedure, name)))
    monkeypatch.setitem(procedure.LEAST_SECONDS, "cuda", 0.0015)
    record = measured(plan, TINY.train_step(AMP()))
    assert [name for name, *_ in log] == ["attach", "warm_up", "cuda_peak", "count_eager", "energy_per_step"]
    by_name = {name: (arguments, named) for name, arguments, named in log}
    assert by_name["warm_up"][1]["least_seconds"] == 0.0015
    assert by_name["cuda_peak"][1] == {"graphs": False}
    seconds = statistics.median(record.measurement("wall_seconds").values)
    assert by_name["energy_per_step"][0][3] == pytest.approx(seconds, rel=0.5)  # its timings have the warm-up's, too


def test_graphs_pools_are_asked_for_where_a_step_may_have_some(plan, monkeypatch):
    """And operators are those of the step without its graph, of which the profiler sees none."""
    asked = []
    real = procedure.cuda_peak
    monkeypatch.setattr(procedure, "cuda_peak", lambda *a, graphs: asked.append(graphs) or real(*a, graphs=graphs))
    monkeypatch.setattr(procedure, "profile_step", launching)
    record = measured(plan, TINY.train_step(CudaGraph()), TINY.train_step())
    assert asked == [True, False]
    assert record.evidence["cuda-graph"] == "one graph launch per step"
    assert record.measurement("operators").values[0] > 0


def launching(run, device):
    """A profile in which the step launches a graph, and dispatches nothing."""
    events = profile_step(run, CPU)
    start, _ = span(events)
    kept = [each for each in events if not each.name.startswith("aten::")]
    return [*kept, Event("cudaGraphLaunch", "host", start, start + 1)]


def test_a_step_leaves_nothing_behind(plan, monkeypatch):
    """Workspaces are freed once the steps are released, also after a failure."""
    log = []
    step = TINY.train_step(AMP())
    release = step.release
    monkeypatch.setattr(step, "release", lambda: log.append("release") or release())
    monkeypatch.setattr(procedure, "forget_workspaces", lambda device: log.append(device.type))
    measured(plan, step)
    assert log[-2:] == ["release", "cuda"]
    monkeypatch.setattr(step, "run", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        measured(plan, step)
    assert log[-2:] == ["release", "cuda"]


def test_a_graph_that_was_not_launched_is_not_in_effect(plan):
    """Its proof asks for the launches that were counted inside the step."""
    with pytest.raises(NotInEffect, match="0 graph launches"):
        measured(plan, TINY.train_step(CudaGraph()), TINY.train_step())
