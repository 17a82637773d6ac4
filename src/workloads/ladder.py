"""Everything at once, by a greedy ladder: add one technique at a time, keep what pays.

Each candidate is measured beside the stack so far, and kept where even the lower end of the interval is a gain. Of
techniques that exclude each other the first that pays stays. A greedy search may miss two techniques that only pay
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from workloads.agreement import disagreement
from workloads.capacity import free_memory, is_out_of_memory
from workloads.optimizations import CATALOGUE
from workloads.steps import Step
from workloads.timing import Interval, one_round, side_by_side
from workloads.workload import NotInEffect, Optimization, Unsuitable, Workload

KINDS = ("train", "inference")
WORTH = 1.01  # the least gain, at the lower end of its interval: less does not pay for another moving part
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


def default_candidates(kind: str) -> list[Optimization]:
    """Techniques of the catalogue that may pay and leave the result as it is, in the order in which they are applied.

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
    return sorted(fitting, key=lambda each: each.order)


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
    """Try every candidate on top of those kept before it."""
    stack: list[Optimization] = []
    total = 1.0
    for each in candidates:
        variant, so_far = step_of(workload, kind, [*stack, each]), step_of(workload, kind, stack)
        try:
            gain, evidence = measured(variant, so_far, step_of(workload, kind, ()), device, budget_seconds)
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises, the ladder goes on
            yield Rung(technique=each, kept=False, reason=why_not(error))
            free_memory(device)
            continue
        kept = gain.low > WORTH
        reason = evidence[str(each)] if kept else "slower" if gain.high < 1 else "does not pay"
        yield Rung(technique=each, kept=kept, reason=reason, gain=gain, total=total * gain.median)
        if kept:
            stack.append(each)
            total *= gain.median


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
