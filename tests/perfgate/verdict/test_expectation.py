"""Whether a technique's measured speedup contradicts what its documentation says."""

import pytest

from perfgate.verdict.expectation import against_expectation, speedup_of
from tests.conftest import record, times


def with_speedups(*values, expected="any"):
    """A record of a benchmark with a plain twin."""
    return record("a", times(*values, metric="speedup", better="higher", kind="paired"), expected=expected)


@pytest.mark.parametrize(
    ("expected", "speedup", "contradicts"),
    [
        ("faster", 0.9, True),
        ("faster", 1.0, False),
        ("faster", 2.0, False),
        ("same", 1.2, True),
        ("same", 0.8, True),
        ("same", 1.03, False),
        ("slower", 1.1, True),
        ("slower", 0.5, False),
        ("any", 0.1, False),
    ],
)
def test_against_expectation(expected, speedup, contradicts):
    """A finding, not a failure."""
    found = against_expectation(with_speedups(*[speedup] * 6, expected=expected))
    assert found == (f"expected {expected}" if contradicts else None)


@pytest.mark.parametrize("expected", ["faster", "same", "slower"])
def test_an_interval_on_both_sides_contradicts_nothing(expected):
    """From 0.8 to 1.3 everything may be true."""
    assert against_expectation(with_speedups(0.8, 0.9, 1.0, 1.1, 1.2, 1.3, expected=expected)) is None


def test_a_speedup_is_a_median_with_its_interval():
    """Of all rounds."""
    found = speedup_of(with_speedups(1.0, 5.0, 2.0, 3.0, 4.0))
    assert (found.low, found.value, found.high) == (1.0, 3.0, 5.0)


def test_without_a_twin_nothing_is_expected():
    """There is no speedup."""
    assert speedup_of(record()) is None
    assert against_expectation(record(expected="faster")) is None
