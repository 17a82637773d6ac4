"""Verdicts: each rule with data whose truth is known, and the exit code they add up to."""

import random
import statistics

import pytest

from perfgate.results.baseline import Baseline
from perfgate.settings import Settings
from perfgate.verdict.compare import gone, judge
from perfgate.verdict.expectation import against_expectation, speedup_of
from perfgate.verdict.estimate import Estimate, median_estimate, ratio_of
from perfgate.verdict.stock import exceeded_limits
from perfgate.verdict.verdicts import Verdict, is_failure, tally, worst
from tests.conftest import MACHINE, count, record, replaced, run, times

SETTINGS = Settings(threshold=0.1)
NAME = "benches/test_a.py::test_a"


def verdict_of(new, old, settings=SETTINGS, **machine):
    """The verdict on one benchmark."""
    head = run(new, machine=replaced(MACHINE, **machine))
    (found,) = judge(head, Baseline(runs=(run(old),)), settings)
    return found


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([0.0100] * 6, "same"),
        ([0.0109] * 6, "same"),
        ([0.0111] * 6, "slower"),
        ([0.0090] * 6, "faster"),
        ([0.006, 0.008, 0.009, 0.011, 0.013, 0.015], "unsure"),
    ],
)
def test_times_against_the_threshold(values, word):
    """Ten percent, from 10 ms."""
    found = verdict_of(record(NAME, times(*values)), record(NAME, times(*[0.01] * 6)))
    assert found.word == word
    assert found.threshold == 0.1
    assert found.change.value == pytest.approx(statistics.median(values) / 0.01)


def test_a_lower_speedup_is_slower():
    """Higher is better there."""
    old, new = (record(NAME, times(*[x] * 6, metric="speedup", better="higher", kind="paired")) for x in (2.0, 1.5))
    found = verdict_of(new, old)
    assert (found.word, found.metric) == ("slower", "speedup")
    assert found.change.value == pytest.approx(2 / 1.5)


@pytest.mark.parametrize(
    ("new", "old", "word"),
    [
        (count("operators", 3), count("operators", 3), "same"),
        (count("operators", 4), count("operators", 3), "slower"),
        (count("operators", 2), count("operators", 3), "faster"),
        (count("operators", 0), count("operators", 0), "same"),
        (count("graph_breaks", 1), count("graph_breaks", 0), "slower"),
        (count("zeros", 5, "higher"), count("zeros", 9, "higher"), "slower"),
        (count("peak_bytes", 1005), count("peak_bytes", 1000), "same"),
        (count("peak_bytes", 1011), count("peak_bytes", 1000), "slower"),
        (count("allocations", 9, "neither"), count("allocations", 3, "neither"), "unjudged"),
    ],
)
def test_counts_are_exact(new, old, word):
    """Except where an allowance is set; what has no better direction is not judged."""
    assert verdict_of(record(NAME, new), record(NAME, old)).word == word


def test_the_same_number_of_other_operators_is_a_regression():
    """float32 left where bfloat16 was."""
    old = count("operators", 2, **{"aten::mm(bfloat16)": 2})
    new = count("operators", 2, **{"aten::mm(float32)": 1, "aten::mm(bfloat16)": 1})
    found = verdict_of(record(NAME, new), record(NAME, old))
    assert found.word == "slower"
    assert "+1 aten::mm(float32)" in found.reason


def test_across_torch_versions_counts_inform():
    """Another torch dispatches other operators."""
    found = verdict_of(record(NAME, count("operators", 9)), record(NAME, count("operators", 3)), soft={"torch": "2.16"})
    assert found.word == "same"
    assert "torch changed" in found.reason


def test_an_old_run_of_another_torch_does_not_open_the_gate():
    """What counts is the torch of the value compared with, not of every run before."""
    newest, oldest = run(record(NAME, count("operators", 3))), run(machine=replaced(MACHINE, soft={"torch": "2.11"}))
    head = run(record(NAME, count("operators", 4)))
    (found,) = judge(head, Baseline(runs=(newest, oldest)), SETTINGS)
    assert found.word == "slower"


def test_the_worst_metric_decides():
    """And is named."""
    old = record(NAME, times(*[0.01] * 6), count("operators", 3))
    new = record(NAME, times(*[0.005] * 6), count("operators", 4))
    assert verdict_of(new, old).metric == "operators"


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (times(0.01, 0.01), "too-few-samples"),
        (times(*[0.0] * 6), "not-positive"),
        (times(metric="other"), "metric-differs"),
        (replaced(times(*[10.0] * 6), unit="ms"), "metric-differs"),
    ],
)
def test_what_cannot_be_judged_says_why(new, code):
    """Never ``same``."""
    found = verdict_of(record(NAME, new), record(NAME, times(*[0.01] * 6)))
    assert (found.word, found.code) == ("unjudged", code)


def test_new_gone_and_other_parameters():
    """Nothing is compared under a wrong name."""
    old = run(record("a", identity="x"), record("b"), record("c"))
    new = run(record("a", identity="y"), record("b"), record("d"))
    found = [*judge(new, Baseline(runs=(old,)), SETTINGS), *gone({"c"})]
    assert [(each.id, each.word) for each in found] == [
        ("a", "new"),
        ("a", "gone"),
        ("b", "same"),
        ("d", "new"),
        ("c", "gone"),
    ]


def test_nothing_in_common_fails():
    """Whatever the strictness."""
    found = judge(run(record("a")), Baseline(runs=(run(record("b")),)), SETTINGS)
    assert any(is_failure(each, strict=False) for each in found)


def test_no_baseline_and_a_broken_one():
    """Only the broken one fails without strict."""
    (absent,) = judge(run(), Baseline(absence="none"), SETTINGS)
    (broken,) = judge(run(), Baseline(absence="none", problems=("x.json: empty",)), SETTINGS)
    assert (absent.word, is_failure(absent, strict=False), is_failure(absent, strict=True)) == ("unjudged", False, True)
    assert is_failure(broken, strict=False)


@pytest.mark.parametrize(
    ("word", "failure", "strict"),
    [
        ("same", False, False),
        ("faster", False, False),
        ("unsure", False, False),
        ("new", False, False),
        ("skipped", False, False),
        ("gone", False, True),
        ("unjudged", False, True),
        ("slower", True, True),
        ("failed", True, True),
    ],
)
def test_which_words_fail(word, failure, strict):
    """As the table of exit codes says."""
    verdict = Verdict(id="a", word=word, code=word, reason="")
    assert is_failure(verdict, strict=False) is failure
    assert is_failure(verdict, strict=True) is strict


def test_tally_and_worst():
    """Worst first."""
    verdicts = [Verdict(id="a", word=word, code="", reason="") for word in ("same", "slower", "same", "unsure")]
    assert list(tally(verdicts).items()) == [("slower", 1), ("unsure", 1), ("same", 2)]
    assert worst(verdicts).word == "slower"


def test_the_median_interval_covers_as_often_as_it_says():
    """At least 95 % of 2,000 samples of a skewed distribution whose median is 1."""
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


def test_errors_of_a_ratio_add_as_squares():
    """Of the logarithms."""
    found = ratio_of(Estimate(2.0, 2.0 / 1.03, 2.0 * 1.03), Estimate(1.0, 1 / 1.04, 1.04))
    assert found.value == 2.0
    assert found.half_width == pytest.approx((0.02956**2 + 0.03922**2) ** 0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("expected", "ratio", "contradicts"),
    [
        ("faster", 0.9, True),
        ("faster", 1.0, False),
        ("same", 1.2, True),
        ("same", 0.8, True),
        ("same", 1.03, False),
        ("slower", 1.1, True),
        ("any", 0.1, False),
    ],
)
def test_against_expectation(expected, ratio, contradicts):
    """A finding, not a failure."""
    each = record(NAME, times(*[ratio] * 6, metric="speedup", better="higher"), expected=expected)
    assert bool(against_expectation(each)) is contradicts


def test_without_a_twin_nothing_is_expected():
    """There is no speedup."""
    assert speedup_of(record()) is None
    assert against_expectation(record(expected="faster")) is None


def test_a_users_limit_sees_the_statistics_it_names():
    """As pytest-benchmark computes them."""

    class Limit:
        def fails(self, current, compared):
            return f"{current['max']:.2f} {compared['max']:.2f}"

    old = Baseline(runs=(run(record(NAME, times(0.01, 0.02))),))
    (found,) = exceeded_limits([Limit()], [record(NAME, times(0.01, 0.03))], old)
    assert found.reason == "0.03 0.02"
    assert is_failure(found, strict=False)
    assert exceeded_limits([Limit()], [record("other")], old) == []
