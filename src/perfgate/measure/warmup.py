"""Warm-up: run until the signal is steady or the budget is spent, and say which."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

WINDOW = 5  # rounds per median
AGREEMENT = 0.01  # two successive medians this close are steady


@dataclass(frozen=True)
class Warmup:
    """How a warm-up ended."""

    steady: bool
    rounds: int
    round_seconds: float
    """Median of the last window: what a round will take."""

    def __str__(self) -> str:
        """One phrase for the record."""
        return f"{'steady' if self.steady else 'budget spent, not steady'} after {self.rounds} rounds"


def is_steady(durations: list[float]) -> bool:
    """Whether the medians of the last two windows of five agree within 1 %."""
    if len(durations) < 2 * WINDOW:
        return False
    earlier = statistics.median(durations[-2 * WINDOW : -WINDOW])
    return abs(statistics.median(durations[-WINDOW:]) - earlier) <= AGREEMENT * earlier


def warm_up(
    one_round: Callable[[], float], budget_seconds: float, *, clock: Callable[[], float] = time.perf_counter
) -> Warmup:
    """Call ``one_round`` (which returns its seconds) until steady; at least twice, whatever the budget."""
    durations: list[float] = []
    deadline = clock() + budget_seconds
    while len(durations) < 2 or (clock() < deadline and not is_steady(durations)):
        durations.append(one_round())
    return Warmup(is_steady(durations), len(durations), statistics.median(durations[-WINDOW:]))
