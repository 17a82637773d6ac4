"""The whole analysis of a training step: every pass over it, in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

import torch

from workloads.analysis.clock import Stopwatch, watched
from workloads.analysis.counting import prepare
from workloads.analysis.loader import seconds_per_batch
from workloads.analysis.memory import Memory, cuda_peak_bytes, memory_of, resident_bytes
from workloads.analysis.modules import ModelSize, size_of
from workloads.analysis.operators import Efficiency, operator_efficiencies
from workloads.analysis.peaks import Peaks, measured_peaks
from workloads.analysis.profiling import Profiled, profile_of
from workloads.analysis.roofline import Roofline
from workloads.analysis.scaling import FACTORS, ScalePoint, scaled
from workloads.analysis.traffic import Work, work_of
from workloads.steps import TrainStep
from workloads.timing import seconds_of
from workloads.workload import Optimization, Unsuitable, Workload

Say = Callable[[str], None]
"""Told what is being measured."""
PROFILED_ROUNDS = 3  # beside the first; tracing a large model for longer fills memory


@dataclass(frozen=True, kw_only=True)
class Times:
    """Where the time of a step goes; one value per round."""

    step_seconds: tuple[float, ...]
    """The whole step, undisturbed."""
    phase_seconds: dict[str, tuple[float, ...]]
    """Forward with loss, backward, optimizer, each waited for; none of them where a recorded step is replayed."""
    data_seconds: tuple[float, ...]
    """One batch from the loader to the device; empty where the workload has no samples."""
    profiled_seconds: tuple[float, ...]
    """The whole step under torch's profiler with its memory record."""

    @property
    def profiling_cost(self) -> float:
        """Profiled over unprofiled seconds."""
        return median(self.profiled_seconds) / median(self.step_seconds)


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """All that was found of one workload's training step."""

    samples: int
    """Of one step."""
    size: ModelSize
    memory: Memory
    times: Times
    work: Work
    peaks: Peaks
    roofline: Roofline
    operators: tuple[Efficiency, ...]
    scaling: tuple[ScalePoint, ...]


def analyse(
    workload: Workload,
    optimizations: tuple[Optimization, ...],
    *,
    device: torch.device,
    rounds: int,
    factors: Iterable[float] = FACTORS,
    say: Say = lambda _: None,
) -> Analysis:
    """Analyse a fresh training step, and the same at ``factors`` of its batch and width.

    What changes the loader alone is used for data time only.

    Raises:
        Unsuitable: where a technique cannot be used, the step fails, or its loss is not finite.
    """
    loading = tuple(each for each in optimizations if "load" in each.kinds)
    stack = tuple(each for each in optimizations if "load" not in each.kinds or "train" in each.kinds)
    step = TrainStep(workload, stack)
    try:
        size, work, seen = _seen(step, device, rounds, say)
    finally:
        step.release()  # its memory is needed for the sizes above it
    say("loading data")
    times = Times(
        step_seconds=seen.step_seconds,
        phase_seconds=seen.phase_seconds,
        data_seconds=_data_seconds(workload, loading, device),
        profiled_seconds=seen.profiled_seconds,
    )
    say("measuring the machine's peaks and operators")
    peaks = measured_peaks(device, tuple(work.flops))
    operators = operator_efficiencies(device, work.main_precision, torch.get_num_threads(), rounds)
    say("scaling batch and width")
    return Analysis(
        samples=workload.batch_size,
        size=size,
        memory=seen.memory,
        times=times,
        work=work,
        peaks=peaks,
        roofline=_roofline(work, peaks, times),
        operators=operators,
        scaling=tuple(scaled(workload, stack, device, rounds=rounds, factors=factors)),
    )


@dataclass(frozen=True, kw_only=True)
class _Seen:
    step_seconds: tuple[float, ...]
    phase_seconds: dict[str, tuple[float, ...]]
    profiled_seconds: tuple[float, ...]
    memory: Memory


def _seen(step: TrainStep, device: torch.device, rounds: int, say: Say) -> tuple[ModelSize, Work, _Seen]:
    """Every pass that runs the step itself: counting, timing, profiling, following memory."""
    say("building and warming up")
    prepare(step, device)
    with step.active():
        say("counting operators, FLOPs and bytes")
        size, work = size_of(step), work_of(step)
        if not work.operators:
            raise Unsuitable(f"{step} runs no operator that can be counted: leave out what replays a recorded step")
        say("timing forward, backward and optimizer")
        step_seconds, phase_seconds = _timed(step, rounds)
        say("profiling")
        profiled = profile_of(step.run, device, rounds=PROFILED_ROUNDS)
        say("following memory")
        memory = memory_of(step, _peak_bytes(step, profiled))
    seen = _Seen(
        step_seconds=step_seconds,
        phase_seconds=phase_seconds,
        profiled_seconds=profiled.seconds,
        memory=memory,
    )
    return size, work, seen


def _timed(step: TrainStep, rounds: int) -> tuple[tuple[float, ...], dict[str, tuple[float, ...]]]:
    """The whole step, and in turn with it the step split into phases, which wait for the device between."""
    device = step.parts.device
    step.run()
    whole, split = [], []
    for _ in range(rounds):
        whole.append(seconds_of(step.run, device))
        stopwatch = Stopwatch(device)
        with watched(step.parts, stopwatch):
            step.run()
        split.append(stopwatch.seconds)
    phases = {phase: tuple(each[phase] for each in split) for phase in split[0]}
    return tuple(whole), phases if any(map(any, phases.values())) else {}


def _peak_bytes(step: TrainStep, profiled: Profiled) -> int:
    if step.parts.device.type == "cuda":
        return cuda_peak_bytes(step)
    return resident_bytes(step) + profiled.transient_bytes


def _data_seconds(
    workload: Workload, optimizations: tuple[Optimization, ...], device: torch.device
) -> tuple[float, ...]:
    """Empty for a workload without samples, unless techniques for loading were asked for."""
    try:
        return seconds_per_batch(workload, optimizations, device)
    except Unsuitable:
        if optimizations:
            raise
        return ()


def _roofline(work: Work, peaks: Peaks, times: Times) -> Roofline:
    return Roofline(
        flops=work.total_flops,
        traffic_bytes=work.traffic_bytes,
        compute_roof_seconds=peaks.compute_seconds(work.flops),
        memory_roof_seconds=work.traffic_bytes / peaks.bytes_per_second,
        step_seconds=median(times.step_seconds),
        data_seconds=median(times.data_seconds) if times.data_seconds else None,
    )
