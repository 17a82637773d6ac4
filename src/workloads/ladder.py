"""Everything at once, by a greedy ladder: add one technique at a time, keep what pays.

Each candidate is measured beside the stack so far, and kept where even the lower end of the interval is a gain. One
that decides the same thing as a technique of the stack is tried in its place. A greedy search may miss two techniques
that only pay together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from workloads.agreement import disagreement
from workloads.analysis.peaks import measured_peaks
from workloads.analysis.traffic import work_of
from workloads.capacity import free_memory, is_out_of_memory
from workloads.optimizations import CATALOGUE, CudnnBenchmark
from workloads.steps import Step
from workloads.timing import Interval, median_seconds, one_round, side_by_side
from workloads.workload import NotInEffect, Optimization, Unsuitable, Workload, clashes

KINDS = ("train", "inference")
WORTH = 1.01  # the least gain, at the lower end of its interval: less does not pay for another moving part
PRECISIONS = ("amp-bf16", "half-bf16", "amp-fp16", "half-fp16")
"""Tried first, since other techniques may pay in one precision and not in another."""
BUDGET_SECONDS = 4.0  # per candidate, builds and compilation apart
OTHER_MODELS = ("l1-", "random-", "channel-", "semi-structured", "adamw-")
"""How the names begin of techniques that change the model or the algorithm: their result is not the plain one's."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One candidate that was tried."""

    technique: Optimization
    kept: bool
    reason: str
    """Why it was not kept; for one that was, the evidence that it is in effect."""
    gain: Interval | None = None
    """Speedup over the stack so far; ``None`` where it was not measured."""
    total: float | None = None
    """Speedup over plain with it: the product of the gains."""
    instead_of: tuple[Optimization, ...] = ()
    """What had to leave the stack for it."""


@dataclass(frozen=True, kw_only=True)
class Summit:
    """The best stack, measured once more beside the plain step."""

    stack: tuple[Optimization, ...]
    speedup: Interval
    samples_per_second: float
    flops_per_second: float
    """Of the plain step's FLOPs: what is computed again, or left out, does not count."""
    precision: str
    """What matrix products are made in."""
    peak_flops_per_second: float
    """Of the fastest large matrix product in this precision, measured here."""

    @property
    def utilization(self) -> float:
        """Model FLOPs utilization (MFU; Chowdhery et al. 2022, arXiv:2204.02311), against the measured peak."""
        return self.flops_per_second / self.peak_flops_per_second


def default_candidates(kind: str) -> list[Optimization]:
    """Techniques of the catalogue that may pay and leave the result as it is: precision first, then as applied.

    Left out are those of other kinds of step, those not expected to be faster, those that are only ever a twin, those
    that split the batch (batch norms would see other statistics), and those that change the model or the algorithm.
    """
    fitting = [
        each
        for name, each in CATALOGUE.items()
        if kind in each.kinds
        and each.expected in ("faster", "any")
        and each not in each.baseline()
        and not each.splits_batch
        and not name.startswith(OTHER_MODELS)
    ]
    return sorted(fitting, key=lambda each: (str(each) not in PRECISIONS, each.order))


def step_of(workload: Workload, kind: str, stack: Sequence[Optimization]) -> Step:
    """The training or inference step with a stack.

    Raises:
        Unsuitable: for another kind.
    """
    if kind not in KINDS:
        raise Unsuitable(f"a ladder is climbed for {' or '.join(KINDS)}, not for {kind!r}")
    return workload.train_step(*stack) if kind == "train" else workload.inference_step(*stack)


def climb(
    workload: Workload,
    kind: str,
    candidates: Iterable[Optimization],
    device: torch.device,
    *,
    budget_seconds: float = BUDGET_SECONDS,
) -> Iterator[Rung]:
    """Try every candidate on top of those kept before it; ``budget_seconds`` for its rounds, builds apart."""
    stack: list[Optimization] = []
    total = 1.0
    for each in candidates:
        rivals = tuple(kept for kept in stack if decide_the_same(kept, each))
        higher = [*(kept for kept in stack if kept not in rivals), each]
        variant, so_far = step_of(workload, kind, higher), step_of(workload, kind, stack)
        try:
            gain, evidence = measured(variant, so_far, step_of(workload, kind, ()), device, budget_seconds)
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises, the ladder goes on
            yield Rung(technique=each, kept=False, reason=why_not(error))
            free_memory(device)
            continue
        kept = gain.low > WORTH
        reason = evidence[str(each)] if kept else "slower" if gain.high < 1 else "does not pay"
        yield Rung(technique=each, kept=kept, reason=reason, gain=gain, total=total * gain.median, instead_of=rivals)
        if kept:
            stack = higher
            total *= gain.median


def decide_the_same(first: Optimization, second: Optimization) -> bool:
    """Whether one can stand in the other's place."""
    alike = (first.slot or first.name) == (second.slot or second.name)
    return alike and clashes((first, second)) is not None


def summit(
    workload: Workload, kind: str, stack: Sequence[Optimization], device: torch.device, budget_seconds: float
) -> Summit:
    """The stack beside the plain step, and how much of the device it uses."""
    best = step_of(workload, kind, stack)
    plain, twin = (step_of(workload, kind, ()) for _ in range(2))
    speedup, _ = measured(best, plain, twin, device, budget_seconds)
    best.build(device)
    try:
        part_if_tried([best])
        seconds = median_seconds(best, device, budget_seconds)
        precision = main_precision(best)
    finally:
        best.release()
    return Summit(
        stack=tuple(stack),
        speedup=speedup,
        samples_per_second=best.samples / seconds,
        flops_per_second=model_flops(workload, kind, device) / seconds,
        precision=precision,
        peak_flops_per_second=measured_peaks(device, (precision,)).flops_per_second[precision],
    )


def main_precision(step: Step) -> str:
    """In which precision most FLOPs of a built step are done."""
    with step.active():
        flops = work_of(step).flops
    return max(flops, key=lambda precision: flops[precision], default="float32")


def model_flops(workload: Workload, kind: str, device: torch.device) -> int:
    """FLOPs of one plain step."""
    step = step_of(workload, kind, ())
    step.build(device)
    try:
        with step.active():
            return sum(work_of(step).flops.values())
    finally:
        step.release()


def part_if_tried(steps: Iterable[Step]) -> None:
    """Let built steps run in a thread each where cuDNN tries algorithms in one of them: see ``apart.py``."""
    steps = list(steps)
    if any(isinstance(each, CudnnBenchmark) for step in steps for each in step.optimizations):
        for step in steps:
            step.run_apart()


def why_not(error: Exception) -> str:
    """One sentence for a candidate that failed."""
    if isinstance(error, NotInEffect):
        return str(error) if "not in effect" in str(error) else f"not in effect: {error}"
    if isinstance(error, (Unsuitable, ArithmeticError)):
        return str(error)
    if is_out_of_memory(error):
        return "out of memory"
    first_line = next(iter(str(error).strip().splitlines()), "")
    return f"raised {type(error).__name__}: {first_line}"


def measured(
    variant: Step, against: Step, plain: Step, device: torch.device, budget_seconds: float = BUDGET_SECONDS
) -> tuple[Interval, dict[str, str]]:
    """The speedup of ``variant`` over ``against``, and its proofs; its result is checked against that of ``plain``.

    Raises:
        Unsuitable: where it cannot be used.
        ArithmeticError: where its result is wrong.
        NotInEffect: where it does nothing.
    """
    reason = variant.unsuitable(device)
    if reason:
        raise Unsuitable(reason)
    try:
        against.build(device)
        variant.build(device)  # after the other: building compiled code forgets what was compiled before
        part_if_tried([against, variant])
        before = compiled_graphs()
        one_round(variant, device)
        graphs = compiled_graphs() - before
        check_result(variant, plain, device)
        gain = side_by_side(variant, against, device, budget_seconds)
        return gain, variant.proof({"compiled_graphs": graphs, **device_counts(variant, device)})
    finally:
        variant.release()
        against.release()


def check_result(variant: Step, plain: Step, device: torch.device) -> None:
    """Compare one step of ``variant``, which is built, with one of a fresh plain twin.

    Raises:
        ArithmeticError: saying how far they are apart.
    """
    plain.build(device)
    try:
        wrong = disagreement(variant.outcome(), plain.reference_outcome(variant), variant.tolerance)
    finally:
        plain.release()
    if wrong:
        raise ArithmeticError(f"wrong result: {wrong}")


def compiled_graphs() -> int:
    """Graphs that dynamo captured: its private counter, read only here; a test fails when it changes."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def device_counts(step: Step, device: torch.device) -> dict[str, int]:
    """Kernels and CUDA graphs that one run launches, for the proofs that ask; nothing on a CPU."""
    if device.type != "cuda":
        return {}
    from torch.profiler import ProfilerActivity, profile

    with step.active(), profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        step.run()
        torch.cuda.synchronize(device)
    counts = {each.key: each.count for each in profiler.key_averages()}
    graphs = counts.get("cudaGraphLaunch", 0)
    kernels = sum(count for name, count in counts.items() if name.startswith(("cudaLaunchKernel", "cuLaunchKernel")))
    return {"kernel_launches": kernels + graphs, "graph_launches": graphs}
