"""Shapes: what is wrong is said in one sentence that names the field."""

import re

import pytest

from perfgate.results.shape import Above, AtLeast, Written, check_shape

DIGITS = Written(re.compile(r"\d+"), "digits")


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        (0, AtLeast(int, 0)),
        (0.0, AtLeast(float, 0)),
        (5e-324, Above(float, 0)),
        (1, Above(float, 0)),
        ("12", DIGITS),
        (None, (AtLeast(int, 1), None)),
        ({"a": 1, "other": None}, {"a": int}),
        ([[1.0], []], [[float]]),
    ],
)
def test_what_fits(value, shape):
    """There is nothing to say."""
    assert check_shape(value, shape, "x") is None


@pytest.mark.parametrize(
    ("value", "shape", "said"),
    [
        (-1, AtLeast(int, 0), "field x: at least 0 expected, got -1"),
        (1.0, AtLeast(int, 0), "field x: integer expected, got float"),
        (True, AtLeast(int, 0), "field x: integer expected, got bool"),
        (0.0, Above(float, 0), "field x: more than 0 expected, got 0.0"),
        (float("nan"), Above(float, 0), "field x: finite number expected, got nan"),
        ("0.1", Above(float, 0), "field x: number expected, got str"),
        ("12a", DIGITS, "field x: digits expected, got '12a'"),
        ("12\n", DIGITS, r"field x: digits expected, got '12\n'"),
        (12, DIGITS, "field x: text expected, got int"),
        (0, (AtLeast(int, 1), None), "field x: at least 1 expected, got 0"),
        ([[1.0], [0.5, -1.0]], [[Above(float, 0)]], "field x[1][1]: more than 0 expected, got -1.0"),
    ],
)
def test_what_does_not_fit(value, shape, said):
    """With its place."""
    assert check_shape(value, shape, "x") == said
