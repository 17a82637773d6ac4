"""The same-result check: each fault that it must notice, and the differences that it must allow."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from perfgate.errors import WrongResult
from perfgate.measure import check
from perfgate.measure.check import check_same_result

TIGHT = SimpleNamespace(norm_ratio=0.01, cosine=0.999, relative_error=1e-3)
DELTA = {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor([[1.0]])}


@dataclass
class Outcome:
    """What a step computed."""

    kind: str
    tensors: dict


def scaled(factor, kind="movement"):
    """The reference, scaled."""
    return Outcome(kind, {name: each * factor for name, each in DELTA.items()})


@pytest.mark.parametrize("kind", ["movement", "outputs", "identical"])
def test_equal_outcomes_pass_with_figures(kind):
    """Whatever is compared."""
    assert check_same_result(scaled(1, kind), scaled(1, kind), TIGHT)


@pytest.mark.parametrize(
    ("variant", "said"),
    [
        (scaled(1.5), "1.5000 times as far"),
        (scaled(-1), "cosine -1.0000"),
        (scaled(0), "moved no parameter"),
        (scaled(float("nan")), "NaN"),
        (Outcome("movement", {"a": DELTA["a"]}), "other names or shapes"),
        (Outcome("movement", {"a": DELTA["a"], "b": torch.ones(2)}), "other names or shapes"),
        (scaled(1, "outputs"), "other names or shapes"),
    ],
)
def test_faults_are_noticed(variant, said):
    """Scaled gradients are what a comparison of losses under Adam does not see."""
    with pytest.raises(WrongResult, match=said):
        check_same_result(variant, scaled(1), TIGHT)


def test_a_reference_that_is_not_finite_proves_nothing():
    """Comparisons with NaN are false, whichever way they are written."""
    with pytest.raises(WrongResult, match="plain twin holds NaN"):
        check_same_result(scaled(1), scaled(float("nan")), TIGHT)


def test_outputs_are_compared_by_relative_error():
    """A thousandth here."""
    check_same_result(scaled(1.0009, "outputs"), scaled(1, "outputs"), TIGHT)
    with pytest.raises(WrongResult, match="outputs differ by"):
        check_same_result(scaled(1.002, "outputs"), scaled(1, "outputs"), TIGHT)


def test_identical_means_equal():
    """One sample id that differs is too many."""
    with pytest.raises(WrongResult, match="1 of 3 values differ"):
        other = Outcome("identical", {"a": torch.tensor([3.0, 4.5]), "b": DELTA["b"]})
        check_same_result(other, scaled(1, "identical"), TIGHT)


def test_every_piece_counts(monkeypatch):
    """A difference in the last of them is seen, and a norm is that of all."""
    monkeypatch.setattr(check, "PIECE", 2)
    last = Outcome("identical", {"a": torch.arange(5)})
    other = Outcome("identical", {"a": torch.tensor([0, 1, 2, 3, 5])})
    with pytest.raises(WrongResult, match="1 of 5 values differ"):
        check_same_result(other, last, TIGHT)
    assert check._sums(last, last).ours == pytest.approx(30**0.5)


def test_sums_are_made_in_double_precision():
    """In float32, the sum of so many squares would stand still at 2 to the 24th."""
    ones = Outcome("outputs", {"a": torch.ones(2**25)})
    assert check._sums(ones, ones).ours == 2**12.5


def test_nothing_to_compare_with_is_compared():
    """A tensor without values agrees with another."""
    empty = Outcome("identical", {"a": torch.ones(0)})
    assert check_same_result(empty, empty, TIGHT) == "all 0 values equal"
