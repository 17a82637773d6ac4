"""A small timer for decisions at the command line: steps measured one by one, or two of them side by side.

perfgate's instrument is the thorough one, and may not be imported here.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch

from workloads.steps import Step

FEWEST_ROUNDS = 8  # of five pairs, not even the extremes bound a median with 95 % confidence
MOST_ROUNDS = 200  # microsecond steps would collect more than anyone needs
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A ratio with its 95 % interval; a speedup above 1 is faster."""

    low: float
    median: float
    high: float

    def __str__(self) -> str:
        """For example ``1.52x (1.49-1.55)``."""
        return f"{self.median:.2f}x ({self.low:.2f}-{self.high:.2f})"


def synchronize(device: torch.device) -> None:
    """Wait until ``device`` has done what it was given; a CPU has already."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Wall seconds of one call, from an idle device to an idle device."""
    synchronize(device)
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def one_round(step: Step, device: torch.device) -> float:
    """Wall seconds of one run; global state is set outside of them."""
    with step.active():
        return seconds_of(step.run, device)


def repeat(work: Callable[[], object], budget_seconds: float) -> None:
    """Call ``work`` until the budget is spent, at least 8 and at most 200 times."""
    end = time.perf_counter() + budget_seconds
    for number in range(MOST_ROUNDS):
        if number >= FEWEST_ROUNDS and time.perf_counter() > end:
            return
        work()


def median_seconds(step: Step, device: torch.device, budget_seconds: float) -> float:
    """Median wall seconds of a step that is built, after a warm-up of a quarter of the budget."""
    repeat(partial(one_round, step, device), budget_seconds / 4)
    rounds: list[float] = []
    repeat(lambda: rounds.append(one_round(step, device)), budget_seconds * 3 / 4)
    return statistics.median(rounds)


def side_by_side(variant: Step, plain: Step, device: torch.device, budget_seconds: float) -> Interval:
    """The speedup of ``variant`` over ``plain``, both built, in rounds A B B A so that drift cancels."""
    for step in (plain, variant):
        repeat(partial(one_round, step, device), budget_seconds / 8)
    ratios: list[float] = []

    def pair() -> None:
        order = (variant, plain) if len(ratios) % 2 else (plain, variant)
        seconds = {step: one_round(step, device) for step in order}
        ratios.append(seconds[plain] / seconds[variant])

    repeat(pair, budget_seconds * 3 / 4)
    return median_interval(ratios)


def median_interval(ratios: Sequence[float]) -> Interval:
    """The median of paired ratios, on a logarithmic scale, with an interval that assumes no distribution.

    The k-th smallest and largest values bound the median with the confidence of a sign test (Conover, "Practical
    Nonparametric Statistics", section 3.2).
    """
    logs = sorted(math.log(each) for each in ratios)
    outside = _outside(len(logs))
    return Interval(
        low=math.exp(logs[outside]),
        median=math.exp(statistics.median(logs)),
        high=math.exp(logs[-1 - outside]),
    )


def _outside(count: int) -> int:
    """How many of ``count`` sorted values may be left out at either end."""
    tail, outside = 0.0, 0
    while outside < count // 2:
        tail += math.comb(count, outside) / 2**count
        if 2 * tail > 1 - CONFIDENCE:
            break
        outside += 1
    return max(0, outside - 1)
