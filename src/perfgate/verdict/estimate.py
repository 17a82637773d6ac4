"""Estimates with intervals, of any distribution. Standard library only, for reports that judge nothing."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95
LARGE = 500  # values, from where binomial coefficients grow out of a float's range


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

    Conover, Practical Nonparametric Statistics (3rd ed. 1999), section 3.2: the values of rank k and n + 1 - k enclose
    the median with probability 1 - 2 P(Binomial(n, 1/2) < k). With fewer than six values the interval is their range.
    """
    ordered = sorted(values)
    rank = _rank(len(ordered), (1 - confidence) / 2)
    return Estimate(statistics.median(ordered), ordered[rank], ordered[-1 - rank])


def _rank(count: int, tail: float) -> int:
    """The largest k (from 0) with P(Binomial(count, 1/2) <= k) <= ``tail``; 0 where there is none."""
    if count > LARGE:  # the normal approximation, rounded outwards
        deviations = -statistics.NormalDist().inv_cdf(tail)
        return math.floor((count - deviations * math.sqrt(count)) / 2) - 1
    cumulative, rank = 0.5**count, 0
    while cumulative + math.comb(count, rank + 1) * 0.5**count <= tail:
        rank += 1
        cumulative += math.comb(count, rank) * 0.5**count
    return rank
