"""Warm-up: run until the signal is steady or the budget is spent, and say which."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

WINDOW = 5  # rounds per median
AGREEMENT = 0.01  # two successive medians this close are steady
LEAST_SECONDS = {"cpu": 0.0, "cuda": 0.3}
"""Room for an idle GPU to raise its clock, since steps of the slow clock look steady, too; not measured yet."""
CLOCK_AGREEMENT = 0.02  # of two successive readings: boost clocks go in steps of 15 MHz, 1 % of 1500 MHz


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


class SteadyClock:
    """Whether a GPU's clock has come up: an idle GPU, or one without persistence mode, starts slow."""

    def __init__(self, read: Callable[[], float | None]) -> None:
        """``read`` gives the clock now, in any unit, or ``None`` where nobody tells."""
        self._read = read
        self._last: float | None = None

    def __call__(self) -> bool:
        """Whether this reading agrees with the one before within 2 %; an unknown clock holds nothing up."""
        last, self._last = self._last, self._read()
        if self._last is None:
            return True
        return last is not None and abs(self._last - last) <= CLOCK_AGREEMENT * last


def warm_up(
    one_round: Callable[[], float],
    budget_seconds: float,
    *,
    settled: Callable[[], bool] = lambda: True,
    least_seconds: float = 0.0,
    clock: Callable[[], float] = time.perf_counter,
) -> Warmup:
    """Call ``one_round`` (which returns its seconds) until steady and ``settled``; at least twice, whatever the budget.

    ``settled`` is asked after rounds that look steady, and not before ``least_seconds``, of which the budget is at
    least twice as much.
    """
    durations: list[float] = []
    started = clock()
    deadline, earliest = started + max(budget_seconds, 2 * least_seconds), started + least_seconds
    steady = False
    while len(durations) < 2 or (not steady and clock() < deadline):
        durations.append(one_round())
        steady = is_steady(durations) and clock() >= earliest and settled()
    return Warmup(steady, len(durations), statistics.median(durations[-WINDOW:]))
