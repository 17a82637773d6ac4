"""An analysis as figures: numbers that are saved with a benchmark and compared like any other."""

from __future__ import annotations

from collections.abc import Iterator

from workloads.analysis.analysis import Analysis
from workloads.analysis.clock import PHASES
from workloads.analysis.roofline import Roofline
from workloads.steps import Figure


def figures_of(found: Analysis) -> Iterator[Figure]:
    """Counts are exact; times and rates are shown and not judged, since the step's own time is."""
    yield from _sizes(found)
    yield from _memory(found)
    yield from _times(found)
    yield from _roofline(found.roofline)
    for precision, rate in found.peaks.flops_per_second.items():
        yield _one(f"peak_{precision}_flops_per_second", "FLOP/s", rate)
    yield _one("peak_bytes_per_second", "B/s", found.peaks.bytes_per_second)
    for each in found.operators:
        yield Figure(
            name=f"{each.kind}_efficiency", unit="1", values=each.shares, note=f"share of peak at {each.shape}"
        )
    for point in found.scaling:
        name = f"seconds_at_{point.field}_{point.value}"
        yield Figure(name=name, unit="s", values=point.seconds, note=point.reason)


def _sizes(found: Analysis) -> Iterator[Figure]:
    yield _exact("parameter_bytes", "B", found.size.parameter_bytes)
    yield _exact("forward_flops", "FLOP", found.size.forward_flops)
    for each in found.size.modules:
        if each.train_flops:
            yield _exact(f"train_flops_of_{each.name}", "FLOP", each.train_flops)
    yield _exact("traffic_bytes", "B", found.work.traffic_bytes)


def _memory(found: Analysis) -> Iterator[Figure]:
    memory = found.memory
    for name, purpose in (
        ("gradient_bytes", "gradients"),
        ("optimizer_state_bytes", "optimizer state"),
        ("batch_bytes", "batch"),
        ("activation_bytes", "activations"),
    ):
        yield _exact(name, "B", memory[purpose].whole_bytes or 0)
    yield _exact("activation_bytes_at_peak", "B", memory["activations"].at_peak_bytes)
    yield _one("workspace_bytes", "B", memory.workspace_bytes)
    yield _one("memory_split_share", "1", memory.agreement, note="what was followed, as a share of the measured peak")


def _times(found: Analysis) -> Iterator[Figure]:
    times = found.times
    replayed = None if times.phase_seconds else "unknown: a recorded step is replayed as a whole"
    for phase in PHASES:
        values = times.phase_seconds.get(phase, ())
        yield Figure(name=f"{phase}_seconds", unit="s", values=values, note=replayed)
    no_samples = None if times.data_seconds else "unknown: the workload has no samples to load"
    yield Figure(name="data_seconds", unit="s", values=times.data_seconds, note=no_samples)
    yield _one("profiling_cost", "1", times.profiling_cost, note="profiled over unprofiled seconds of a step")


def _roofline(found: Roofline) -> Iterator[Figure]:
    yield _one("achieved_flops_per_second", "FLOP/s", found.flops_per_second)
    yield _one("achieved_bytes_per_second", "B/s", found.bytes_per_second)
    yield _one("arithmetic_intensity", "FLOP/B", found.arithmetic_intensity)
    yield _one("ridge_point", "FLOP/B", found.ridge_point)
    yield _one("compute_share_of_peak", "1", found.compute_share, note=f"{found.bound}-bound")
    yield _one("memory_share_of_peak", "1", found.memory_share)


def _one(name: str, unit: str, value: float, note: str | None = None) -> Figure:
    return Figure(name=name, unit=unit, values=(value,), note=note)


def _exact(name: str, unit: str, value: int) -> Figure:
    return Figure(name=name, unit=unit, values=(value,), exact=True)
