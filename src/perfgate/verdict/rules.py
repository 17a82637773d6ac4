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


def of_pairs(differences: Sequence[Sequence[float]], ledger: Variance = NOTHING_KNOWN) -> Evidence:
    """Evidence from pairs of processes: a row of log ratios per metric, one value per pair; rows may differ in length."""
    own = _variances(differences)
    variance = moderated(own, fit_prior(own.value, own.degrees), ledger)
    counts = np.array([len(row) for row in differences], float)
    return Evidence(_means(differences), np.sqrt(variance.value / counts), np.asarray(variance.degrees))


def of_groups(
    base: Sequence[Sequence[float]], head: Sequence[Sequence[float]], ledger: Variance = NOTHING_KNOWN
) -> Evidence:
    """Evidence from saved runs: rows of logs per metric, one value per run; the groups need not be equally large.

    Their common variance, moderated; where neither ledger nor the suite tell it, a stated default takes part.
    """
    own, other = _variances(base), _variances(head)
    degrees = np.asarray(own.degrees + other.degrees)
    pooled = (own.value * own.degrees + other.value * other.degrees) / np.maximum(degrees, 1.0)
    both = Variance(pooled, degrees)
    prior = fit_prior(pooled, degrees)
    if prior.degrees == 0:  # where the ledger knows a benchmark, it speaks instead of the default
        prior = Variance(UNCALIBRATED.value, np.where(np.asarray(ledger.degrees) > 0, 0.0, UNCALIBRATED.degrees))
    variance = moderated(both, prior, ledger)
    shares = np.array([1 / len(old) + 1 / len(new) for old, new in zip(base, head, strict=True)])
    return Evidence(_means(head) - _means(base), np.sqrt(variance.value * shares), np.asarray(variance.degrees))


def promising(evidence: Evidence, limits: Limits) -> Booleans:
    """Which metrics may have become worse, and are worth measuring again."""
    return (evidence.p < SCREEN_TAIL) & (evidence.mean > np.log1p(limits.threshold * SCREEN_PART))


def proven(evidence: Evidence, limits: Limits) -> Booleans:
    """Which became worse: significantly over all metrics given (Holm), and by the threshold at least."""
    return (holm(evidence.p) <= limits.alpha) & (evidence.mean >= limits.log)


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


def _means(rows: Sequence[Sequence[float]]) -> Floats:
    return np.array([float(np.mean(row)) for row in rows])
