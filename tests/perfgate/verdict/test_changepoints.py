"""Change points: series whose steps are known."""

import numpy as np
import pytest

from perfgate.verdict.changepoints import SHORTEST, change_points

NOISE = 0.015


def series(rng, length=200):
    """Log times around 3 ms, 1.5 % of noise."""
    return np.log(0.003) + NOISE * rng.standard_normal(length)


def test_flat_series_have_no_change_points():
    """At most one false point in a hundred series."""
    rng = np.random.default_rng(1)
    assert sum(len(change_points(series(rng))) for _ in range(100)) <= 1


def test_a_step_is_found_where_it_is():
    """4 % at run 120 of 200: exactly one point, within 3 of it, in 95 series of 100."""
    rng = np.random.default_rng(2)
    right = 0
    for _ in range(100):
        values = series(rng)
        values[120:] += np.log(1.04)
        found = change_points(values)
        right += len(found) == 1 and abs(found[0] - 120) <= 3
    assert right >= 95


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_index_is_that_of_the_first_new_value(sign):
    """Without noise, up and down."""
    assert change_points([0.0] * 20 + [sign * 0.1] * 20) == [20]


def test_two_steps_are_two_points_in_order():
    """Up by 10 % at 60, by 10 % more at 140."""
    values = series(np.random.default_rng(3))
    values[60:] += 0.1
    values[140:] += 0.1
    first, second = change_points(values)
    assert abs(first - 60) <= 3
    assert abs(second - 140) <= 3


def test_a_step_in_the_last_values_is_found():
    """Half a dozen runs after the change are enough for 10 %."""
    values = series(np.random.default_rng(4))
    values[194:] += 0.1
    assert change_points(values) == [194]


def test_outliers_are_not_steps():
    """One value in fifty 30 % up: no point in 98 of 100 flat series."""
    rng = np.random.default_rng(5)
    false = 0
    for _ in range(100):
        values = series(rng)
        values[rng.choice(200, 4, replace=False)] += np.log(1.3)
        false += bool(change_points(values))
    assert false <= 2


def test_three_outliers_in_a_row_are_not_a_level():
    """Shorter than the shortest segment."""
    values = series(np.random.default_rng(6))
    values[100:103] += np.log(1.3)
    assert change_points(values) == []


@pytest.mark.parametrize("length", range(2 * SHORTEST))
def test_short_series_say_nothing(length):
    """Two segments do not fit, whatever the values."""
    values = np.zeros(length)
    values[length // 2 :] = 1.0
    assert change_points(values) == []


def test_the_shortest_series_with_a_clear_step():
    """Four against four."""
    assert change_points([0.0, 0.001, 0.0, 0.001, 0.5, 0.501, 0.5, 0.501]) == [4]


@pytest.mark.parametrize("level", [0.0, -5.8, 1e6])
def test_a_constant_series_has_no_change_points(level):
    """Without dividing by a variance of zero."""
    assert change_points([level] * 50) == []


def test_a_certain_change_below_two_percent_is_none():
    """1 % without noise."""
    assert change_points([0.0] * 30 + [0.01] * 30) == []


def test_lists_are_series_too():
    """And come out as plain integers."""
    (found,) = change_points([0.0] * 10 + [1.0] * 10)
    assert type(found) is int
