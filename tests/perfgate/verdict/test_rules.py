"""The rules on noisy metrics: simulated pairs and runs whose truth is known."""

import math

import numpy as np
import pytest

from perfgate.verdict.rules import (
    UNCALIBRATED,
    Evidence,
    Limits,
    Suite,
    detectable,
    drawn_in,
    of_groups,
    of_pairs,
    promising,
    proven,
    suite_of,
)
from perfgate.verdict.statistics import SMALLEST_VARIANCE, Variance

NOISE = 0.015


def limits(count, threshold=0.03, alpha=0.05):
    """The same for each metric."""
    return Limits(np.full(count, threshold), np.full(count, alpha))


def evidence(mean, standard_error=0.001, degrees=20.0):
    """Of metrics that differ in their mean only."""
    means = np.asarray(mean, float)
    return Evidence(means, np.full(means.shape, standard_error), np.full(means.shape, degrees))


def clean_pairs(rng, benchmarks=60, count=6):
    """Log ratios of identical code, benchmarks of different noise."""
    sigma = NOISE * np.exp(0.4 * rng.standard_normal((benchmarks, 1)))
    return sigma * rng.standard_normal((benchmarks, count))


def test_pairs_known_truth():
    """A row's mean, and for fewer than ten rows its own variance alone: 0, 2, 4 have a standard error of 2 / root 3."""
    found = of_pairs([[0.0, 2.0, 4.0], [1.0, 1.5]])
    assert found.mean == pytest.approx([2.0, 1.25])
    assert found.standard_error == pytest.approx([2 / math.sqrt(3), 0.25])
    assert found.degrees == pytest.approx([2.0, 1.0])


def test_pairs_of_a_suite_borrow_from_each_other():
    """With sixty rows each has more degrees than its own, and variances lie closer together."""
    rows = clean_pairs(np.random.default_rng(1), count=4)
    found = of_pairs(rows.tolist())
    own = rows.std(axis=1, ddof=1) / 2
    assert (found.degrees > 3).all()
    assert np.ptp(np.log(found.standard_error)) < np.ptp(np.log(own))


def test_a_few_rows_take_the_prior_given():
    """Two candidates, the suite's prior: 1e-4 worth 6 degrees beside each row's two."""
    found = of_pairs([[0.0, 0.02, 0.04], [0.03, 0.03, 0.03]], suite=Suite(Variance(1e-4, 6.0), math.nan))
    variances = [(4e-4 * 2 + 1e-4 * 6) / 8, 1e-4 * 6 / 8]
    assert found.standard_error == pytest.approx(np.sqrt(np.array(variances) / 3))
    assert found.degrees == pytest.approx([8.0, 8.0])


def test_groups_take_the_prior_given_instead_of_the_default():
    """A single run against another, with a suite's prior."""
    found = of_groups([[0.0]], [[0.1]], suite=Suite(Variance(1e-4, 6.0), math.nan))
    assert found.standard_error == pytest.approx([math.sqrt(2e-4)])
    assert found.degrees == pytest.approx([6.0])


def test_rows_of_different_length():
    """The longer row is known better."""
    rows = clean_pairs(np.random.default_rng(2), count=16).tolist()
    rows[0] = rows[0][:4]
    found = of_pairs(rows)
    assert found.degrees[1] - found.degrees[0] == pytest.approx(12.0)
    assert found.mean[0] == pytest.approx(np.mean(rows[0]))


def test_clean_pairs_are_rarely_proven():
    """Without a threshold: at most 8 % of 400 clean suites, where 5 % are allowed."""
    rng = np.random.default_rng(3)
    alarms = [proven(of_pairs(clean_pairs(rng).tolist()), limits(60, threshold=0.0)).any() for _ in range(400)]
    assert np.mean(alarms) <= 0.08


def test_clean_groups_are_rarely_proven():
    """Without a threshold: at most 8 % of 300 clean suites of ten runs against three."""
    rng = np.random.default_rng(4)
    alarms = []
    for _ in range(300):
        runs = clean_pairs(rng, count=13)
        alarms.append(proven(of_groups(runs[:, :10].tolist(), runs[:, 10:].tolist()), limits(60, threshold=0.0)).any())
    assert np.mean(alarms) <= 0.08


def test_planted_changes_are_found_in_pairs():
    """Three benchmarks of sixty slower by 7 %: found 19 times in 20, and hardly anything else."""
    rng = np.random.default_rng(5)
    named = np.zeros(60)
    for _ in range(50):
        rows = clean_pairs(rng, count=8)
        rows[:3] += math.log(1.07)
        named += proven(of_pairs(rows.tolist()), limits(60))
    assert named[:3].mean() / 50 > 0.95
    assert named[3:].sum() <= 2


def test_planted_changes_are_found_between_groups():
    """Three benchmarks of sixty slower by 10 %, twenty runs against two: found 19 times in 20."""
    rng = np.random.default_rng(6)
    named = np.zeros(60)
    for _ in range(50):
        runs = clean_pairs(rng, count=22)
        runs[:3, 20:] += math.log(1.10)
        named += proven(of_groups(runs[:, :20].tolist(), runs[:, 20:].tolist()), limits(60))
    assert named[:3].mean() / 50 > 0.95
    assert named[3:].sum() <= 2


def test_single_values_without_a_ledger_say_nothing():
    """One pair each: p is 1, however far from 0."""
    found = of_pairs([[5.0], [0.1]])
    assert found.p == pytest.approx([1.0, 1.0])
    assert not promising(found, limits(2)).any()
    assert not proven(found, limits(2)).any()


def test_a_single_pair_with_a_ledger_is_judged_by_it():
    """The ledger's noise: 10 % is seen at 1 %, 1 % is not."""
    found = of_pairs([[0.10], [0.01]], Variance(np.full(2, 1e-4), np.full(2, 30.0)))
    assert found.standard_error == pytest.approx([0.01, 0.01])
    assert proven(found, limits(2)).tolist() == [True, False]


def test_single_runs_are_judged_by_the_stated_default():
    """One run against one: the default's variance and degrees."""
    found = of_groups([[0.0]], [[0.1]])
    assert found.standard_error == pytest.approx([math.sqrt(2 * UNCALIBRATED.value)])
    assert found.degrees == pytest.approx([UNCALIBRATED.degrees])


def test_single_runs_can_show_a_gross_change():
    """Three times as slow is proven even so, 5 % is not."""
    found = of_groups([[0.0], [0.0]], [[math.log(3)], [math.log(1.05)]])
    assert proven(found, limits(2)).tolist() == [True, False]


def test_the_ledger_is_used_instead_of_the_default():
    """Where it knows a benchmark; the other one has the default."""
    found = of_groups([[0.0], [0.0]], [[0.1], [0.1]], Variance(np.array([1e-4, 0.0]), np.array([20.0, 0.0])))
    assert found.standard_error == pytest.approx([math.sqrt(2e-4), math.sqrt(2 * UNCALIBRATED.value)])
    assert found.degrees == pytest.approx([20.0, UNCALIBRATED.degrees])


def test_the_suite_is_used_instead_of_the_default():
    """Sixty benchmarks with five runs of 1.5 % noise: nothing of 5 %."""
    runs = clean_pairs(np.random.default_rng(7), count=6)
    found = of_groups(runs[:, :5].tolist(), runs[:, 5:].tolist())
    assert np.median(found.standard_error) == pytest.approx(NOISE * math.sqrt(1 + 1 / 5), rel=0.2)


def test_groups_known_truth():
    """Pooled by hand: (2 x 4 + 1 x 0.5) / 3, with what the default still weighs: 10 degrees less those 3."""
    found = of_groups([[0.0, 2.0, 4.0]], [[7.0, 8.0]])
    variance = (4.0 * 2 + 0.5 * 1 + UNCALIBRATED.value * (UNCALIBRATED.degrees - 3)) / UNCALIBRATED.degrees
    assert found.mean == pytest.approx([5.5])
    assert found.standard_error == pytest.approx([math.sqrt(variance * (1 / 3 + 1 / 2))])
    assert found.degrees == pytest.approx([UNCALIBRATED.degrees])


def test_the_default_is_silent_where_runs_tell_enough():
    """Twenty runs of one benchmark: their own 19 degrees, and no 5 %."""
    runs = np.random.default_rng(8).normal(0.0, NOISE, 20).tolist()
    found = of_groups([runs], [[0.0]])
    assert found.degrees == pytest.approx([19.0])
    assert found.standard_error == pytest.approx([np.std(runs, ddof=1) * math.sqrt(1 + 1 / 20)])


def test_a_disturbed_process_is_drawn_in():
    """To four of the suite's deviations around the row's median; the rest stays."""
    (row,) = drawn_in([[0.0, 0.01, -0.01, 0.3]], [[0.0, 0.01, -0.01, 0.3]], 0.02)
    assert row == pytest.approx([0.0, 0.01, -0.01, 0.005 + 4 * 0.02])


def test_a_noisy_benchmark_keeps_its_noise():
    """Its own robust deviation is larger than the suite's."""
    row = [-0.3, -0.2, -0.1, 0.1, 0.2, 0.3]
    assert drawn_in([row], [row], 0.001) == [row]


def test_nothing_is_drawn_in_where_the_suite_is_too_small():
    """Nine benchmarks cannot tell what an outlier is."""
    rows = [[0.0, 0.0, 0.0, 1.0]] * 9
    assert math.isnan(suite_of(rows).deviation)
    assert drawn_in(rows, rows, suite_of(rows).deviation) == rows


def test_one_disturbed_process_does_not_hide_a_change():
    """5 % slower in a suite of 1 % noise, with one pair of base disturbed by 15 %."""
    rng = np.random.default_rng(9)
    rows = rng.normal(0.0, 0.01, (20, 8))
    rows[0] += 0.05
    rows[0, 3] -= 0.15
    assert proven(of_pairs(rows.tolist()), Limits(np.full(20, 0.03), np.full(20, 0.05)))[0]


def test_a_larger_family_makes_proof_harder():
    """What is proven alone is not where sixty were asked."""
    evidence = Evidence(np.array([0.05]), np.array([0.02]), np.array([30.0]))
    limits = Limits(np.array([0.03]), np.array([0.05]))
    assert proven(evidence, limits)[0]
    assert not proven(evidence, limits, family=60)[0]


def test_groups_of_different_number_are_refused():
    """A benchmark that one side lacks must have been left out before."""
    with pytest.raises(ValueError, match=r"zip\(\)|broadcast"):
        of_groups([[0.0, 0.1]], [[0.0], [0.1]])


def test_equal_values_are_not_infinitely_certain():
    """Zero variance: the smallest one, and finite numbers throughout."""
    found = of_pairs([[0.05, 0.05, 0.05]] * 12)
    assert found.standard_error.min() >= math.sqrt(SMALLEST_VARIANCE / 3)
    assert np.isfinite(found.p).all()
    assert proven(found, limits(12)).all()


def test_equal_values_without_a_change_prove_nothing():
    """Zero variance and zero mean."""
    assert not proven(of_pairs([[0.0, 0.0, 0.0]] * 12), limits(12)).any()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_never_proven(bad):
    """A NaN or an infinity among the values of one benchmark; the other keeps its verdict."""
    with np.errstate(invalid="ignore"):
        found = of_pairs([[bad, 0.5, 0.5], [0.5, 0.51, 0.49]])
    assert proven(found, limits(2)).tolist() == [False, True]
    assert promising(found, limits(2)).tolist() == [False, True]


def test_unknown_evidence_is_never_proven():
    """NaN in any of the three."""
    bad = Evidence(np.array([math.nan, 1.0, 1.0]), np.array([0.01, math.nan, 0.01]), np.array([9.0, 9.0, 0.0]))
    assert bad.p == pytest.approx([1.0, 1.0, 1.0])
    assert not proven(bad, limits(3)).any()


def test_significant_but_below_the_threshold_is_not_proven():
    """2 % however certain, with a threshold of 3 %."""
    assert proven(evidence(np.log([1.02, 1.03, 1.04])), limits(3)).tolist() == [False, True, True]


def test_large_but_uncertain_is_not_proven():
    """10 % with a standard error of 8 %."""
    assert not proven(evidence([math.log(1.1)], standard_error=0.08), limits(1)).any()


def test_more_metrics_need_more_certainty():
    """A p of about 0.03 is enough alone, and not among ten."""
    alone, among = evidence([0.04], 0.02), evidence([0.04] + [0.0] * 9, 0.02)
    assert proven(alone, limits(1)).any()
    assert not proven(among, limits(10)).any()


def test_promising_is_more_generous_than_proven():
    """Half the threshold and p below 0.10."""
    found = evidence(np.log([1.01, 1.02, 1.05]), standard_error=0.01)
    assert promising(found, limits(3)).tolist() == [False, True, True]


def test_the_mirror_image_is_faster():
    """Negated evidence proves what got better."""
    found = evidence([-0.2, 0.2, 0.0])
    assert proven(found.negated(), limits(3)).tolist() == [True, False, False]


def test_limits_of_some_metrics():
    """In the order asked for."""
    some = Limits(np.array([0.1, 0.2, 0.3]), np.array([0.05, 0.04, 0.03])).at([2, 0])
    assert some.threshold.tolist() == [0.3, 0.1]
    assert some.alpha.tolist() == [0.03, 0.05]


def test_no_candidates_are_no_error():
    """Empty in, empty out."""
    assert proven(of_pairs([]), limits(0)).size == 0
    assert proven(of_groups([], []), limits(0)).size == 0


def test_detectable_grows_with_noise_and_candidates():
    """And is never below the threshold."""
    first, second = (0.008, 10.0), (0.005, 20.0)
    alone = detectable(first, second, 0.03, 0.05, 1)
    assert alone > 0.03
    assert detectable(first, (0.02, 20.0), 0.03, 0.05, 1) > alone
    assert detectable(first, (0.02, 20.0), 0.03, 0.05, 20) > detectable(first, (0.02, 20.0), 0.03, 0.05, 1)


def test_detectable_without_a_second_stage_asks_the_first():
    """With its own degrees: none, nothing."""
    assert detectable((0.01, 0.0), None, 0.03, 0.05, 1) == math.inf
    assert 0.03 < detectable((0.005, 20.0), None, 0.03, 0.05, 1) < 0.05
