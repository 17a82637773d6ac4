"""Intervals of medians and ratios, against tables and against samples whose truth is known."""

import math
import random

import pytest

from perfgate.verdict.estimate import Estimate, median_estimate


def test_the_median_interval_covers_as_often_as_it_says():
    """At least 94 % of 2,000 samples of a skewed distribution whose median is 1, where 95 % were promised."""
    generator = random.Random(0)
    for size in (6, 10, 20, 57):
        samples = ([generator.lognormvariate(0, 0.5) for _ in range(size)] for _ in range(2000))
        covered = sum(found.low <= 1 <= found.high for found in map(median_estimate, samples))
        assert covered / 2000 > 0.94


@pytest.mark.parametrize(("size", "rank"), [(1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (20, 5), (30, 9), (100, 39)])
def test_the_median_interval_has_the_ranks_of_the_tables(size, rank):
    """Conover, table A3: for n = 20 the 6th and 15th values."""
    found = median_estimate(range(1, size + 1))
    assert (found.low, found.high) == (rank + 1, size - rank)


def test_the_median_interval_of_very_many_values():
    """The normal approximation: half the width is 0.98 times the root of n."""
    found = median_estimate(range(100_000))
    assert found.high - found.value == pytest.approx(0.98 * 100_000**0.5, rel=0.02)


def test_the_order_of_samples_does_not_matter():
    """Neither to the median nor to its interval."""
    values = [3.0, 1.0, 9.0, 4.0, 2.0, 8.0, 7.0, 5.0, 6.0]
    assert median_estimate(values) == median_estimate(sorted(values)) == Estimate(5.0, 2.0, 8.0)


def test_a_higher_confidence_is_a_wider_interval():
    """99.9 % of twenty values: the 3rd and 18th."""
    found = median_estimate(range(1, 21), confidence=0.999)
    assert (found.low, found.high) == (3, 18)


def test_the_half_width_is_of_the_logarithm():
    """A factor of 1.1 either way."""
    assert Estimate(2.0, 2.0 / 1.1, 2.0 * 1.1).half_width == pytest.approx(math.log(1.1))
