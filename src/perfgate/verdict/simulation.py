"""Simulated suites whose truth is known: log times of processes, pairs, runs and rounds. What is assumed: ``power``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfgate.verdict.statistics import Floats

BENCHMARKS = 60
SLOWED = 3
"""Of them truly slower, where any are: the first, which is as good as any three."""
SCATTER = 0.4
"""Standard deviation of the log of a benchmark's noise around the suite's typical noise."""
OUTLIERS = 0.02
"""Share of processes that are slow throughout a benchmark, where nothing else is given."""
OUTLIER_RANGE = (np.log(1.10), np.log(1.20))
DRIFT = 0.01
"""Standard deviation of the machine's change between two runs, the same for all benchmarks."""
RESIDUAL = 0.003
"""What is left of it with the canary subtracted, different for each benchmark."""
ROUNDS = 20


@dataclass(frozen=True)
class Suites:
    """Many suites at once: arrays of suites x benchmarks."""

    sigma: Floats
    """Standard deviation of the log time between processes."""
    truth: Floats
    """Log of head's time over base's."""
    outliers: float = OUTLIERS
    """Share of processes that are slow throughout a benchmark."""


def draw(rng: np.random.Generator, count: int, pair_noise: float, change: float, outliers: float = OUTLIERS) -> Suites:
    """``count`` suites in which a pair has typically ``pair_noise``, and three benchmarks are slower by ``change``."""
    shape = (count, BENCHMARKS)
    sigma = pair_noise / np.sqrt(2) * np.exp(SCATTER * rng.standard_normal(shape))
    truth = np.zeros(shape)
    truth[:, :SLOWED] = np.log1p(change)
    return Suites(sigma, truth, outliers)


def processes(rng: np.random.Generator, suites: Suites, count: int) -> Floats:
    """Log times of fresh processes of base: suites x benchmarks x ``count``."""
    shape = (*suites.sigma.shape, count)
    slow = rng.random(shape) < suites.outliers
    return suites.sigma[..., None] * rng.standard_normal(shape) + slow * rng.uniform(*OUTLIER_RANGE, shape)


def pairs(rng: np.random.Generator, suites: Suites, count: int) -> Floats:
    """Log ratios of pairs with alternating rounds, so without drift: suites x benchmarks x ``count``."""
    return suites.truth[..., None] + processes(rng, suites, count) - processes(rng, suites, count)


def states(rng: np.random.Generator, suites: Suites, count: int, *, canary: bool) -> Floats:
    """What the machine adds to the log times of ``count`` runs: suites x benchmarks (or 1) x ``count``."""
    deviation, benchmarks = (RESIDUAL, suites.sigma.shape[1]) if canary else (DRIFT, 1)
    return rng.normal(0.0, deviation / np.sqrt(2), (len(suites.sigma), benchmarks, count))


def history(rng: np.random.Generator, suites: Suites, runs: int, *, canary: bool) -> Floats:
    """Log times of saved runs of base, one process each: suites x benchmarks x ``runs``."""
    return processes(rng, suites, runs) + states(rng, suites, runs, canary=canary)


def session(rng: np.random.Generator, suites: Suites, count: int, *, canary: bool) -> Floats:
    """Log times of processes of head within one session, so in one state: suites x benchmarks x ``count``."""
    return suites.truth[..., None] + processes(rng, suites, count) + states(rng, suites, 1, canary=canary)


def rounds(rng: np.random.Generator, suites: Suites, log_times: Floats) -> Floats:
    """Times in seconds of all rounds of some processes: suites x benchmarks x rounds, evenly from each process."""
    each = ROUNDS // log_times.shape[-1]
    skewed = (rng.gamma(4.0, size=(*log_times.shape, each)) - 4.0) / 2.0  # mean 0, deviation 1, skewness 1
    logs = log_times[..., None] + suites.sigma[..., None, None] * skewed
    return np.exp(logs.reshape(*suites.sigma.shape, -1))
