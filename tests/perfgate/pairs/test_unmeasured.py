"""Verdicts on benchmarks of which some process had no number."""

import pytest

from perfgate.pairs.experiment import Heard
from perfgate.pairs.side import Death
from perfgate.pairs.unmeasured import unmeasured
from perfgate.verdict.verdicts import Verdict

NAME = "t.py::a"
JUDGED = Verdict(id=NAME, word="same", code="same", reason="no change")


def heard(*names, **told):
    """What the processes of a side told."""
    outcomes = {NAME: {"id": NAME, **told.pop("outcome")}} if "outcome" in told else {}
    return Heard(ids=dict.fromkeys(names), outcomes=outcomes, **told)


def outcome(word, reason="why"):
    """Why a benchmark has no record."""
    return {"word": word, "code": f"{word}-in-call", "reason": reason}


def only(base, head, *judged):
    """The only verdict."""
    (verdict,) = unmeasured(base, head, judged)
    return verdict


def test_what_was_judged_stands():
    """Where both sides measured it."""
    assert only(heard(NAME), heard(NAME), JUDGED) is JUDGED


def test_what_nobody_measured_is_unjudged():
    """A benchmark must not vanish from a report."""
    verdict = only(heard(NAME), heard(NAME))
    assert (verdict.word, verdict.code) == ("unjudged", "not-measured")


@pytest.mark.parametrize("side", [0, 1])
def test_a_death_on_either_side_is_unjudged(side):
    """With its reason, whatever was measured in other pairs."""
    death = {NAME: Death(NAME, "crashed", "head was ended by SIGSEGV")}
    sides = [heard(NAME), heard(NAME)]
    sides[side] = heard(NAME, deaths=death)
    verdict = only(*sides, JUDGED)
    assert (verdict.word, verdict.code, verdict.reason) == ("unjudged", "crashed", "head was ended by SIGSEGV")


def test_a_failure_in_head_fails():
    """Whatever base says and whatever was judged of other pairs."""
    verdict = only(heard(NAME), heard(NAME, outcome=outcome("failed", "wrong-result")), JUDGED)
    assert (verdict.word, verdict.reason) == ("failed", "wrong-result")


def test_a_failure_in_base_only_is_new():
    """Head repaired it."""
    verdict = only(heard(NAME, outcome=outcome("failed")), heard(NAME))
    assert (verdict.word, verdict.code, verdict.reason) == ("new", "fails-in-base", "fails in base: why")


def test_a_failure_on_both_sides_fails():
    """It has no number now."""
    told = {"outcome": outcome("failed")}
    assert only(heard(NAME, **told), heard(NAME, **told)).word == "failed"


def test_a_skip_on_both_sides_is_a_skip():
    """Expected."""
    told = {"outcome": outcome("skipped")}
    verdict = only(heard(NAME, **told), heard(NAME, **told))
    assert (verdict.word, verdict.code) == ("skipped", "skipped-in-call")


def test_a_skip_in_head_only_is_not_expected():
    """It fails when strict."""
    verdict = only(heard(NAME), heard(NAME, outcome=outcome("skipped")))
    assert (verdict.word, verdict.code) == ("skipped", "skipped-unexpectedly")


def test_a_skip_in_base_only_is_no_failure():
    """There is nothing to compare with."""
    assert only(heard(NAME, outcome=outcome("skipped")), heard(NAME)).word in {"skipped", "new"}


def test_an_unknown_word_is_unjudged():
    """A test that passed without measuring, or another perfgate's word."""
    assert only(heard(NAME), heard(NAME, outcome=outcome("unjudged"))).word == "unjudged"
    assert only(heard(NAME), heard(NAME, outcome=outcome("green"))).word == "unjudged"


def test_only_in_head_is_new():
    """With the reason where base could not collect the file."""
    assert only(heard(), heard(NAME)).reason == "not in base"
    verdict = only(heard(problems={"t.py": "SyntaxError: x"}), heard(NAME))
    assert (verdict.word, verdict.reason) == ("new", "not in base: SyntaxError: x")


def test_only_in_head_and_failing_fails():
    """A new benchmark must work."""
    assert only(heard(), heard(NAME, outcome=outcome("failed"))).word == "failed"


def test_only_in_base_is_gone():
    """Whatever came of it there."""
    assert only(heard(NAME), heard()).word == "gone"
    assert only(heard(NAME, outcome=outcome("failed")), heard()).word == "gone"


def test_a_file_that_head_cannot_collect_fails():
    """By its own name, beside its benchmarks that are gone."""
    verdicts = unmeasured(heard(NAME), heard(problems={"t.py": "SyntaxError: x"}), [])
    assert {(each.id, each.word) for each in verdicts} == {("t.py", "failed"), (NAME, "gone")}


def test_a_file_that_only_base_cannot_collect_is_no_failure():
    """Head repaired it."""
    assert unmeasured(heard(problems={"t.py": "SyntaxError: x"}), heard(), []) == []


def test_deaths_at_nothing_are_no_benchmark():
    """A process that died between benchmarks."""
    death = {"": Death("", "crashed", "x")}
    assert only(heard(NAME, deaths=death), heard(NAME), JUDGED) is JUDGED


SLOWER = Verdict(id=NAME, word="slower", code="slower", reason="by 3 %")


@pytest.mark.parametrize("side", [0, 1])
def test_a_death_does_not_hide_a_regression(side):
    """It was found in the pairs before."""
    sides = [heard(NAME), heard(NAME)]
    sides[side] = heard(NAME, deaths={NAME: Death(NAME, "crashed", "x")})
    assert only(*sides, SLOWER) is SLOWER


def test_a_failure_in_head_counts_more_than_a_regression_or_a_death():
    """Wrong in one pair is wrong."""
    broken = heard(NAME, outcome=outcome("failed"), deaths={NAME: Death(NAME, "crashed", "x")})
    assert only(heard(NAME), broken, SLOWER).word == "failed"
    assert only(heard(NAME), broken).word == "failed"


@pytest.mark.parametrize("judged", [JUDGED, SLOWER])
@pytest.mark.parametrize(
    ("base", "head"), [("failed", None), ("skipped", None), (None, "skipped"), ("skipped", "skipped")]
)
def test_one_failure_of_base_or_one_skip_replaces_no_judgement(base, head, judged):
    """It happened in one pair of many."""
    sides = [heard(NAME, outcome=outcome(word)) if word else heard(NAME) for word in (base, head)]
    assert only(*sides, judged) is judged


def test_each_sides_own_benchmarks_decide_what_is_gone_or_new():
    """Both were measured with the same ones."""
    assert only(heard(NAME, own={NAME}), heard(NAME, own=set())).word == "gone"
    assert only(heard(NAME, own=set()), heard(NAME, own={NAME})).word == "new"
    assert only(heard(own={NAME}), heard(own=set())).word == "gone"
    assert only(heard(own=set()), heard(own={NAME})).word == "new"
    assert only(heard(NAME, own={NAME}), heard(NAME, own=set()), JUDGED) is JUDGED


def test_where_bases_own_benchmark_may_work_its_failure_is_unjudged():
    """Head's form of it cannot run with base's code: nobody knows whether it is slower."""
    verdict = only(heard(NAME, outcome=outcome("failed"), own={NAME}), heard(NAME, own={NAME}))
    assert (verdict.word, verdict.code) == ("unjudged", "base-cannot-run")
    assert verdict.reason.startswith("fails in base: why")
    verdict = only(heard(NAME, outcome=outcome("failed"), own=set()), heard(NAME, own={NAME}))
    assert verdict.word == "new"


def test_a_file_that_base_cannot_collect_although_it_has_the_benchmark_is_unjudged():
    """With the reason."""
    verdict = only(heard(problems={"t.py": "ImportError: x"}, own={NAME}), heard(NAME, own={NAME}))
    assert (verdict.word, verdict.code) == ("unjudged", "not-measured")
    assert "base cannot run it: ImportError: x" in verdict.reason
