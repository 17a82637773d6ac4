"""Estimates with intervals. Pure functions."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A value with its interval."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval, relative to the value and measured in the logarithm."""
        return math.log(self.high / self.low) / 2


def median_estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """The median with the order-statistics interval: it holds for every distribution of independent values.

    Conover, Practical Nonparametric Statistics (3rd ed. 1999), section 3.2: the ranks k and n + 1 - k enclose the
    median with probability 1 - 2 P(Binomial(n, 1/2) < k). With fewer than six values the interval is their range.
    """
    ordered = sorted(values)
    count = len(ordered)
    below, tail = 0, 0.5**count
    while below + 1 <= (count - 1) // 2 and tail + math.comb(count, below + 1) * 0.5**count <= (1 - confidence) / 2:
        below += 1
        tail += math.comb(count, below) * 0.5**count
    rank = below if tail <= (1 - confidence) / 2 else 0
    return Estimate(statistics.median(ordered), ordered[rank], ordered[count - 1 - rank])


def ratio_of(head: Estimate, base: Estimate) -> Estimate:
    """Divide head by base; the two half-widths add as independent errors of the logarithms do."""
    half = math.hypot(head.half_width, base.half_width)
    value = head.value / base.value
    return Estimate(value, value * math.exp(-half), value * math.exp(half))
