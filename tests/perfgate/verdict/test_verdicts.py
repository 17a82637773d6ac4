"""The words, what they do to the exit code, and which of several stands for a benchmark."""

from typing import get_args

import pytest

from perfgate.verdict.verdicts import (
    FAILING_CODES,
    SEVERITY,
    Verdict,
    Word,
    gone,
    is_failure,
    tally,
    unjudged,
    with_verdicts,
    worst,
)
from tests.conftest import record, run


def verdict(word, reason="", **fields):
    """A verdict of this word."""
    return Verdict(**{"id": "a", "word": word, "code": word, "reason": reason, **fields})


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
    assert is_failure(verdict(word), strict=False) is failure
    assert is_failure(verdict(word), strict=True) is strict


@pytest.mark.parametrize("code", sorted(FAILING_CODES))
def test_which_reasons_fail_whatever_the_word(code):
    """A comparison that cannot happen is red without ``--perfgate-strict``, too."""
    assert is_failure(unjudged("a", code, "why"), strict=False)


def test_a_skip_fails_only_where_it_is_unexpected_and_strict():
    """A compiler that went missing must not look like a suite that shrank on purpose."""
    found = verdict("skipped", code="skipped-unexpectedly")
    assert (is_failure(found, strict=False), is_failure(found, strict=True)) == (False, True)


def test_every_word_has_its_place():
    """Once, or reports would lose it."""
    assert sorted(SEVERITY) == sorted(get_args(Word))


def test_unjudged_says_what_and_why():
    """The metric where there is one."""
    found = unjudged("b", "too-few-samples", "only two", "wall_seconds")
    assert (found.id, found.word, found.code, found.reason) == ("b", "unjudged", "too-few-samples", "only two")
    assert (found.metric, found.change, found.detectable) == ("wall_seconds", None, None)


def test_a_tally_counts_worst_first_without_zeros():
    """Whatever the order of the verdicts."""
    verdicts = [verdict(word) for word in ("same", "slower", "same", "unsure")]
    assert list(tally(verdicts).items()) == [("slower", 1), ("unsure", 1), ("same", 2)]


@pytest.mark.parametrize(("better", "worse"), list(zip(SEVERITY[1:], SEVERITY[:-1], strict=True)))
def test_the_worst_metric_stands_for_its_benchmark(better, worse):
    """In whatever order they come."""
    one, two = verdict(better, metric="one"), verdict(worse, metric="two")
    assert worst([one, two]).metric == worst([two, one]).metric == "two"


@pytest.mark.parametrize("word", ["slower", "unjudged"])
def test_reasons_of_metrics_as_bad_are_joined(word):
    """Whoever repairs one wants to know of the other; what is better is left out."""
    found = worst([verdict("same", "zero"), verdict(word, "one", metric="m"), verdict(word, "two")])
    assert (found.word, found.metric, found.reason) == (word, "m", "one; two")


def test_reasons_of_harmless_metrics_are_not_joined():
    """Six metrics that are the same need one reason."""
    assert worst([verdict("same", "one"), verdict("same", "two")]).reason == "one"


def test_what_is_gone_is_sorted():
    """Sets have no order."""
    assert [each.id for each in gone({"c", "a", "b"})] == ["a", "b", "c"]


def test_the_verdict_is_kept_with_the_record():
    """Under which it decides what is history for the next run; without one nothing is kept."""
    verdicts = [Verdict(id="a", word="slower", code="slower", reason=""), *gone({"c"})]
    kept = with_verdicts(run(record("a"), record("b")), verdicts)
    assert [each.verdict for each in kept.records] == ["slower", ""]


@pytest.mark.parametrize(
    ("word", "code", "accept", "kept"),
    [
        ("slower", "slower", True, "accepted"),
        ("same", "accepted", False, "accepted"),
        ("same", "same", True, "same"),
        ("unjudged", "flagged", True, "unjudged"),
    ],
)
def test_what_was_accepted_is_kept_as_accepted(word, code, accept, kept):
    """By the option or by the file; it begins a new history."""
    found = with_verdicts(run(record("a")), [Verdict(id="a", word=word, code=code, reason="")], accept=accept)
    assert [each.verdict for each in found.records] == [kept]
