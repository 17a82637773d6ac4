"""The statistics of a verdict, against scipy, hand-worked examples and simulated data whose truth is known."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import polygamma

from perfgate.verdict.statistics import (
    MOST_DEGREES,
    NOTHING_KNOWN,
    SMALLEST_VARIANCE,
    Hurdle,
    Variance,
    critical,
    detection,
    fit_prior,
    half_width,
    holm,
    moderated,
    sample_variance,
    smallest_detectable_change,
    trigamma_inverse,
    upper_tail,
)


def simulated_variances(rng, degrees, typical, scatter_degrees):
    """Sample variances whose true values scatter as ``scatter_degrees`` (infinite: not at all) say."""
    true = np.full(len(degrees), typical)
    if math.isfinite(scatter_degrees):
        true = typical * scatter_degrees / rng.chisquare(scatter_degrees, len(degrees))
    return true * rng.chisquare(degrees) / degrees


def test_sample_variance_of_a_known_row():
    """1, 2, 3, 4 have variance 5/3 with three degrees of freedom."""
    assert sample_variance([1.0, 2.0, 3.0, 4.0]) == pytest.approx((5 / 3, 3.0))


@pytest.mark.parametrize("values", [[], [1.0]])
def test_sample_variance_of_less_than_two_values_is_unknown(values):
    """No degrees of freedom rather than a variance of zero that counts."""
    assert sample_variance(values) == (0.0, 0.0)


@pytest.mark.parametrize("value", [1e-9, 1e-5, 1e-3, 0.1, 1.0, math.pi**2 / 6, 50.0, 1e5, 1e9])
def test_trigamma_inverse_is_undone_by_trigamma(value):
    """From 1e-9 to 1e9; the asymptotes at both ends are good to a ten-thousandth."""
    assert polygamma(1, trigamma_inverse(value)) == pytest.approx(value, rel=2e-4)


def test_trigamma_inverse_at_a_known_point():
    """Trigamma of 1 is pi squared over 6."""
    assert trigamma_inverse(math.pi**2 / 6) == pytest.approx(1.0)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_trigamma_inverse_refuses_what_trigamma_never_is(value):
    """Zero, negative, not a number."""
    with pytest.raises(ValueError, match="trigamma"):
        trigamma_inverse(value)


def test_prior_of_scattered_variances_is_recovered():
    """4e-4 worth 6 degrees, from 4000 variances with 2 to 9 degrees of freedom."""
    rng = np.random.default_rng(1)
    degrees = rng.integers(2, 10, 4000).astype(float)
    prior = fit_prior(simulated_variances(rng, degrees, 4e-4, 6.0), degrees)
    assert prior.value == pytest.approx(4e-4, rel=0.05)
    assert prior.degrees == pytest.approx(6.0, rel=0.15)


def test_prior_of_equal_variances_is_certain():
    """Variances that scatter by chance only: on average over suites, mostly infinite degrees or very many."""
    rng = np.random.default_rng(2)
    degrees = np.tile([3.0, 7.0], 30)
    priors = [fit_prior(simulated_variances(rng, degrees, 1e-4, math.inf), degrees) for _ in range(200)]
    assert np.mean([math.isinf(prior.degrees) for prior in priors]) > 0.4
    assert np.median([prior.degrees for prior in priors]) > 40
    assert np.mean([prior.value for prior in priors]) == pytest.approx(1e-4, rel=0.05)


def test_prior_does_not_depend_on_the_unit():
    """Variances a million times as large: the same degrees, a value a million times as large."""
    rng = np.random.default_rng(3)
    degrees = np.full(60, 5.0)
    variances = simulated_variances(rng, degrees, 1e-4, 4.0)
    small, large = fit_prior(variances, degrees), fit_prior(1e6 * variances, degrees)
    assert large.degrees == pytest.approx(small.degrees)
    assert large.value == pytest.approx(1e6 * small.value)


def test_prior_ignores_rows_without_degrees():
    """What was measured once says nothing about scatter, whatever value stands there."""
    rng = np.random.default_rng(4)
    degrees = np.full(30, 4.0)
    variances = simulated_variances(rng, degrees, 1e-4, 5.0)
    with_singles = fit_prior([*variances, 0.0, 77.0], [*degrees, 0.0, 0.0])
    assert with_singles == fit_prior(variances, degrees)


def test_prior_of_few_benchmarks_is_no_opinion():
    """Nine are too few, ten are not."""
    assert fit_prior(np.full(9, 1e-4), np.full(9, 5.0)) == NOTHING_KNOWN
    assert fit_prior(np.full(10, 1e-4), np.full(10, 5.0)).degrees > 0


def test_prior_of_zero_variances_is_the_smallest_allowed():
    """Rows of equal values: no logarithm of zero, and no scatter."""
    prior = fit_prior(np.zeros(20), np.full(20, 3.0))
    assert math.isinf(prior.degrees)
    assert SMALLEST_VARIANCE <= prior.value < 3 * SMALLEST_VARIANCE


def test_prior_of_wildly_different_scales_weighs_little():
    """Variances from 1e-8 to 1: less than one degree."""
    prior = fit_prior(np.logspace(-8, 0, 40), np.full(40, 5.0))
    assert 0 < prior.degrees < 1
    assert math.isfinite(prior.value)


def test_moderated_weighs_with_degrees():
    """Own 4 with 3, the suite's 2 with 5, the ledger's 1 with 2 degrees: 24 over 10."""
    found = moderated(Variance(4.0, 3.0), Variance(2.0, 5.0), Variance(1.0, 2.0))
    assert (found.value, found.degrees) == (pytest.approx(2.4), 10.0)


def test_moderated_limits_the_ledger():
    """A ledger of a thousand processes counts for forty."""
    found = moderated(Variance(4.0, 10.0), NOTHING_KNOWN, Variance(1.0, 1000.0))
    assert found.degrees == 10.0 + MOST_DEGREES
    assert found.value == pytest.approx((4.0 * 10 + 1.0 * 40) / 50)


def test_moderated_by_a_certain_prior_lets_a_benchmark_speak():
    """Infinite degrees count for forty: one that is noisier shows it."""
    found = moderated(Variance(np.array([4.0, 9.0]), np.array([3.0, 0.0])), Variance(2.0, math.inf))
    assert found.value == pytest.approx([(4.0 * 3 + 2.0 * 40) / 43, 2.0])
    assert found.degrees == pytest.approx([43.0, 40.0])


def test_moderated_without_anything_known_is_unknown():
    """NaN with 0 degrees, not the smallest variance."""
    found = moderated(Variance(np.array([0.0]), np.array([0.0])), NOTHING_KNOWN)
    assert np.isnan(found.value).all()
    assert found.degrees == pytest.approx([0.0])


def test_moderated_is_never_certain():
    """Equal values have the smallest variance, so that no t is infinite."""
    assert moderated(Variance(0.0, 5.0), NOTHING_KNOWN).value == SMALLEST_VARIANCE


@pytest.mark.parametrize("degrees", [0.5, 1.0, 3.0, 12.5, 400.0])
def test_upper_tail_is_student(degrees):
    """As scipy.stats has it."""
    t = np.array([-40.0, -1.0, 0.0, 0.5, 2.0, 9.0])
    assert upper_tail(t, degrees) == pytest.approx(stats.t.sf(t, degrees), rel=1e-9)


def test_upper_tail_of_infinite_degrees_is_normal():
    """To a millionth, down to p = 1e-15."""
    t = np.array([-3.0, 0.0, 1.6, 5.0, 8.0])
    assert upper_tail(t, math.inf) == pytest.approx(stats.norm.sf(t), rel=1e-6)


def test_upper_tail_knows_nothing_without_degrees():
    """P is 1 without degrees of freedom and where the statistic is NaN."""
    assert upper_tail([9.0, math.nan, math.nan], [0.0, 5.0, 0.0]) == pytest.approx([1.0, 1.0, 1.0])


@pytest.mark.parametrize("degrees", [1.0, 4.0, 30.0, math.inf])
@pytest.mark.parametrize("tail", [0.1, 0.05 / 60])
def test_critical_value_is_student(tail, degrees):
    """As scipy.stats has it; infinite degrees are the normal distribution."""
    assert critical(tail, degrees) == pytest.approx(stats.t.isf(tail, degrees), rel=1e-6)


def test_critical_value_without_degrees_is_out_of_reach():
    """Infinite."""
    assert critical(0.05, 0.0) == math.inf


def test_holm_worked_by_hand():
    """0.01, 0.04, 0.03, 0.005: times 4 the smallest, times 3 the next, and never below the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_holm_stays_below_one():
    """And leaves a single p-value alone."""
    assert holm([0.7, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.7]) == pytest.approx([0.7])


def test_holm_of_nothing_is_nothing():
    """No candidates."""
    assert len(holm([])) == 0


def test_holm_keeps_the_family_wise_error_rate():
    """20 true null hypotheses at 5 %: between 3.5 and 6.5 % of 4000 families have a false rejection."""
    p = np.random.default_rng(5).random((4000, 20))
    assert 0.035 < np.mean([(holm(family) <= 0.05).any() for family in p]) < 0.065


@pytest.mark.parametrize("wrong", [math.nan, -0.1, 1.1])
def test_holm_refuses_what_is_no_probability(wrong):
    """NaN compares false with everything and would slip through."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.01, wrong])


@pytest.mark.parametrize(
    ("count", "sigma", "tail", "smallest"),
    [(8, 0.015, 0.05, 0.0), (8, 0.015, 0.05 / 5, math.log1p(0.03)), (20, 0.03, 0.05, math.log1p(0.03))],
)
def test_a_change_of_the_smallest_detectable_size_is_found_four_times_in_five(count, sigma, tail, smallest):
    """The variance is estimated from the values and 12 degrees beside them."""
    rng = np.random.default_rng(6)
    degrees, error = count - 1 + 12.0, sigma / math.sqrt(count)
    change = math.log1p(smallest_detectable_change([Hurdle(error, degrees, tail, smallest)]))
    means = change + error * rng.standard_normal(20_000)
    errors = error * np.sqrt(rng.chisquare(degrees, 20_000) / degrees)
    found = (upper_tail(means / errors, degrees) <= tail) & (means >= smallest)
    assert 0.77 < found.mean() < 0.83


def test_two_hurdles_are_harder_than_one():
    """Each has data of its own, so probabilities multiply."""
    one = Hurdle(0.01, 10.0, 0.05, 0.03)
    assert detection(0.05, [one, one]) == pytest.approx(one.probability(0.05) ** 2)
    assert smallest_detectable_change([one, one]) > smallest_detectable_change([one])


def test_nothing_is_detectable_without_degrees():
    """Infinite rather than small."""
    assert smallest_detectable_change([Hurdle(0.01, 0.0, 0.05, 0.03)]) == math.inf


def test_nothing_is_detectable_where_the_standard_error_is_unknown():
    """What a single pair without ledger gives: NaN with 0 degrees."""
    assert smallest_detectable_change([Hurdle(math.nan, 0.0, 0.05, 0.03)]) == math.inf


def test_detectable_is_the_threshold_and_a_little_where_noise_is_small():
    """With 0.01 % of noise a change of the threshold passes half the time."""
    assert smallest_detectable_change([Hurdle(1e-4, 10.0, 0.05, math.log1p(0.03))]) == pytest.approx(0.03, abs=1e-3)


@pytest.mark.parametrize("count", [3, 10])
def test_half_width_covers_the_truth(count):
    """19 of 20 intervals."""
    values = np.random.default_rng(7).normal(0.0, 0.02, (4000, count))
    errors = values.std(axis=1, ddof=1) / math.sqrt(count)
    halves = np.array([half_width(error, count - 1.0) for error in errors])
    assert 0.94 < np.mean(np.abs(values.mean(axis=1)) <= halves) < 0.96
