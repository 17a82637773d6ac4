"""Runs against saved runs: histories simulated with a noise and a truth that are known."""

import math

import numpy as np
import pytest

from perfgate.results.baseline import Baseline
from perfgate.results.ledger import Ledger, Noise
from perfgate.settings import Settings
from perfgate.verdict.compare import compare
from perfgate.verdict.verdicts import gone, is_failure, with_verdicts
from tests.conftest import MACHINE, PROCESS, around, count, record, replaced, run, times

NAME = "benches/test_a.py::test_a"
SETTINGS = Settings(threshold=0.03)
NOISE = 0.01
FRESH = 3


def timed(name=NAME, seconds=0.01, **fields):
    """A record of a benchmark of which only the time is known."""
    return record(name, around(seconds), **fields)


def simulated(rng, names, count=1, factor=1.0, noise=NOISE, **fields):
    """Runs of 10 ms benchmarks with noise between processes; ``factor`` slower."""
    return [
        run(*(timed(name, 0.01 * factor * math.exp(noise * rng.standard_normal())) for name in names), **fields)
        for _ in range(count)
    ]


def saved(*records, **fields):
    """A baseline of one run per record, newest first."""
    return Baseline(runs=tuple(run(each) for each in records), **fields)


def compared(heads, baseline, settings=SETTINGS, ledger=None):
    """A comparison; ``heads`` is a run or several."""
    return compare(heads if isinstance(heads, list) else [heads], baseline, settings, ledger or Ledger())


def verdict_of(new, old, settings=SETTINGS, **machine):
    """The verdict on one record against one other, looked at once."""
    head = run(new, machine=replaced(MACHINE, **machine))
    (found,) = compared(head, saved(old), settings).verdicts()
    return found


def dated(runs):
    """Fresh processes, as ``Comparison.verdicts`` takes them."""
    return [(each, a_run) for a_run in runs for each in a_run.records]


def calibrated(deviation, *names, degrees=40):
    """A ledger that knows the time of these benchmarks."""
    entries = [
        Noise(
            id=name,
            metric="wall_seconds",
            identity="0" * 12,
            pair_deviation=deviation,
            pair_degrees=degrees,
            process_deviation=deviation,
            process_degrees=degrees,
            detectable=None,
        )
        for name in names
    ]
    return Ledger(entries={(each.id, each.metric): each for each in entries})


SUITE = [f"benches/test_a.py::test_{number}" for number in range(60)]


@pytest.mark.parametrize("runs", [20, 5, 1])
def test_a_clean_suite_is_not_slower(runs):
    """In none of ten suites of sixty benchmarks, candidates measured again."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        comparison = compared(simulated(rng, SUITE), Baseline(runs=tuple(simulated(rng, SUITE, runs))))
        fresh = dated(simulated(rng, sorted(comparison.candidates), FRESH)) if comparison.candidates else []
        words = {each.word for each in comparison.verdicts(fresh, planned=FRESH)}
        assert words <= {"same", "unsure"}


def test_twenty_runs_know_a_clean_suite_is_the_same():
    """A benchmark that was looked at once, 1 % noise: the interval is within 3 %."""
    rng = np.random.default_rng(0)
    comparison = compared(simulated(rng, SUITE), Baseline(runs=tuple(simulated(rng, SUITE, 20))))
    words = [each.word for each in comparison.verdicts()]
    assert words.count("same") == len(SUITE)


def slowed(rng, runs=20, factor=1.1, first=None):
    """A suite of which the first benchmark is slower by ``factor`` (``first``: looked so at first)."""
    history = Baseline(runs=tuple(simulated(rng, SUITE, runs)))
    (head,) = simulated(rng, SUITE[1:])
    (slow,) = simulated(rng, SUITE[:1], factor=first or factor)
    return compared(run(*slow.records, *head.records), history)


def test_ten_percent_is_a_candidate_after_twenty_runs():
    """At 1 % noise; of the other 59 few are."""
    comparison = slowed(np.random.default_rng(1))
    assert SUITE[0] in comparison.candidates
    assert len(comparison.candidates) < 10


@pytest.mark.parametrize(("again", "word"), [(1.1, "slower"), (1.0, "same")])
def test_fresh_runs_decide_on_a_candidate(again, word):
    """Confirmed or not, and the reason says by whom."""
    rng = np.random.default_rng(1)
    comparison = slowed(rng, first=1.1)
    fresh = [
        *simulated(rng, SUITE[:1], FRESH, factor=again),
        *simulated(rng, sorted(comparison.candidates - {SUITE[0]}), FRESH),
    ]
    found = {each.id: each for each in comparison.verdicts(dated(fresh), planned=FRESH)}
    assert found[SUITE[0]].word == word
    assert f"{'confirmed' if word == 'slower' else 'not confirmed'} by 3 fresh processes" in found[SUITE[0]].reason
    assert {each.word for name, each in found.items() if name != SUITE[0]} <= {"same", "unsure"}


def test_ten_percent_faster_is_faster():
    """The mirror image."""
    rng = np.random.default_rng(1)
    comparison = slowed(rng, factor=0.9)
    assert SUITE[0] in comparison.candidates
    fresh = simulated(rng, SUITE[:1], FRESH, factor=0.9)
    found = {each.id: each.word for each in comparison.verdicts(dated(fresh), planned=FRESH)}
    assert found[SUITE[0]] == "faster"


def test_a_fresh_process_is_said_to_be_one():
    """In the singular."""
    rng = np.random.default_rng(1)
    comparison = slowed(rng)
    fresh = simulated(rng, SUITE[:1], 1, factor=1.1)
    found = {each.id: each for each in comparison.verdicts(dated(fresh), planned=1)}
    assert ", confirmed by a fresh process" in found[SUITE[0]].reason


def test_a_candidate_that_could_not_be_measured_again_is_judged_by_its_first_look():
    """But nobody confirmed it, and the reason does not say so."""
    found = {each.id: each for each in slowed(np.random.default_rng(1), factor=1.3).verdicts([], planned=FRESH)}
    assert found[SUITE[0]].word == "slower"
    assert "confirmed by 3 fresh" not in found[SUITE[0]].reason


def test_a_first_look_that_has_to_do_is_corrected_for_the_whole_suite():
    """Measured again by nobody, 1 in 10 clean benchmarks are candidates: few of 20 suites have a false alarm."""
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        names = [f"b{number}" for number in range(60)]
        history = Baseline(runs=tuple(simulated(rng, names, 20, noise=0.03)))
        comparison = compared(simulated(rng, names, noise=0.03), history)
        alarms += "slower" in {each.word for each in comparison.verdicts([], planned=FRESH)}
    assert alarms <= 4


def test_one_look_alone_is_corrected_for_the_whole_suite():
    """The same where no second look was planned, as of saved files."""
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        names = [f"b{number}" for number in range(60)]
        history = Baseline(runs=tuple(simulated(rng, names, 20, noise=0.03)))
        words = {each.word for each in compared(simulated(rng, names, noise=0.03), history).verdicts()}
        alarms += "slower" in words
    assert alarms <= 4


def test_one_run_and_no_ledger_cannot_tell_five_percent():
    """And says what could have been seen: some 30 %."""
    found = verdict_of(timed(seconds=0.0105), timed())
    assert found.word == "unsure"
    assert found.change.value == pytest.approx(1.05)
    assert 0.15 < found.detectable < 0.5
    assert found.reason.endswith(f"only a change of {found.detectable:.1%} would have been seen")


def test_one_run_and_no_ledger_can_tell_a_hundred_percent():
    """Beyond any default."""
    assert verdict_of(timed(seconds=0.02), timed()).word == "slower"


@pytest.mark.parametrize(("seconds", "word"), [(0.0105, "slower"), (0.0095, "faster"), (0.01, "same")])
def test_one_run_and_a_ledger_can_tell_five_percent(seconds, word):
    """Of a benchmark that repeats to half a percent."""
    (found,) = compared(run(timed(seconds=seconds)), saved(timed()), ledger=calibrated(0.005, NAME)).verdicts()
    assert found.word == word


def test_a_ledger_of_another_benchmark_says_nothing():
    """Nor one of other parameters."""
    old, new = timed(identity="f" * 12), timed(seconds=0.0105, identity="f" * 12)
    for ledger in (calibrated(0.005, NAME), calibrated(0.005, "other")):
        assert compared(run(new), saved(old), ledger=ledger).verdicts()[0].word == "unsure"


def test_counts_are_exact_from_the_first_run_on():
    """And the time beside them is not."""
    old, new = (record(NAME, around(0.01), count("operators", value)) for value in (3, 4))
    found = verdict_of(new, old)
    assert (found.word, found.metric, found.reason) == ("slower", "operators", "operators 3 -> 4")


SETTLED = [record(NAME, around(s), count("operators", value)) for s, value in ((0.01, 3), (0.03, 4))]


def test_what_is_settled_by_counts_is_not_measured_again():
    """It would be slower whatever the time."""
    old, new = SETTLED
    assert compared(run(new), saved(old)).candidates == set()


def test_what_was_not_measured_again_was_confirmed_by_nobody():
    """Its time is slower, too, at the first look."""
    old, new = SETTLED
    (found,) = compared(run(new), saved(old)).verdicts(planned=FRESH)
    assert found.word == "slower"
    assert "confirmed by" not in found.reason


def test_across_torch_versions_counts_inform():
    """Another torch dispatches other operators."""
    found = verdict_of(record(NAME, count("operators", 9)), record(NAME, count("operators", 3)), soft={"torch": "2.16"})
    assert (found.word, found.code) == ("same", "other-torch")
    assert "torch changed (2.15.0 -> 2.16)" in found.reason


def test_an_old_run_of_another_torch_does_not_open_the_gate():
    """What counts is the torch of the value compared with, not of every run before."""
    newest, oldest = run(record(NAME, count("operators", 3))), run(machine=replaced(MACHINE, soft={"torch": "2.11"}))
    (found,) = compared(run(record(NAME, count("operators", 4))), Baseline(runs=(newest, oldest))).verdicts()
    assert found.word == "slower"


def test_what_has_no_better_direction_is_not_judged():
    """And where there is nothing else, that is said."""
    new, old = (record(NAME, count("allocations", value, "neither")) for value in (9, 3))
    assert (verdict_of(new, old).word, verdict_of(new, old).code) == ("unjudged", "no-metric")


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (times(0.01, 0.011), "too-few-samples"),
        (times(*[0.0] * 6), "not-positive"),
        (times(*[0.01] * 6), "no-variation"),
        (times(0.01, 0.01, 0.01, 0.01, math.nan), "not-positive"),
        (around(0.01, metric="other"), "metric-differs"),
        (replaced(around(10.0), unit="ms"), "metric-differs"),
    ],
)
def test_what_cannot_be_judged_says_why(new, code):
    """Never ``same``."""
    found = verdict_of(record(NAME, new), timed())
    assert (found.id, found.word, found.code, found.metric) == (NAME, "unjudged", code, "wall_seconds")


def test_a_baseline_that_cannot_be_judged_says_so_under_the_present_name():
    """After a rename, too."""
    baseline = saved(record("old", times(0.01, 0.01)), renamed={"old": NAME})
    (found,) = compared(run(timed()), baseline).verdicts()
    assert (found.id, found.word, found.code) == (NAME, "unjudged", "too-few-samples")


def test_a_metric_that_only_the_new_run_has_is_no_problem():
    """It has a baseline from the next run on."""
    new = record(NAME, around(0.01), count("operators", 3))
    assert verdict_of(new, timed()).metric == "wall_seconds"


def test_the_worst_metric_decides():
    """And is named."""
    old = record(NAME, around(0.01), count("operators", 3))
    new = record(NAME, around(0.001), count("operators", 4))
    assert verdict_of(new, old).metric == "operators"


def test_a_lower_speedup_is_slower():
    """Higher is better there."""
    old, new = (record(NAME, around(x, metric="speedup", better="higher", kind="paired")) for x in (2.0, 1.0))
    found = verdict_of(new, old)
    assert (found.word, found.metric) == ("slower", "speedup")
    assert found.change.value == pytest.approx(2)


def test_new_gone_and_other_parameters():
    """Nothing is compared under a wrong name."""
    old = Baseline(runs=(run(timed("a", identity="x"), timed("b"), timed("c")),))
    new = run(timed("a", identity="y"), timed("b"), timed("d"))
    found = [*compared(new, old, ledger=calibrated(0.005, "b")).verdicts(), *gone({"c"})]
    assert sorted((each.id, each.word, each.code) for each in found) == [
        ("a", "gone", "other-parameters"),
        ("a", "new", "other-parameters"),
        ("b", "same", "same"),
        ("c", "gone", "gone"),
        ("d", "new", "new"),
    ]


def test_nothing_in_common_fails():
    """Whatever the strictness."""
    found = compared(run(timed("a")), saved(timed("b"))).verdicts()
    assert {(each.id, each.code) for each in found} == {("a", "new"), ("", "nothing-in-common")}
    assert any(is_failure(each, strict=False) for each in found)


def test_no_baseline_and_a_broken_one():
    """Only the broken one fails without strict."""
    (absent,) = compared(run(), Baseline(absence="none yet")).verdicts()
    (broken,) = compared(run(), Baseline(absence="none", problems=("x.json: empty",))).verdicts()
    assert (absent.word, absent.code, absent.reason) == ("unjudged", "no-baseline", "none yet")
    assert (is_failure(absent, strict=False), is_failure(absent, strict=True)) == (False, True)
    assert (broken.code, is_failure(broken, strict=False)) == ("unreadable-baseline", True)


def test_without_records_there_is_nothing_to_say():
    """Whether or not there is a baseline."""
    empty = replaced(run(), records=())
    assert compared(empty, saved(timed())).verdicts(planned=FRESH) == []
    assert compared([], Baseline(absence="none")).verdicts() == []


def test_a_rename_keeps_its_history():
    """By the map in the settings."""
    baseline = saved(timed("old"), timed(NAME), renamed={"old": NAME})
    (found,) = compared(run(timed(seconds=0.03)), baseline).verdicts()
    assert (found.id, found.word) == (NAME, "slower")


def with_canary(seconds, canary, **fields):
    """A run in which the canary took so long."""
    process = replaced(PROCESS, canary=canary)
    return run(timed(seconds=seconds), processes=(process,), **fields)


CANARY = {"matmul": 0.001, "copy": 0.002}


MOODS = [1.0, 1.1, 0.95, 1.05, 1.0, 0.9, 1.1, 1.0, 0.95, 1.05]
"""Speeds of a machine in ten runs."""


def canary_at(speed):
    """What the canary takes on a machine that is slower by this factor."""
    return {part: seconds * speed for part, seconds in CANARY.items()}


def moody(runs=10, *, tells=True):
    """Runs of a machine that changes as a whole, whose canary ``tells`` it or says the opposite."""
    speeds = MOODS[:runs]
    return Baseline(runs=tuple(with_canary(0.01 * each, canary_at(each if tells else 1 / each)) for each in speeds))


@pytest.mark.parametrize(
    ("matmul", "copy", "word"), [(1.1, 1.1, "same"), (1.0, 1.0, "slower"), (1 / 1.1, 1.0, "slower")]
)
def test_the_canary_is_subtracted(matmul, copy, word):
    """A machine that is 10 % slower as a whole is no regression; one whose canary is not slower is."""
    head = with_canary(0.011, {"matmul": 0.001 * matmul, "copy": 0.002 * copy})
    (found,) = compared(head, moody(), ledger=calibrated(0.005, NAME)).verdicts()
    assert found.word == word


@pytest.mark.parametrize(("baseline", "helps"), [(moody(), True), (moody(9), False), (moody(tells=False), False)])
def test_the_canary_is_taken_off_only_where_the_history_shows_that_it_helps(baseline, helps):
    """It has noise of its own; fewer than ten runs cannot tell."""
    found = compared(with_canary(0.011, canary_at(1.1)), baseline)
    assert found.canary_helps is helps
    assert bool(found.rows.canary_parts[0]) is helps


def test_the_canary_of_each_process_is_its_own():
    """Two processes, one of them slow as a whole."""
    slow = replaced(PROCESS, canary={"matmul": 0.0012, "copy": 0.0024})
    fast = replaced(PROCESS, canary=CANARY)
    values = (around(0.01).samples[0], around(0.012).samples[0])
    two = replaced(around(0.01), samples=values)
    for processes, ratio in (((fast, slow), 1.0), ((slow, fast), 1.0), ((fast, fast), 1.2**0.5)):
        head = run(record(NAME, two), processes=processes)
        (found,) = compared(head, moody()).verdicts()
        assert found.change.value == pytest.approx(ratio)


def test_a_speedup_needs_no_canary():
    """It is a ratio within one process."""
    speedup = record(NAME, around(2.0, metric="speedup", better="higher", kind="paired"))
    slow = replaced(PROCESS, canary={"matmul": 0.1, "copy": 0.1})
    (found,) = compared(run(speedup, processes=(slow,)), saved(speedup)).verdicts()
    assert found.change.value == pytest.approx(1.0)


@pytest.mark.parametrize("canary", [{}, {"matmul": 0.001}, {"matmul": 0.0, "copy": 0.002}])
def test_a_canary_that_one_side_lacks_is_subtracted_from_neither(canary):
    """Only parts that both read can tell how the machine changed; a missing one is not a machine 500 times faster."""
    (found,) = compared(with_canary(0.01, CANARY), Baseline(runs=(with_canary(0.01, canary),))).verdicts()
    assert found.word != "slower"
    assert found.change.value == pytest.approx(1.0)
    (found,) = compared(with_canary(0.01, canary), Baseline(runs=(with_canary(0.01, CANARY),))).verdicts()
    assert found.change.value == pytest.approx(1.0)


def test_a_benchmark_that_one_run_lacks_is_compared_with_the_others():
    """It had failed there."""
    baseline = Baseline(runs=(run(timed("other")), run(timed(seconds=0.02)), run(timed(seconds=0.02))))
    (found,) = compared(run(timed(seconds=0.02)), baseline).verdicts()
    assert found.change.value == pytest.approx(1.0)


def test_the_ratio_is_to_the_mean_of_the_history():
    """Of the logarithms: 1 and 4 make 2."""
    (found,) = compared(run(timed(seconds=0.02)), saved(timed(seconds=0.01), timed(seconds=0.04))).verdicts()
    assert found.change.value == pytest.approx(1.0)


@pytest.mark.parametrize(("word", "ratio"), [("faster", 1.0), ("accepted", 1.0), ("", 4**-0.5), ("same", 4**-0.5)])
def test_history_begins_again_where_the_level_was_changed(word, ratio):
    """That record is the first of the new level; the two of 4 times as long before it are not looked at."""
    old = [timed(seconds=0.01), timed(seconds=0.01, verdict=word), timed(seconds=0.04), timed(seconds=0.04)]
    (found,) = compared(run(timed(seconds=0.01)), saved(*old)).verdicts()
    assert found.change.value == pytest.approx(ratio)


def test_what_was_judged_slower_is_no_history():
    """Or a regression would be the normal of the next run."""
    old = [timed(seconds=0.02, verdict="slower"), *[timed(seconds=0.01)] * 3]
    (found,) = compared(run(timed(seconds=0.02)), saved(*old)).verdicts()
    assert (found.word, round(found.change.value, 6)) == ("slower", 2.0)


def test_where_all_was_slower_nothing_is_forgiven():
    """After twenty red runs the slow level is not the new normal: it fails, and does not become the history."""
    head = run(timed(seconds=0.02))
    (found,) = compared(head, saved(*[timed(seconds=0.02, verdict="slower")] * 20)).verdicts()
    assert (found.word, found.code) == ("unjudged", "only-regressed")
    assert is_failure(found, strict=False)
    assert with_verdicts(head, [found]).records[0].verdict == "slower"
    assert with_verdicts(head, [found], accept=True).records[0].verdict == "accepted"


def test_a_change_for_the_worse_is_not_the_new_normal():
    """Sixteen runs, then four that are 5 % slower and were too noisy to be proven: the old level stands."""
    rng = np.random.default_rng(5)
    slow, fast = (simulated(rng, [NAME], count, factor, 0.003) for count, factor in ((4, 1.05), (16, 1.0)))
    (new,) = simulated(rng, [NAME], 1, 1.05, 0.003)
    found = compared(new, Baseline(runs=(*slow, *fast)))
    assert found.candidates == {NAME}
    fresh = simulated(rng, [NAME], FRESH, 1.05, 0.003)
    assert [each.word for each in found.verdicts(dated(fresh), planned=FRESH)] == ["slower"]


def test_a_change_for_the_better_is_the_new_normal():
    """At once, without any verdict: going back to the old level is a regression."""
    rng = np.random.default_rng(6)
    fast, slow = (simulated(rng, [NAME], count, factor, 0.003) for count, factor in ((5, 1.0), (15, 1.06)))
    (new,) = simulated(rng, [NAME], 1, 1.06, 0.003)
    assert compared(new, Baseline(runs=(*fast, *slow)), ledger=calibrated(0.003, NAME)).candidates == {NAME}


def test_fewer_operators_do_not_end_the_history_of_times():
    """Only a level of time begins a new one."""
    head = run(record(NAME, count("operators", 2)))
    verdicts = compared(head, saved(record(NAME, count("operators", 3)))).verdicts()
    assert [each.word for each in verdicts] == ["faster"]
    assert with_verdicts(head, verdicts).records[0].verdict == "same"


def test_runs_that_somebody_named_count_whatever_was_said_of_them():
    """Also what was once judged slower, or faster."""
    old = [timed(verdict=word) for word in ("slower", "faster", "slower", "same")]
    found = compared(run(timed(seconds=0.07)), saved(*old, explicit=True))
    assert [each.word for each in found.verdicts()] == ["slower"]
    assert len(found.rows.old[0]) == 4


def test_an_accepted_metric_begins_a_level_beside_an_unsure_one():
    """Or the next run would be compared with the old level, and the entry would not speak any more."""
    old, new = (record(NAME, around(0.01), count("operators", value)) for value in (3, 4))

    def accept(verdict):
        accepted = verdict.metric == "operators"
        return replaced(verdict, word="same", code="accepted") if accepted else verdict

    head = run(new)
    verdicts = compared(head, saved(old)).verdicts(accept=accept)
    assert [each.word for each in verdicts] == ["unsure"]
    assert with_verdicts(head, verdicts).records[0].verdict == "accepted"


def test_history_ends_where_the_parameters_were_others():
    """Under the same name."""
    old = [timed(seconds=0.01), timed(seconds=0.04, identity="f" * 12)]
    (found,) = compared(run(timed(seconds=0.01)), saved(*old)).verdicts()
    assert found.change.value == pytest.approx(1.0)


def test_a_level_left_long_ago_is_not_the_baseline():
    """Twelve runs of 12 ms, then eight of 10 ms, noise 0.5 %: 12 ms are 20 % slower than now."""
    rng = np.random.default_rng(2)
    runs = [*simulated(rng, [NAME], 8, noise=0.005), *simulated(rng, [NAME], 12, factor=1.2, noise=0.005)]
    (found,) = compared(run(timed(seconds=0.012)), Baseline(runs=tuple(runs))).verdicts()
    assert found.word == "slower"
    assert found.change.value == pytest.approx(1.2, rel=0.01)


def test_a_flagged_record_is_measured_again():
    """Whatever it looked like."""
    comparison = compared(run(timed(flags=("throttled",))), saved(timed()))
    assert comparison.candidates == {NAME}


def test_a_flagged_record_that_nobody_measured_again_is_unjudged():
    """With the disturbance."""
    (found,) = compared(run(timed(flags=("throttled",))), saved(timed())).verdicts(planned=FRESH)
    assert (found.word, found.code) == ("unjudged", "flagged")
    assert "1 of 1 processes: throttled" in found.reason


@pytest.mark.parametrize(("disturbed", "word"), [(0, "same"), (1, "unjudged"), (3, "unjudged")])
def test_a_flagged_record_is_judged_where_fresh_ones_were_undisturbed(disturbed, word):
    """At most a third of all may be disturbed: 1 of 4, but not 2 of 4."""
    comparison = compared(run(timed(flags=("throttled",))), saved(*[timed()] * 3), ledger=calibrated(0.005, NAME))
    fresh = [run(timed(flags=("throttled",) if number < disturbed else ())) for number in range(FRESH)]
    (found,) = comparison.verdicts(dated(fresh), planned=FRESH)
    assert found.word == word


def test_a_disturbance_excuses_no_count():
    """Operators are counted exactly on a busy machine, too."""
    old, new = (record(NAME, around(0.01), count("operators", value)) for value in (3, 4))
    (found,) = compared(run(replaced(new, flags=("throttled",))), saved(old)).verdicts(planned=FRESH)
    assert found.word == "slower"


def test_one_benchmark_disturbed_leaves_the_others_alone():
    """They were measured at another time."""
    baseline = Baseline(runs=(run(timed("a"), timed("b")),))
    head = run(timed("a", flags=("throttled",)), timed("b", seconds=0.03))
    words = {each.id: each.word for each in compared(head, baseline).verdicts()}
    assert words == {"a": "unjudged", "b": "slower"}


def test_wildly_different_scales_are_judged_alike():
    """A hundred nanoseconds beside a quarter of an hour: only ratios matter."""
    scales = {f"b{power}": 10.0**power for power in range(-7, 4)}
    rng = np.random.default_rng(3)

    def runs(count, factor=1.0):
        return [
            run(*(timed(name, s * factor * math.exp(NOISE * rng.standard_normal())) for name, s in scales.items()))
            for _ in range(count)
        ]

    found = compared(runs(1, 1.2), Baseline(runs=tuple(runs(20)))).verdicts()
    assert {each.word for each in found} == {"slower"}
    assert len(found) == 11


def test_several_heads_are_looked_at_together():
    """Of saved files: the mean of the logarithms, and a narrower interval than of one."""
    heads = [run(timed(seconds=s)) for s in (0.01, 0.04)]
    (found,) = compared(heads, saved(timed(seconds=0.02))).verdicts()
    assert found.change.value == pytest.approx(1.0)
    rng = np.random.default_rng(4)
    past = Baseline(runs=tuple(simulated(rng, [NAME], 20)))
    one, many = (compared(simulated(rng, [NAME], number), past).verdicts()[0].change for number in (1, 10))
    assert many.half_width < 0.7 * one.half_width


def test_a_benchmark_that_only_one_head_has_is_compared_by_it():
    """The other file was of a part."""
    heads = [run(timed("a", 0.03), timed("b")), run(timed("b"))]
    found = compared(heads, Baseline(runs=(run(timed("a"), timed("b")),))).verdicts()
    assert {each.id: each.word for each in found} == {"a": "slower", "b": "unsure"}


def test_one_disturbed_head_of_ten_excuses_nothing():
    """A tenth is less than a third."""
    heads = [run(timed(seconds=0.03, flags=("throttled",) if number == 0 else ())) for number in range(10)]
    (found,) = compared(heads, saved(timed())).verdicts()
    assert found.word == "slower"


@pytest.mark.parametrize("values", [(4, 3), (3, 4)])
def test_heads_whose_counts_differ_leave_nothing_to_judge(values):
    """Whichever comes last."""
    heads = [run(record(NAME, count("operators", value))) for value in values]
    (found,) = compared(heads, saved(record(NAME, count("operators", 3)))).verdicts()
    assert (found.word, found.code) == ("unjudged", "count-varies")


def test_a_head_of_other_parameters_is_not_mixed_with_the_others():
    """Or its time would pass for the benchmark's."""
    heads = [run(timed(seconds=0.1, identity="f" * 12)), run(timed())]
    found = compared(heads, saved(timed())).verdicts()
    assert "slower" not in {each.word for each in found}


def test_two_hundred_benchmarks_of_twenty_runs():
    """One verdict each, and those that are slower found."""
    rng = np.random.default_rng(5)
    names = [f"b{number}" for number in range(200)]
    history = Baseline(runs=tuple(simulated(rng, names, 20)))
    head = run(*simulated(rng, names[:5], factor=1.2)[0].records, *simulated(rng, names[5:])[0].records)
    comparison = compared(head, history)
    fresh = [
        *simulated(rng, names[:5], FRESH, factor=1.2),
        *simulated(rng, sorted(comparison.candidates - set(names[:5])), FRESH),
    ]
    found = comparison.verdicts(dated(fresh), planned=FRESH)
    assert [each.id for each in found if each.word == "slower"] == names[:5]
    assert sorted(each.id for each in found) == sorted(names)
