"""Verdicts on noisy metrics: evidence whose truth is known, and the words, numbers and reasons it leads to."""

import dataclasses
import math
import re

import numpy as np
import pytest

from perfgate.results.ledger import Ledger, Noise
from perfgate.settings import Settings
from perfgate.verdict.noisy import Question, Second, by_metric, decide, noise_known, problem_with, question_of, screen
from perfgate.verdict.rules import Evidence
from tests.conftest import around, record, times

THRESHOLD = 0.03
SETTINGS = Settings(threshold=THRESHOLD)
SURE, VAGUE = 0.001, 0.05  # standard errors of a log ratio


def question(name="a", metric="wall_seconds", better="lower", identity="0" * 12):
    """Did it get worse?"""
    return Question(id=name, group="g", metric=metric, better=better, identity=identity)


def evidence(means, errors=SURE, degrees=20.0):
    """Log ratios with their standard errors."""
    means = np.asarray(means, float)
    return Evidence(means, np.broadcast_to(errors, means.shape).astype(float), np.full(means.shape, float(degrees)))


def screened(means, errors=SURE, degrees=20.0, settings=SETTINGS, better="lower", metric="wall_seconds"):
    """The first stage of benchmarks b0, b1, ..."""
    questions = [question(f"b{number}", metric, better) for number in range(len(means))]
    return screen(questions, evidence(means, errors, degrees), settings)


def decided(mean, error=SURE, degrees=20.0, **fields):
    """The verdict on one question that the first stage decides alone."""
    (found,) = decide(screened([mean], error, degrees, **fields), None, None)
    return found


def confirmed(first, second, error=SURE, how="8 fresh pairs", **fields):
    """The verdict on one question that was asked twice."""
    (found,) = decide(screened([first], error, **fields), Second(evidence=evidence([second], error), how=[how]), None)
    return found


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ((), "too-few-samples"),
        ((0.01, 0.011, 0.012, 0.013), "too-few-samples"),
        ((0.01, 0.011, 0.012, 0.013, math.nan), "not-positive"),
        ((0.01, 0.011, 0.012, 0.013, math.inf), "not-positive"),
        ((0.01, 0.011, 0.012, 0.013, 0.0), "not-positive"),
        ((0.01, 0.011, 0.012, 0.013, -0.01), "not-positive"),
        ((0.01,) * 5, "no-variation"),
    ],
)
def test_samples_that_cannot_be_judged(values, code):
    """Each says which metric of which benchmark, and why."""
    measurement = times(*values)
    found = problem_with(record("a", measurement), measurement.metric)
    assert (found.id, found.word, found.code, found.metric) == ("a", "unjudged", code, "wall_seconds")
    assert "wall_seconds" in found.reason


def test_samples_that_can_be_judged():
    """Five that differ."""
    measurement = times(0.01, 0.011, 0.01, 0.01, 0.01)
    assert problem_with(record("a", measurement), measurement.metric) is None


def test_a_question_is_about_one_metric_of_a_record():
    """With its direction, and the identity that the ledger knows it by."""
    measurement = around(2.0, metric="speedup", better="higher", kind="paired")
    asked = question_of(record("a", measurement, identity="f" * 12), measurement)
    assert asked == question("a", "speedup", "higher", "f" * 12)


def ledger(**fields):
    """What is known of the time of benchmark a."""
    noise = {"pair_deviation": 0.01, "pair_degrees": 7, "process_deviation": 0.03, "process_degrees": 15}
    names = {"id": "a", "metric": "wall_seconds", "identity": "0" * 12, "detectable": None}
    return Ledger(entries={("a", "wall_seconds"): Noise(**{**names, **noise, **fields})})


def test_the_ledger_is_asked_question_by_question():
    """Who is not in it is not known; the order is the questions'."""
    found = noise_known(ledger(), [question("b"), question("a")], "pair")
    assert found.value == pytest.approx([0.0, 1e-4])
    assert found.degrees == pytest.approx([0.0, 7.0])


def test_the_ledger_knows_nothing_of_other_parameters():
    """The same name is not the same benchmark."""
    assert noise_known(ledger(identity="f" * 12), [question("a")], "process").degrees == pytest.approx([0.0])


def test_an_empty_suite_asks_the_ledger_nothing():
    """Nor does it fail."""
    assert len(noise_known(ledger(), [], "pair").degrees) == 0


def test_the_first_stage_nominates_in_both_directions():
    """What may have become slower or faster is asked again; a third of the limit is not worth it."""
    found = screened([0.0, 0.1, 0.01, -0.1])
    assert found.nominated == [1, 3]
    assert found.candidates == {"b1", "b3"}
    assert (found.slower.tolist(), found.faster.tolist()) == ([0, 1, 0, 0], [0, 0, 0, 1])


def test_the_first_stage_is_generous():
    """Two thirds of the limit, at p = 0.08: not proven, but worth a second look."""
    found = screened([0.02], errors=0.0139)
    assert found.nominated == [0]
    assert decide(found, None, None)[0].word == "same"


def test_each_metric_is_estimated_with_its_own_kind():
    """And everything is put back in its place."""
    asked = [question("a"), question("a", "speedup"), question("b"), question("b", "speedup")]
    seen = []

    def estimate(rows):
        seen.append(list(rows))
        return evidence(rows, degrees=len(seen))

    found = by_metric(asked, estimate)
    assert seen == [[0, 2], [1, 3]]
    assert found.mean.tolist() == [0, 1, 2, 3]
    assert found.degrees.tolist() == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("mean", "error", "word"),
    [
        (0.10, SURE, "slower"),
        (-0.10, SURE, "faster"),
        (0.0, SURE, "same"),
        (math.log(1.0299), SURE, "same"),
        (math.log(1.0301), SURE, "slower"),
        (math.log(1.0299), 0.0001, "same"),
        (0.0, VAGUE, "unsure"),
        (0.06, VAGUE, "unsure"),
        (0.30, VAGUE, "slower"),
        (-0.30, VAGUE, "faster"),
    ],
)
def test_one_look_with_known_truth(mean, error, word):
    """Changed where it is proven and as large as the limit; unsure where the interval is wider than the limit."""
    found = decided(mean, error)
    assert (found.id, found.word, found.code, found.metric) == ("b0", word, word, "wall_seconds")
    assert found.change.value == pytest.approx(math.exp(mean))
    assert found.change.low < found.change.value < found.change.high
    assert found.threshold == THRESHOLD


def test_the_interval_is_students():
    """With 20 degrees of freedom 2.086 standard errors either way."""
    assert decided(0.0, 0.01, 20.0).change.half_width == pytest.approx(0.02086, rel=1e-3)


def test_the_limit_is_the_benchmarks_own():
    """By the beginning of its id."""
    settings = Settings(threshold=THRESHOLD, benchmarks={"b0": {"threshold": 0.5}})
    found = decide(screened([0.2, 0.2], settings=settings), None, None)
    assert [(each.word, each.threshold) for each in found] == [("same", 0.5), ("slower", 0.03)]


@pytest.mark.parametrize(
    ("mean", "word", "change", "shown"),
    [(math.log(1.25), "slower", 1.25, "speedup -20.0%"), (math.log(0.8), "faster", 0.8, "speedup +25.0%")],
)
def test_a_speedup_is_told_in_its_own_direction(mean, word, change, shown):
    """Higher is better: a quarter worse is a fifth less speedup, and the interval's ends are swapped with it."""
    found = decided(mean, metric="speedup", better="higher")
    assert (found.word, round(found.change.value, 6)) == (word, change)
    assert found.reason.startswith(shown)
    low, high = (float(each) for each in re.search(r"\[([-+.\d]+)%, ([-+.\d]+)%\]", found.reason).groups())
    assert low < 100 * (1 / change - 1) < high


def test_a_change_says_how_large_with_its_interval_and_the_limit():
    """And nothing of what else would have been seen."""
    assert decided(0.1).reason == "wall_seconds +10.5% [+10.3%, +10.7%], limit 3.0%"


def test_the_same_says_what_would_have_been_seen():
    """As a number, which is the verdict's own."""
    found = decided(0.0)
    assert found.reason == (
        f"wall_seconds +0.0% [-0.2%, +0.2%], limit 3.0%; a change of {found.detectable:.1%} would have been seen"
    )
    assert 0.03 <= found.detectable < 0.04


def test_unsure_says_that_only_more_would_have_been_seen():
    """Several times the limit."""
    found = decided(0.0, VAGUE)
    assert found.reason.endswith(f"; only a change of {found.detectable:.1%} would have been seen")
    assert 0.1 < found.detectable < 0.2


@pytest.mark.parametrize("mean", [0.0, 0.01, -0.3, 0.5, 1.7, -2.0])
@pytest.mark.parametrize(("error", "degrees"), [(math.nan, 0.0), (math.inf, 5.0), (0.01, 0.0)])
def test_where_the_error_is_unknown_nothing_is_said(mean, error, degrees):
    """Not even of a change of a hundred percent: one value could be anything."""
    found = decided(mean, error, degrees)
    assert found.word == "unsure"
    assert found.detectable == math.inf
    assert "(error unknown), limit 3.0%; no change could be seen" in found.reason
    assert not re.search(r"nan|inf|\d{6}", found.reason)


def test_without_a_value_nothing_is_judged():
    """NaN is no ratio."""
    found = decided(math.nan)
    assert (found.word, found.code, found.change) == ("unjudged", "no-data", None)


@pytest.mark.parametrize(("second", "word"), [(0.1, "slower"), (0.0, "same"), (0.02, "same"), (-0.1, "unsure")])
def test_only_fresh_data_decide_on_what_was_nominated(second, word):
    """A first look of +10 % is not even averaged in, and what was nominated as slower is not called faster."""
    found = confirmed(0.1, second)
    assert found.word == word
    assert found.change.value == pytest.approx(math.exp(second))


def test_fresh_data_decide_on_what_was_nominated_as_faster():
    """The mirror image."""
    assert [confirmed(-0.1, second).word for second in (-0.1, 0.0, 0.1)] == ["faster", "same", "unsure"]


def test_the_reason_says_who_confirmed():
    """Or did not."""
    assert ", limit 3.0%, confirmed by 8 fresh pairs" in confirmed(0.1, 0.1).reason
    assert ", limit 3.0%, not confirmed by 8 fresh pairs; " in confirmed(0.1, 0.0).reason
    assert "a fresh process" in confirmed(0.1, 0.1, how="a fresh process").reason


def test_what_was_not_nominated_keeps_its_first_look():
    """Fresh evidence has one row per nominated question, in their order."""
    first = screened([0.0, 0.1, 0.005, -0.1])
    found = decide(first, Second(evidence=evidence([0.2, -0.2]), how=["8 fresh pairs"] * 2), None)
    assert [each.word for each in found] == ["same", "slower", "same", "faster"]
    assert [round(math.log(each.change.value), 6) for each in found] == [0.0, 0.2, 0.005, -0.2]
    assert ["confirmed" in each.reason for each in found] == [False, True, False, True]


def test_a_candidate_without_fresh_values_is_unjudged():
    """Neither slower nor the same."""
    assert confirmed(0.1, math.nan).word == "unjudged"


def test_one_look_at_a_whole_suite_is_corrected_for_all_of_it():
    """At p = 0.01 one of sixty clean benchmarks is slower by chance: nominating it does not make it the only one."""
    first = screened([0.0506, *[0.0] * 59], errors=0.02)
    assert first.nominated == [0]
    assert "slower" not in {each.word for each in decide(first, None, None)}


def test_one_look_at_one_benchmark_needs_no_correction():
    """The same benchmark alone."""
    assert decided(0.0506, 0.02).word == "slower"


def test_fresh_data_are_corrected_for_the_candidates_only():
    """What was not nominated is not asked again, and costs nothing."""
    first = screened([0.0506, *[0.0] * 59], errors=0.02)
    found = decide(first, Second(evidence=evidence([0.0506], 0.02), how=["8 fresh pairs"]), None)
    assert [each.word for each in found].count("slower") == 1


@pytest.mark.parametrize(("mean", "error"), [(0.1, SURE), (-0.1, SURE), (0.0, SURE), (0.0, VAGUE)])
def test_beside_every_verdict_stands_what_could_have_been_seen(mean, error):
    """As a fraction, never below the limit."""
    assert decided(mean, error).detectable >= THRESHOLD


def test_more_noise_hides_more():
    """And so does a larger suite."""
    detectable = [decided(0.0, error).detectable for error in (0.001, 0.01, 0.02, 0.05)]
    assert detectable == sorted(set(detectable))
    crowd = decide(screened([0.0] * 60, errors=0.02), None, None)[0]
    assert crowd.detectable > decided(0.0, 0.02).detectable


def test_what_is_detectable_is_seen_four_times_of_five():
    """Simulated: a thousand suites of one benchmark that is slower by just so much."""
    rng = np.random.default_rng(1)
    error, seen = 0.02, 0
    truth = math.log1p(decided(0.0, error, 1e6).detectable)
    for mean in truth + error * rng.standard_normal(1000):
        seen += decided(mean, error, 1e6).word == "slower"
    assert 0.76 < seen / 1000 < 0.84


def test_a_second_look_that_is_planned_counts_whether_or_not_it_was_needed():
    """Eight fresh pairs see more than four, and less than they would without the first."""
    first = screened([0.0], errors=0.02)
    alone, planned = (decide(first, None, plan)[0].detectable for plan in (None, evidence([0.0], 0.01)))
    assert planned < alone
    exact = decide(first, None, evidence([0.0], 1e-6))[0].detectable
    assert THRESHOLD < exact < planned


def test_no_question_no_verdict():
    """An empty suite is no error."""
    assert decide(screened([]), None, None) == []


def test_verdicts_hold_no_nan():
    """Whatever came in."""
    for mean in (0.0, 0.1, math.nan):
        for error in (0.01, math.nan, math.inf):
            for degrees in (0.0, 1.0, math.inf):
                found = decided(mean, error, degrees)
                numbers = [*(dataclasses.astuple(found.change) if found.change else ()), found.detectable or 0.0]
                assert not any(map(math.isnan, numbers)), found
