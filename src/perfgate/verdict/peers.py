"""The decision rules of other tools, to compare ours with: own code after their documentation, constants as they ship.

Each takes arrays whose last axis holds the values of one benchmark and returns what the tool would call slower. Times
are in seconds and above 0; more is worse. What a tool does beside deciding (choosing rounds, storing, plotting) is not
rebuilt.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from perfgate.verdict.statistics import Floats, holm

Booleans = NDArray[np.bool_]

COMPARE_FAIL = 0.05  # the example in pytest-benchmark's documentation of the option
U_TEST_ALPHA = 0.05  # default of --alpha in google/benchmark's compare.py
ASV_P = 0.002  # default of asv's is_different
ASV_FACTOR = 1.1  # default of asv continuous --factor
CRITERION_P = 0.05  # default significance_level
CRITERION_NOISE = 0.01  # default noise_threshold
CRITERION_CONFIDENCE = 0.95  # default confidence_level
BENCHER_BOUNDARY = 0.99  # --threshold-upper-boundary in bencher's documentation
CONBENCH_Z = 5.0  # default z-score threshold


def compare_fail_median(base: Floats, head: Floats) -> Booleans:
    """pytest-benchmark ``--benchmark-compare-fail=median:5%``: rounds of one saved run and of one new one.

    https://pytest-benchmark.readthedocs.io/en/latest/comparing.html
    """
    return np.asarray(np.median(head, axis=-1) / np.median(base, axis=-1) - 1 > COMPARE_FAIL)


def compare_fail_min(base: Floats, head: Floats) -> Booleans:
    """pytest-benchmark ``--benchmark-compare-fail=min:5%``: rounds of one saved run and of one new one.

    https://pytest-benchmark.readthedocs.io/en/latest/comparing.html
    """
    return np.asarray(head.min(axis=-1) / base.min(axis=-1) - 1 > COMPARE_FAIL)


def u_test(base: Floats, head: Floats) -> Booleans:
    """google/benchmark's ``compare.py``: two-sided Mann-Whitney U on repetitions, and the larger median is red.

    https://github.com/google/benchmark/blob/main/docs/tools.md
    """
    return (_mann_whitney(base, head) < U_TEST_ALPHA) & (np.median(head, axis=-1) > np.median(base, axis=-1))


def asv_continuous(base: Floats, head: Floats) -> Booleans:
    """``asv continuous``: two-sided Mann-Whitney U at p < 0.002, and the medians a factor of 1.1 apart.

    Its fallback for samples too small for that p (fewer than 6 against 6) is left out.
    https://asv.readthedocs.io/en/stable/commands.html#asv-continuous
    https://github.com/airspeed-velocity/asv/blob/main/asv/_stats.py
    """
    return (_mann_whitney(base, head) < ASV_P) & (np.median(head, axis=-1) > ASV_FACTOR * np.median(base, axis=-1))


def criterion(base: Floats, head: Floats) -> Booleans:
    """criterion.rs: the means differ at p < 0.05, and the interval of their ratio lies above +1 %.

    Criterion bootstraps both the two-sided t-test and the interval; here both are Welch's, of the difference of means
    relative to the base mean, which is close with 20 rounds and more.
    https://bheisler.github.io/criterion.rs/book/analysis.html
    """
    p = stats.ttest_ind(head, base, axis=-1, equal_var=False).pvalue
    shares = head.var(axis=-1, ddof=1) / head.shape[-1], base.var(axis=-1, ddof=1) / base.shape[-1]
    degrees = sum(shares) ** 2 / (shares[0] ** 2 / (head.shape[-1] - 1) + shares[1] ** 2 / (base.shape[-1] - 1))
    half = stats.t.ppf((1 + CRITERION_CONFIDENCE) / 2, degrees) * np.sqrt(sum(shares))
    low = (head.mean(axis=-1) - half) / base.mean(axis=-1) - 1
    return np.asarray((p < CRITERION_P) & (low > CRITERION_NOISE))


def bencher(history: Floats, new: Floats) -> Booleans:
    """Bencher's t-test: above mean + t(0.99) standard deviations of the history's runs, one value each.

    https://bencher.dev/docs/explanation/thresholds/
    """
    limit = stats.t.ppf(BENCHER_BOUNDARY, history.shape[-1] - 1)
    return np.asarray(new > history.mean(axis=-1) + limit * history.std(axis=-1, ddof=1))


def conbench(history: Floats, new: Floats) -> Booleans:
    """Conbench's lookback z-score: more than 5 standard deviations above the mean of the history's runs.

    https://github.com/conbench/conbench/blob/main/conbench/entities/_comparator.py
    """
    return np.asarray(new - history.mean(axis=-1) > CONBENCH_Z * history.std(axis=-1, ddof=1))


def paired_t(differences: Floats, threshold: float, alpha: float) -> Booleans:
    """Not a tool but the textbook: one-sided paired t, Holm over the suite, and the mean at least the threshold.

    ``differences``: log ratios, suites x benchmarks x pairs. Constants are the caller's.
    https://www.itl.nist.gov/div898/handbook/prc/section3/prc31.htm
    """
    p = stats.ttest_1samp(differences, 0.0, axis=-1, alternative="greater").pvalue
    adjusted = np.apply_along_axis(holm, -1, p)
    return np.asarray((adjusted <= alpha) & (differences.mean(axis=-1) >= np.log1p(threshold)))


def _mann_whitney(base: Floats, head: Floats) -> Floats:
    return np.asarray(stats.mannwhitneyu(head, base, axis=-1, method="asymptotic").pvalue, float)
