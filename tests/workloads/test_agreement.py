"""The ladder's same-result check: each fault that it must notice, and the differences that it must allow."""

import math

import pytest
import torch

from workloads.agreement import disagreement
from workloads.steps.step import Outcome
from workloads.workload import Tolerance

TIGHT = Tolerance(norm_ratio=0.01, cosine=0.999, relative_error=1e-3)
VALUES = {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor([[1.0]])}


def scaled(factor, kind="movement"):
    """The reference, scaled."""
    return Outcome(kind, {name: each * factor for name, each in VALUES.items()})


@pytest.mark.parametrize("kind", ["movement", "outputs", "identical"])
def test_equal_outcomes_agree(kind):
    """Whatever is compared."""
    assert disagreement(scaled(1, kind), scaled(1, kind), TIGHT) is None


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        (scaled(1.5), "1.500 times as far"),
        (scaled(-1), "cosine -1.000"),
        (scaled(0), "moved no parameter"),
        (scaled(math.nan), "NaN or infinite"),
        (scaled(math.inf), "NaN or infinite"),
        (Outcome("movement", {"a": VALUES["a"]}), "different names or shapes"),
        (scaled(1, "outputs"), "different names or shapes"),
    ],
)
def test_faults_are_noticed(variant, said):
    """Length, direction, and what is no number."""
    assert said in disagreement(variant, scaled(1), TIGHT)


@pytest.mark.parametrize(("factor", "agree"), [(1.0009, True), (1.002, False)])
def test_outputs_are_compared_by_relative_error(factor, agree):
    """A thousandth here; values that must be identical may not differ at all."""
    assert (disagreement(scaled(factor, "outputs"), scaled(1, "outputs"), TIGHT) is None) == agree
    assert "outputs differ" in disagreement(scaled(factor, "identical"), scaled(1, "identical"), TIGHT)


def test_a_reference_that_is_no_number_agrees_with_nothing():
    """Comparisons with NaN are false, whichever way they are written."""
    for kind in ("movement", "outputs"):
        assert disagreement(scaled(1, kind), scaled(math.nan, kind), TIGHT)
    assert disagreement(scaled(1, "outputs"), scaled(0, "outputs"), TIGHT)
    assert disagreement(scaled(0, "outputs"), scaled(0, "outputs"), TIGHT) is None
