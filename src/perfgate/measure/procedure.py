"""The procedure: every pass of one benchmark in its order, each in a part of its own.

build, first call -> same result -> warm-up -> timed rounds -> counters, memory, energy -> proof -> warm build -> record
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from perfgate.errors import CannotCompile, NotInEffect, Recompiled, WrongResult
from perfgate.measure import condition
from perfgate.measure.attempts import attempt_rounds
from perfgate.measure.check import check_same_result
from perfgate.measure.clock import clock_for
from perfgate.measure.compilation import break_even, compile_times, start_compiler
from perfgate.measure.counters import compile_counts, compiler_complaint, count_eager, count_uncompiled, scalar_reads
from perfgate.measure.energy import WINDOWS, energy_per_step
from perfgate.measure.measurements import counted, energy, figure, sampled, side_measurements, speedup, unjudged
from perfgate.measure.memory import PeakMemory, cuda_peak, forget_workspaces, host_peak
from perfgate.measure.profiled import attach, count_device_work, count_operators, profile_step
from perfgate.measure.rounds import Pedantic, Side
from perfgate.measure.state import guarded_state
from perfgate.measure.step import Step
from perfgate.measure.stopping import rounds_for
from perfgate.measure.warmup import LEAST_SECONDS, SteadyClock, warm_up
from perfgate.results.record import Measurement, Record, identity_hash
from perfgate.turns import ALONE, Turns

if TYPE_CHECKING:
    from collections import Counter

    from perfgate.measure.nvml import Gpu


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to measure."""

    device: torch.device
    gpu: Gpu | None
    smoke: bool
    """One round, all proofs and counted metrics, no trustworthy times."""
    warmup_seconds: float
    timed_seconds: float
    turns: Turns = ALONE

    def look(self) -> condition.Reading:
        """The device's condition just now; partners do not disturb, since they wait for their turn."""
        return condition.read(self.gpu, on_gpu=self.device.type == "cuda", partners=self.turns is not ALONE)


@dataclass
class Passes:
    """What the passes over one side found."""

    first_call_seconds: float = 0.0
    warm_call_seconds: float | None = None
    """First call of a second build that finds compiled code in the cache; ``None`` where nothing is compiled."""
    graphs: int = 0
    graph_breaks: int = 0
    recompilations: int = 0
    operators: Counter[str] | None = None
    flops: int = 0
    float32_flops: int = 0
    device_work: dict[str, int] = field(default_factory=dict)
    memory: PeakMemory | None = None
    energy_joules: tuple[float, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    """What only the subject can count."""
    figures: list[Measurement] = field(default_factory=list)
    """What else only the subject can tell."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What to measure, and under which name."""

    name: str
    group: str
    step: Step
    against: Step | None
    """The plain twin."""


def measure_step(benchmark: Pedantic, subject: Subject, plan: Plan) -> Record:
    """Measure the subject's step, beside its plain twin where there is one.

    Raises:
        MeasurementError: where there is no trustworthy number: a wrong result, a technique that is not in effect, a
            leak of global state, a recompilation inside the timed rounds, a GPU that is lost.
    """
    started = time.perf_counter()
    try:
        with guarded_state(plan.device):
            record = _measure(benchmark, subject, plan)
    finally:
        for each in (subject.step, subject.against):
            if each:
                each.release()
        forget_workspaces(plan.device)
    return dataclasses.replace(record, seconds=time.perf_counter() - started)


def _measure(benchmark: Pedantic, subject: Subject, plan: Plan) -> Record:
    step, against = subject.step, subject.against
    sides = [Side(each, clock_for(plan.device)) for each in (step, against) if each]
    attach(plan.device)
    passes = [_start(side, plan) for side in sides]
    evidence = {}
    if against:
        evidence["same result"] = check_same_result(step.outcome(), against.reference_outcome(step), step.tolerance)
    warmup, around = _time(benchmark, sides, passes, plan)
    evidence["warm-up"] = warmup
    if around.notes:
        evidence["machine"] = "; ".join(around.notes)
    for side, found in zip(sides, passes, strict=True):
        found.figures = [figure(each) for each in side.step.figures()]  # before other passes add to what it has seen
        _count(side, found, plan, energy_windows=WINDOWS if side is sides[0] else 1)
    evidence |= _prove_all(sides, passes)
    if step.compiled and not plan.smoke:
        passes[0].warm_call_seconds = _warm_start(step, plan)
    return Record(
        id=subject.name,
        group=subject.group,
        identity=identity_hash({"step": step.identity, "against": against.identity if against else None}),
        step=_title(step, against),
        measurements=tuple(_all_measurements(sides, passes)),
        samples_per_round=step.samples,
        expected=step.expected_against(against) if against else "any",
        evidence=evidence,
        flags=around.flags,
    )


def _title(step: Step, against: Step | None) -> str:
    """The step, and what its twin has where that is not plain."""
    twin = str(against).rpartition("/")[2] if against else "plain"
    return str(step) if twin == "plain" else f"{step} vs {twin}"


def _start(side: Side, plan: Plan) -> Passes:
    """Build, and take the first call, which compiles, tunes and creates optimizer state."""
    if side.step.compiled:
        start_compiler(plan.device.type)
    try:
        side.step.build(plan.device)  # forgets earlier compiled code and its counts
        before = compile_counts()
        side.round()
    except Exception as error:
        complaint = compiler_complaint(error)
        if complaint:
            raise CannotCompile(f"{side.step} cannot be compiled: {complaint}") from error
        error.add_note(f"in the first call of {side.step}")
        raise
    compiled = compile_counts().since(before)
    return Passes(first_call_seconds=side.timings[0].wall_seconds, graphs=compiled.graphs, graph_breaks=compiled.breaks)


def _warm_start(step: Step, plan: Plan) -> float:
    """The first call of another build: dynamo captures again, and inductor finds its code in the cache."""
    step.build(plan.device)
    side = Side(step, clock_for(plan.device))
    return side.round()


def _time(benchmark: Pedantic, sides: list[Side], passes: list[Passes], plan: Plan) -> tuple[str, condition.Condition]:
    """Warm up and take the timed rounds; a smoke run takes one, cold. How both went."""
    before = compile_counts()
    settled = SteadyClock(plan.gpu.clock_megahertz if plan.gpu else lambda: None)
    least = LEAST_SECONDS[plan.device.type]
    warmups = [
        warm_up(side.round, plan.warmup_seconds, settled=settled, least_seconds=least)
        for side in sides
        if not plan.smoke
    ]
    passes[0].recompilations = compile_counts().since(before).graphs
    rounds = rounds_for(sum(each.round_seconds for each in warmups), plan.timed_seconds) if warmups else 1
    rounds = plan.turns.agree(rounds)
    before = compile_counts()
    around = attempt_rounds(benchmark, sides, rounds, plan.look, again=not plan.smoke, turns=plan.turns)
    compiled = compile_counts().since(before).graphs
    if compiled:
        raise Recompiled(f"{compiled} graphs were compiled inside the timed rounds: the times are not of the step")
    value = sides[0].step.last_value()
    if value is not None and not bool(torch.isfinite(value).all()):
        raise WrongResult("the loss or output after the timed rounds is NaN or infinite")
    return str(warmups[0]) if warmups else "none: smoke run", around


def _count(side: Side, found: Passes, plan: Plan, energy_windows: int) -> None:
    """Counters, FLOPs, memory and energy, each in its own pass."""
    step = side.step
    with step.active():
        events = profile_step(step.run, plan.device)
        if plan.device.type == "cuda":
            found.device_work = count_device_work(events)
            found.memory = cuda_peak(step.run, step.resident_tensors, plan.device, graphs=step.opaque)
        else:
            found.memory = host_peak(step.resident_tensors(), events)
        eager = count_uncompiled(step.run_uncompiled) if step.opaque else count_eager(step.run)  # leaves gradients
        # the profiler sees no operator of a captured graph, nor of another thread
        found.operators = (count_operators(events) if step.opaque else None) or eager.operators
        found.flops, found.float32_flops = eager.flops, eager.float32_flops
        if plan.gpu and not plan.smoke:
            seconds = statistics.median(each.wall_seconds for each in side.timings)
            found.energy_joules = energy_per_step(step.run, _waiting(plan.device), plan.gpu, seconds, energy_windows)
    found.counts = dict(step.counts())


def _waiting(device: torch.device) -> Callable[[], None]:
    return lambda: torch.cuda.synchronize(device)


def _prove_all(sides: list[Side], passes: list[Passes]) -> dict[str, str]:
    """The proofs of the variant's techniques, and of those that only its twin has."""
    peaks = {
        f"{name}peak_bytes": found.memory.peak_bytes
        for name, found in zip(("", "plain_"), passes, strict=False)
        if found.memory
    }
    evidence = _prove(sides[0].step, passes[0], peaks)
    if len(sides) > 1:
        twins = _prove(sides[1].step, passes[1], peaks)
        evidence |= {f"plain: {name}": proof for name, proof in twins.items() if name not in evidence}
    return evidence


def _prove(step: Step, found: Passes, peaks: dict[str, int]) -> dict[str, str]:
    """The step's proof from what was counted."""
    counts = {
        "compiled_graphs": found.graphs,
        "graph_breaks": found.graph_breaks,
        **found.device_work,
        **peaks,
        **found.counts,
    }
    try:
        return dict(step.proof(counts))
    except torch.AcceleratorError:
        raise  # the device's failure, and not the technique's
    except Exception as error:  # the subject's own exception type, which perfgate does not know
        raise NotInEffect(str(error)) from error


def _all_measurements(sides: list[Side], passes: list[Passes]) -> list[Measurement]:
    variant, found = sides[0], passes[0]
    measurements = side_measurements(
        variant.timings, found.first_call_seconds, found.energy_joules, variant.step.samples
    )
    if variant.step.compiled:
        measurements += compile_times(found.first_call_seconds, found.warm_call_seconds, variant.timings)
    measurements += [*counted_measurements(found, compiled=variant.step.compiled), *found.figures]
    if len(sides) > 1:
        measurements += _beside(sides, passes)
    if variant.step.repeatable:
        return measurements
    return [unjudged(each) if each.kind == "counted" else each for each in measurements]


def _beside(sides: list[Side], passes: list[Passes]) -> list[Measurement]:
    """The comparison of both sides, and what the twin was seen to do: shown, and never judged."""
    (variant, plain), (found, plain_found) = sides, passes
    samples_ratio = variant.step.samples / plain.step.samples
    result = [speedup(variant.timings, plain.timings, samples_ratio=samples_ratio)]
    if variant.step.compiled and not plain.step.compiled:
        result.append(break_even(found.first_call_seconds, variant.timings, plain.timings))
    result.append(sampled("plain_wall_seconds", "s", [each.wall_seconds for each in plain.timings]))
    result += energy(plain_found.energy_joules, plain.step.samples, prefix="plain_")
    counts = [*counted_measurements(plain_found, compiled=plain.step.compiled), *plain_found.figures]
    return result + [
        dataclasses.replace(each, metric=f"plain_{each.metric}", better="neither", table={}) for each in counts
    ]


def counted_measurements(found: Passes, *, compiled: bool) -> list[Measurement]:
    """The counted metrics of one side."""
    result = [counted("flops", "FLOP", found.flops), counted("float32_flops", "FLOP", found.float32_flops)]
    if found.operators is not None:
        table = dict(sorted(found.operators.items()))
        result.append(counted("operators", "count", found.operators.total(), table=table))
        result.append(counted("scalar_reads", "count", scalar_reads(table)))
    if found.memory:
        result.append(counted("peak_bytes", "B", found.memory.peak_bytes))
        result.append(counted("allocations", "count", found.memory.allocations, better="neither"))
        if found.memory.reserved_bytes is not None:
            result.append(counted("reserved_bytes", "B", found.memory.reserved_bytes, better="neither"))
    if compiled:
        result += [
            counted("compiled_graphs", "count", found.graphs),
            counted("graph_breaks", "count", found.graph_breaks),
            counted("recompilations", "count", found.recompilations),
        ]
    result += [counted(name, "count", value) for name, value in found.device_work.items()]
    for name, value in found.counts.items():
        result.append(counted(name, "count", value, better="higher" if name == "zeros" else "lower"))
    return result
