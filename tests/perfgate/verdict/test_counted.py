"""Counts: exact, but for an allowance, under one torch."""

import math

import pytest

from perfgate.settings import Settings
from perfgate.verdict.counted import agreed, judge_counted
from tests.conftest import count, record

NAME = "benches/test_a.py::test_a"
SETTINGS = Settings()


def judged(new, old, settings=SETTINGS, torches=""):
    """The verdict on one count."""
    return judge_counted(record(NAME, new), old, settings, torches)


@pytest.mark.parametrize(
    ("new", "old", "word"),
    [
        (count("operators", 3), count("operators", 3), "same"),
        (count("operators", 4), count("operators", 3), "slower"),
        (count("operators", 2), count("operators", 3), "faster"),
        (count("operators", 1_000_001), count("operators", 1_000_000), "slower"),
        (count("operators", 0), count("operators", 0), "same"),
        (count("graph_breaks", 1), count("graph_breaks", 0), "slower"),
        (count("graph_breaks", 0), count("graph_breaks", 1), "faster"),
        (count("zeros", 5, "higher"), count("zeros", 9, "higher"), "slower"),
        (count("zeros", 9, "higher"), count("zeros", 5, "higher"), "faster"),
    ],
)
def test_counts_are_exact(new, old, word):
    """One more is one too many, whichever way is better."""
    found = judged(new, old)
    assert (found.word, found.code, found.metric) == (word, f"count-{word}", new.metric)


@pytest.mark.parametrize(
    ("value", "word"), [(1000, "same"), (1010, "same"), (1011, "slower"), (990, "same"), (989, "faster")]
)
def test_peak_memory_has_an_allowance_of_one_percent(value, word):
    """An allocator rounds, either way."""
    found = judged(count("peak_bytes", value), count("peak_bytes", 1000))
    assert (found.word, found.threshold) == (word, 0.01)


def test_an_allowance_of_a_benchmark_is_its_own():
    """Another benchmark's stays exact."""
    settings = Settings(benchmarks={"benches/test_a.py": {"operators": 0.5}, "benches/test_b.py": {"operators": 9.0}})
    assert judged(count("operators", 4), count("operators", 3), settings).word == "same"
    assert judged(count("operators", 5), count("operators", 3), settings).word == "slower"


def test_nothing_is_allowed_on_top_of_zero():
    """A fraction of no graph break is no graph break."""
    found = judged(count("graph_breaks", 1), count("graph_breaks", 0), Settings(thresholds={"graph_breaks": 0.5}))
    assert (found.word, found.change) == ("slower", None)


@pytest.mark.parametrize(("better", "change"), [("lower", 4 / 3), ("higher", 3 / 4)])
def test_the_change_is_above_one_where_it_got_worse(better, change):
    """An exact one: its interval has no width."""
    found = judged(count("n", 4, better), count("n", 3, better)).change
    assert found.low == found.value == found.high == pytest.approx(change)


def test_the_reason_names_the_metric_and_both_counts():
    """With thousands separated."""
    assert judged(count("flops", 12_000_000), count("flops", 9000)).reason == "flops 9,000 -> 12,000,000"


def test_the_same_number_of_other_operators_is_a_regression():
    """float32 left where bfloat16 was."""
    old = count("operators", 2, **{"aten::mm(bfloat16)": 2})
    new = count("operators", 2, **{"aten::mm(float32)": 1, "aten::mm(bfloat16)": 1})
    found = judged(new, old)
    assert found.word == "slower"
    assert "(+1 aten::mm(float32))" in found.reason


def test_fewer_of_everything_is_no_regression():
    """The table names increases only."""
    old = count("operators", 5, mm=3, add=2)
    assert judged(count("operators", 4, mm=2, add=2), old).word == "faster"


def test_the_largest_increases_come_first_and_only_three():
    """A model of a thousand operators must fit on a line."""
    old, new = count("operators", 0), count("operators", 15, a=1, b=5, c=2, d=4, e=3)
    assert judged(new, old).reason.endswith("(+5 b, +4 d, +3 e)")


def test_with_an_allowance_the_table_informs():
    """What may change in number may change in kind."""
    old, new = count("operators", 100, a=100), count("operators", 100, a=99, b=1)
    assert judged(new, old, Settings(thresholds={"operators": 0.05})).word == "same"


@pytest.mark.parametrize("value", [2, 9])
def test_across_torch_versions_counts_inform(value):
    """Another torch dispatches other operators."""
    found = judged(count("operators", value), count("operators", 3), torches="2.15.0 -> 2.16.0")
    assert (found.word, found.code) == ("same", "other-torch")
    assert f"3 -> {value}; torch changed (2.15.0 -> 2.16.0)" in found.reason


def test_across_torch_versions_equal_counts_are_simply_the_same():
    """There is nothing to inform of."""
    found = judged(count("operators", 3), count("operators", 3), torches="2.15.0 -> 2.16.0")
    assert (found.word, found.code) == ("same", "count-same")


@pytest.mark.parametrize(("new", "old"), [(math.nan, 3), (3, math.nan), (math.inf, math.inf)])
def test_what_is_no_number_is_not_the_same(new, old):
    """Nothing can be known of it."""
    assert judged(count("operators", new), count("operators", old)).word == "unjudged"


def test_processes_that_say_the_same_agree():
    """The first verdict stands for all."""
    verdicts = [judged(count("operators", 4), count("operators", 3)) for _ in range(3)]
    assert agreed(verdicts) == verdicts[0]


def test_processes_that_differ_leave_nothing_to_judge():
    """And the reason tells what each said, once."""
    verdicts = [judged(count("operators", value), count("operators", 3)) for value in (3, 4, 3)]
    found = agreed(verdicts)
    assert (found.id, found.word, found.code, found.metric) == (NAME, "unjudged", "count-varies", "operators")
    assert found.reason == "operators differs from process to process: operators 3 -> 3; operators 3 -> 4"
