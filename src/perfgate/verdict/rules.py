"""The rules on noisy metrics: what the data say about each log ratio, which are worth a second look, what is proven.

Two stages. The first looks at everything and only nominates candidates, generously. The second measures those again;
only its fresh data decide, so that nothing is called slower for having been unlucky once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from perfgate.verdict.statistics import (
    FEWEST_FOR_PRIOR,
    NOTHING_KNOWN,
    Floats,
    Hurdle,
    Variance,
    fit_prior,
    holm,
    moderated,
    sample_variance,
    smallest_detectable_change,
    upper_tail,
)

Booleans = NDArray[np.bool_]

SCREEN_TAIL = 0.10
"""One-sided p of a candidate: one in ten clean metrics is measured again, and few real changes are missed."""
SCREEN_PART = 0.5
"""A candidate's estimate is at least this part of the threshold."""
FARTHEST, ROBUST = 4.0, 1.4826
"""How many deviations an outlier is drawn in to, and standard deviations per median absolute deviation.

One disturbed process in fifty hides a real change in every fifth benchmark otherwise (``python -m
perfgate.verdict.power``); three deviations would cost more false alarms where machines are noisy.
"""
UNCALIBRATED = Variance(0.05**2, 10.0)
"""Between two processes of one benchmark, where this machine has no ledger and too few runs to tell.

Shared machines gave 2-7 %, see docs/methods.md; few runs can then show only large changes, and the verdict says so.
"""


@dataclass(frozen=True)
class Evidence:
    """What a stage knows about several log ratios (above 0 is worse): one array element each."""

    mean: Floats
    standard_error: Floats
    degrees: Floats

    def row(self, number: int) -> tuple[float, float, float]:
        """Mean, standard error and degrees of freedom of one."""
        return float(self.mean[number]), float(self.standard_error[number]), float(self.degrees[number])

    def at(self, rows: Sequence[int]) -> Evidence:
        """On some of the ratios."""
        chosen = list(rows)
        return Evidence(self.mean[chosen], self.standard_error[chosen], self.degrees[chosen])

    def negated(self) -> Evidence:
        """The same read the other way round: above 0 is better."""
        return Evidence(-self.mean, self.standard_error, self.degrees)

    @property
    def p(self) -> Floats:
        """One-sided p-values against no change or an improvement."""
        with np.errstate(invalid="ignore"):
            return upper_tail(self.mean / self.standard_error, self.degrees)


@dataclass(frozen=True)
class Limits:
    """What is too much, per metric: one array element each."""

    threshold: Floats
    """Of the change, as a fraction."""
    alpha: Floats
    """Probability of a false alarm over the whole suite."""

    @property
    def log(self) -> Floats:
        """Thresholds as log ratios."""
        return np.log1p(self.threshold)

    def at(self, rows: Sequence[int]) -> Limits:
        """Those of some of the metrics."""
        return Limits(self.threshold[list(rows)], self.alpha[list(rows)])


@dataclass(frozen=True)
class Suite:
    """What all benchmarks together tell about noise."""

    prior: Variance
    """How the variances of the suite scatter."""
    deviation: float
    """The median of the benchmarks' standard deviations, to tell outliers by; NaN where there are too few to say."""


def suite_of(rows: Sequence[Sequence[float]]) -> Suite:
    """The scatter of a suite: a row of values per benchmark."""
    deviations = [float(np.std(row, ddof=1)) for row in rows if len(row) > 1]
    typical = float(np.median(deviations)) if len(deviations) >= FEWEST_FOR_PRIOR else math.nan
    own = _variances(drawn_in(rows, rows, typical))
    return Suite(fit_prior(own.value, own.degrees), typical)


def drawn_in(
    rows: Sequence[Sequence[float]], scales: Sequence[Sequence[float]], deviation: float
) -> list[Sequence[float]]:
    """Rows whose outliers are drawn in to four deviations around the row's median.

    The deviation is the suite's typical one or the row's own robust one, whichever is larger, so that a benchmark that
    is noisier than the others keeps its noise. ``scales`` are the rows to take their own deviations from. Nothing is
    changed where the typical ``deviation`` is unknown.
    """
    if math.isnan(deviation):
        return list(rows)
    result: list[Sequence[float]] = []
    for row, scale in zip(rows, scales, strict=True):
        own = ROBUST * float(np.median(np.abs(np.asarray(scale) - np.median(scale)))) if len(scale) else 0.0
        reach = FARTHEST * max(deviation, own)
        middle = float(np.median(row)) if len(row) else 0.0
        result.append([min(max(value, middle - reach), middle + reach) for value in row])
    return result


def of_pairs(
    differences: Sequence[Sequence[float]], ledger: Variance = NOTHING_KNOWN, suite: Suite | None = None
) -> Evidence:
    """Evidence from pairs of processes: a row of log ratios per metric, one per pair; rows may differ in length.

    ``suite`` is that of these rows unless given: a second stage has few rows and takes the first one's.
    """
    suite = suite or suite_of(differences)
    rows = drawn_in(differences, differences, suite.deviation)
    variance = moderated(_variances(rows), suite.prior, ledger)
    shares = np.array([_share(row) for row in rows])
    return Evidence(_means(rows), np.sqrt(variance.value * shares), np.asarray(variance.degrees))


def of_groups(
    base: Sequence[Sequence[float]],
    head: Sequence[Sequence[float]],
    ledger: Variance = NOTHING_KNOWN,
    suite: Suite | None = None,
) -> Evidence:
    """Evidence from saved runs: rows of logs per metric, one value per run; the groups need not be equally large.

    Their common variance, moderated; where neither ledger nor the suite tell it, a stated default takes part as long as
    there are fewer than ten runs.
    ``suite`` is that of the rows of ``base`` unless given.
    """
    suite = suite or suite_of(base)
    old, new = drawn_in(base, base, suite.deviation), drawn_in(head, base, suite.deviation)
    own, other = _variances(old), _variances(new)
    degrees = np.asarray(own.degrees + other.degrees)
    pooled = (own.value * own.degrees + other.value * other.degrees) / np.maximum(degrees, 1.0)
    prior = suite.prior
    if prior.degrees == 0:  # the default speaks where the ledger is silent, and the less the more runs there are
        missing = np.maximum(UNCALIBRATED.degrees - degrees, 0.0)
        prior = Variance(UNCALIBRATED.value, np.where(np.asarray(ledger.degrees) > 0, 0.0, missing))
    variance = moderated(Variance(pooled, degrees), prior, ledger)
    shares = np.array([_share(before) + _share(now) for before, now in zip(old, new, strict=True)])
    return Evidence(_means(new) - _means(old), np.sqrt(variance.value * shares), np.asarray(variance.degrees))


def promising(evidence: Evidence, limits: Limits) -> Booleans:
    """Which metrics may have become worse, and are worth measuring again."""
    return (evidence.p < SCREEN_TAIL) & (evidence.mean > np.log1p(limits.threshold * SCREEN_PART))


def proven(evidence: Evidence, limits: Limits, family: int = 0) -> Booleans:
    """Which became worse: significantly over all metrics given (Holm), and by the threshold at least.

    ``family``: how many metrics there were before candidates were chosen, where the second look is not independent of
    the first: against saved runs, both compare with the same history, and its error is the same in both.
    """
    return (holm(evidence.p, family) <= limits.alpha) & (evidence.mean >= limits.log)


def detectable(
    first: tuple[float, float], second: tuple[float, float] | None, threshold: float, alpha: float, candidates: int
) -> float:
    """The smallest change, as a fraction, that the stages find with 80 % probability.

    ``first`` and ``second``: standard error and degrees of freedom of each stage; ``second`` is ``None`` where the
    first decides alone. ``candidates``: how many metrics share ``alpha``.
    """
    final = Hurdle(*(second or first), tail=alpha / max(candidates, 1), smallest=math.log1p(threshold))
    screen = Hurdle(*first, tail=SCREEN_TAIL, smallest=math.log1p(threshold * SCREEN_PART))
    return smallest_detectable_change([screen, final] if second else [final])


def _variances(rows: Sequence[Sequence[float]]) -> Variance:
    found = np.array([sample_variance(row) for row in rows], float).reshape(-1, 2)
    return Variance(found[:, 0], found[:, 1])


def _share(row: Sequence[float]) -> float:
    """The variance of a mean as a part of that of a value; infinite without values."""
    return 1 / len(row) if len(row) else math.inf


def _means(rows: Sequence[Sequence[float]]) -> Floats:
    return np.array([float(np.mean(row)) if len(row) else np.nan for row in rows])
