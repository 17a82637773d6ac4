"""The statistics of a verdict: moderated variance, Student's t, Holm, and the smallest change that could be seen.

Pure functions over arrays of log ratios and log times; a difference of 0.03 is a change of about 3 %.

Sources: Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", Statistical Applications in Genetics and Molecular Biology 3 (2004), sections 4 and 6.2, for the variance;
Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979), 65-70.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, polygamma, stdtr, stdtrit

Floats = NDArray[np.float64]

SMALLEST_VARIANCE = 1e-8
"""Of a log ratio: 0.01 %, finer than anything a benchmark repeats, so that equal samples are not infinitely certain."""
FEWEST_FOR_PRIOR = 10
"""Benchmarks below which the variances say too little about how variances scatter."""
MOST_DEGREES = 40.0
"""What the suite or the ledger may count for at most: however much alike benchmarks look, one of its own kind must be
able to speak, and the machine of the calibration is not quite the machine of today."""
POWER = 0.8
"""Of the smallest detectable change."""
STEP, STEPS = 0.0005, 14_000
"""Of the log ratio, in the search for the smallest detectable change: up to a factor of a thousand."""


@dataclass(frozen=True)
class Variance:
    """A variance and how many degrees of freedom stand behind it; of several, arrays of both."""

    value: Floats | float
    degrees: Floats | float


NOTHING_KNOWN = Variance(0.0, 0.0)
"""As a prior: no opinion."""


def sample_variance(values: Sequence[float]) -> tuple[float, float]:
    """The unbiased variance of ``values`` and its degrees of freedom; ``(0, 0)`` of a single value."""
    if len(values) < 2:
        return 0.0, 0.0
    return float(np.var(np.asarray(values), ddof=1)), len(values) - 1.0


def trigamma_inverse(value: float) -> float:
    """The x > 0 whose trigamma is ``value`` > 0: Newton's method on 1 / trigamma, Smyth 2004, appendix.

    Raises:
        ValueError: where ``value`` is not positive.
    """
    if not value > 0:
        raise ValueError(f"trigamma is positive everywhere, so nothing has the value {value}")
    if value > 1e7:  # the asymptotes, where Newton's steps vanish in rounding
        return float(1 / math.sqrt(value))
    if value < 1e-6:
        return float(1 / value)
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x


def fit_prior(variances: ArrayLike, degrees: ArrayLike) -> Variance:
    """How the true variances of a suite scatter: their typical value, worth so many degrees of freedom.

    ``variances`` and ``degrees``: one per benchmark; those with 0 degrees or that are not finite are ignored. Method of
    moments on the logarithms (Smyth 2004, section 6.2). Degrees are infinite where the variances differ no more than
    chance explains. Nothing is known (0 degrees) from fewer than ten benchmarks.
    """
    s2, d = np.asarray(variances, float), np.asarray(degrees, float)
    usable = (d > 0) & np.isfinite(s2)
    s2, d = np.maximum(s2[usable], SMALLEST_VARIANCE), d[usable]
    if len(s2) < FEWEST_FOR_PRIOR:
        return NOTHING_KNOWN
    e = np.log(s2) - digamma(d / 2) + np.log(d / 2)
    scatter = float(np.var(e, ddof=1) - np.mean(polygamma(1, d / 2)))
    if scatter <= 0:
        return Variance(math.exp(float(np.mean(e))), math.inf)
    d0 = 2 * trigamma_inverse(scatter)
    s0 = math.exp(float(np.mean(e)) + float(digamma(d0 / 2)) - math.log(d0 / 2))
    return Variance(s0, d0)


def moderated(own: Variance, prior: Variance, ledger: Variance = NOTHING_KNOWN) -> Variance:
    """Each variance drawn towards the suite's and towards what this machine's ledger knows of the benchmark.

    The mean of the three, weighted with their degrees of freedom, of which the result has the sum; where nothing at all
    is known, 0 degrees. The suite and the ledger count for 40 degrees at most. Arrays broadcast.
    """
    known = np.minimum(ledger.degrees, MOST_DEGREES)
    typical = np.minimum(prior.degrees, MOST_DEGREES)
    degrees = np.asarray(own.degrees + typical + known, float)
    weighted = own.value * np.asarray(own.degrees) + prior.value * typical + ledger.value * known
    value = np.divide(weighted, degrees, out=np.full(degrees.shape, np.nan), where=degrees > 0)
    return Variance(np.maximum(value, SMALLEST_VARIANCE), degrees)


def upper_tail(statistic: ArrayLike, degrees: ArrayLike) -> Floats:
    """P(T > statistic) of Student's t: the one-sided p. Infinite degrees are the normal distribution; 0 give 1."""
    statistic, degrees = np.asarray(statistic, float), np.asarray(degrees, float)
    tail = stdtr(np.where(degrees > 0, np.minimum(degrees, 1e10), 1.0), -statistic)
    return np.where((degrees > 0) & np.isfinite(tail), tail, 1.0)


def critical(tail: float, degrees: float) -> float:
    """The t that ``tail`` of the distribution lies above; infinite where nothing is known."""
    return -float(stdtrit(min(degrees, 1e10), tail)) if degrees > 0 else math.inf


def holm(p_values: ArrayLike, family: int = 0) -> Floats:
    """P-values adjusted so that, over all of them, a false rejection is as probable as over one (Holm 1979).

    ``family``: how many hypotheses there are, where more than those given; the others' p count as 1.

    Raises:
        ValueError: for a p-value that is NaN or outside 0 to 1.
    """
    p = np.asarray(p_values, float)
    if not np.all((p >= 0) & (p <= 1)):
        raise ValueError("p-values lie between 0 and 1")
    order = np.argsort(p, kind="stable")
    steps = p[order] * (max(family, len(p)) - np.arange(len(p)))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


@dataclass(frozen=True)
class Hurdle:
    """What an estimate of a log ratio must pass to count: significant, and as large as matters."""

    standard_error: float
    degrees: float
    tail: float
    """The largest one-sided p that passes."""
    smallest: float
    """The log ratio that it must reach."""

    @property
    def height(self) -> float:
        """The smallest estimate that passes both; infinite where nothing is known of its error."""
        if not (self.degrees > 0 and math.isfinite(self.standard_error)):
            return math.inf
        return max(self.smallest, critical(self.tail, self.degrees) * self.standard_error)

    def probability(self, change: float) -> float:
        """That the estimate passes where the true log ratio is ``change``."""
        if not math.isfinite(self.height):
            return 0.0
        error = max(self.standard_error, math.sqrt(SMALLEST_VARIANCE))
        return float(upper_tail((self.height - change) / error, self.degrees))


def detection(change: float, hurdles: Sequence[Hurdle]) -> float:
    """Probability that a true log ratio passes all hurdles, each with data of its own."""
    return math.prod(hurdle.probability(change) for hurdle in hurdles)


def smallest_detectable_change(hurdles: Sequence[Hurdle], power: float = POWER) -> float:
    """The smallest true change, as a fraction, that passes all hurdles with probability ``power``.

    To 0.05 %; infinite where no change up to a factor of a thousand does.
    """
    steps = bisect.bisect_left(range(STEPS), power, key=lambda number: detection(number * STEP, hurdles))
    return math.inf if steps == STEPS else math.expm1(steps * STEP)


def half_width(standard_error: float, degrees: float, confidence: float = 0.95) -> float:
    """Half of the two-sided interval around a mean, by Student's t."""
    return critical((1 - confidence) / 2, degrees) * standard_error
