"""Base and head in pairs of processes: suites simulated with a noise and a truth that are known."""

import math

import numpy as np
import pytest

from perfgate.results.ledger import Ledger, Noise
from perfgate.settings import Settings
from perfgate.verdict.paired import Pair, Rules, first_stage, judge_pairs, log_ratio
from tests.conftest import SPREAD, around, count, record, replaced, times

NAME = "benches/test_a.py::test_a"
SUITE = [f"benches/test_a.py::test_{number}" for number in range(60)]
NOISE = 0.01
FIRST, FRESH = 4, 8


def rules(fresh=FRESH, ledger=None, threshold=0.03, torches="", first=0):
    """What to judge by."""
    chosen = Settings(threshold=threshold)
    return Rules(settings=chosen, ledger=ledger or Ledger(), torches=torches, first=first, fresh=fresh)


def pair_of(base, head):
    """A pair in which each side measured these records."""
    return Pair(base={each.id: each for each in base}, head={each.id: each for each in head})


def pairs(rng, names, number, slower=(), factor=1.06, noise=NOISE):
    """Pairs of a 10 ms suite with noise in each pair's ratio; those in ``slower`` slower by ``factor``."""
    found = []
    for _ in range(number):
        base = [record(name, around(0.01)) for name in names]
        ratios = {name: noise * rng.standard_normal() + (math.log(factor) if name in slower else 0) for name in names}
        found.append(pair_of(base, [record(name, around(0.01 * math.exp(ratios[name]))) for name in names]))
    return found


def measured(*ratios, name=NAME, **fields):
    """Pairs of one benchmark with these log ratios; ``fields`` are of head's record."""
    return [
        pair_of([record(name, around(0.01))], [record(name, around(0.01 * math.exp(each)), **fields)])
        for each in ratios
    ]


def both(rng, slower=(), factor=1.06):
    """The verdicts of a suite by benchmark, candidates measured again."""
    first = pairs(rng, SUITE, FIRST, slower, factor)
    candidates = first_stage(first, rules()).candidates
    second = pairs(rng, sorted(candidates), FRESH, slower, factor)
    return {each.id: each for each in judge_pairs(first, second, rules())}


def one(first, second=(), judged_by=None):
    """The verdict on the only benchmark."""
    (found,) = judge_pairs(first, second, judged_by or rules())
    return found


def calibrated(deviation, identity="0" * 12):
    """A ledger that knows the noise of a pair of :data:`NAME`."""
    noise = {"pair_deviation": deviation, "pair_degrees": 40, "process_deviation": 1.0, "process_degrees": 40}
    entry = Noise(id=NAME, metric="wall_seconds", identity=identity, detectable=None, **noise)
    return Ledger(entries={(NAME, "wall_seconds"): entry})


def ratio_between(base, head, **fields):
    """The log ratio of rounds given as logarithms."""
    return log_ratio(times(*map(math.exp, base), **fields), times(*map(math.exp, head), **fields))


def test_rounds_are_compared_with_the_round_beside_them():
    """A machine that slows down by half meanwhile does not matter: both sides see it."""
    drift = [0.05 * number for number in range(8)]
    assert ratio_between(drift, [each + 0.02 for each in drift]) == pytest.approx(0.02)


def test_four_rounds_belong_together():
    """Going first costs 5 %: the mean of four knows nothing of it, the median of single rounds would."""
    head = [0.02 + each for each in (0.03, -0.01, -0.01, -0.01)] * 2
    assert ratio_between([0.0] * 8, head) == pytest.approx(0.02)


def test_a_disturbed_block_does_not_matter():
    """The median of three."""
    assert ratio_between([0.0] * 12, [0.02] * 4 + [3.0] * 4 + [0.02] * 4) == pytest.approx(0.02)


def test_rounds_of_no_whole_block_are_left_out():
    """Which side went first would be uneven in them."""
    assert ratio_between([0.0] * 10, [0.02] * 8 + [3.0, 3.0]) == pytest.approx(0.02)


def test_where_the_numbers_of_rounds_differ_medians_are_compared():
    """They did not alternate."""
    assert ratio_between([0.0, 0.1, 0.2, 0.3, 0.4], [0.5, 0.2, 0.3, 0.1, 0.4, 0.35]) == pytest.approx(0.325 - 0.2)


def test_of_fewer_rounds_than_a_block_medians_are_compared():
    """Three slow ones."""
    assert ratio_between([0.0, 0.1, 0.2], [0.3, 0.2, 0.1]) == pytest.approx(0.1)


def test_a_lower_speedup_is_worse():
    """Above zero means worse, whichever way is better."""
    assert ratio_between([0.1] * 8, [0.0] * 8, better="higher") == pytest.approx(0.1)
    assert ratio_between([0.1] * 5, [0.0] * 6, better="higher") == pytest.approx(0.1)


def test_a_block_of_speedups_is_two():
    """Each is of two rounds already: blocks 0, 0 and 0.1 have the median 0."""
    head = [0.05, -0.05, 0.05, -0.05, 0.1, 0.1]
    assert ratio_between([0.0] * 6, head, better="lower", kind="paired") == pytest.approx(0.0)
    assert ratio_between([0.0] * 6, head, better="lower", kind="sampled") == pytest.approx(0.0)
    assert ratio_between([0.0] * 6, [1.0] * 2 + [0.1] * 4, better="lower", kind="paired") == pytest.approx(0.1)


def test_identical_code_is_not_slower():
    """In none of five suites of sixty, and nearly all are the same."""
    for seed in range(5):
        words = [each.word for each in both(np.random.default_rng(seed)).values()]
        assert len(words) == 60
        assert "slower" not in words
        assert words.count("same") > 50


@pytest.mark.parametrize(("factor", "word"), [(1.06, "slower"), (1 / 1.06, "faster")])
def test_six_percent_are_found(factor, word):
    """Three of sixty, 1 % noise in a pair, and nothing else; a ratio with its interval and who confirmed it."""
    found = both(np.random.default_rng(7), SUITE[:3], factor)
    assert [name for name, each in found.items() if each.word == word] == SUITE[:3]
    for name in SUITE[:3]:
        change = found[name].change
        assert change.low < change.value < change.high
        assert change.value == pytest.approx(factor, rel=0.02)
        assert ", confirmed by 8 fresh pairs" in found[name].reason


def test_the_first_stage_nominates_what_changed():
    """And few others."""
    first = pairs(np.random.default_rng(7), SUITE, FIRST, SUITE[:3])
    candidates = first_stage(first, rules()).candidates
    assert set(SUITE[:3]) <= candidates
    assert len(candidates) < 15


def test_only_fresh_pairs_decide():
    """Four pairs of +6 %, eight of nothing: four unlucky ones."""
    found = one(measured(0.06, 0.061, 0.059, 0.06), measured(*[0.001, -0.001] * 4))
    assert found.word == "same"
    assert found.change.value == pytest.approx(1.0, abs=1e-6)
    assert ", not confirmed by 8 fresh pairs" in found.reason


def test_the_detectable_change_is_of_the_stages_planned():
    """More fresh pairs see more; none leaves the first alone."""
    first = measured(0.02, -0.02, 0.01, -0.01)
    few, many = (one(first, judged_by=rules(fresh)).detectable for fresh in (2, 16))
    assert 0.03 <= many < few < math.inf


def test_a_benchmark_of_one_side_only_is_not_judged_here():
    """Who runs the pairs knows whether it is new, gone or skipped."""
    pair = pair_of([record("a", around(0.01)), record("b")], [record("a", around(0.01)), record("c")])
    assert [each.id for each in judge_pairs([pair] * 2, [], rules())] == ["a"]


def test_sides_with_nothing_in_common_have_no_verdict():
    """Nor have no pairs at all."""
    assert judge_pairs([pair_of([record("a")], [record("b")])], [], rules()) == []
    assert judge_pairs([], [], rules()) == []


def counted(*values, base=3, name=NAME):
    """Pairs in which head counted these."""
    return [
        pair_of([record(name, count("operators", base))], [record(name, count("operators", value))]) for value in values
    ]


@pytest.mark.parametrize(("value", "word"), [(3, "same"), (4, "slower"), (2, "faster")])
def test_counts_that_agree_are_exact(value, word):
    """From the first pair on."""
    assert one(counted(value)).word == one(counted(*[value] * 4)).word == word


@pytest.mark.parametrize(("first", "second"), [((3, 4, 3), ()), ((3, 3), (4,))])
def test_counts_that_vary_cannot_be_judged(first, second):
    """Neither within a stage nor between them."""
    found = one(counted(*first), counted(*second))
    assert (found.word, found.code) == ("unjudged", "count-varies")


def test_across_torch_versions_counts_inform():
    """Base and head may have environments of their own."""
    found = one(counted(4), judged_by=rules(torches="2.15.0 -> 2.16.0"))
    assert (found.word, found.code) == ("same", "other-torch")


def test_a_count_that_is_no_longer_measured_is_unjudged():
    """It could have grown."""
    pair = pair_of([record(NAME, count("operators", 3), around(0.01))], [record(NAME, around(0.01))])
    found = one([pair])
    assert (found.word, found.code, found.metric) == ("unjudged", "metric-differs", "operators")


@pytest.mark.parametrize("head", [around(0.01, metric="other"), replaced(around(10.0), unit="ms")])
def test_a_time_that_is_no_longer_measured_is_unjudged(head):
    """Equal counts beside it do not make it the same."""
    operators = count("operators", 3)
    pair = pair_of([record(NAME, operators, around(0.01))], [record(NAME, operators, head)])
    found = one([pair] * FIRST)
    assert (found.word, found.code, found.metric) == ("unjudged", "metric-differs", "wall_seconds")


def test_a_count_in_another_unit_is_unjudged():
    """Bytes are no kilobytes."""
    old = count("peak_bytes", 1000)
    pair = pair_of([record(NAME, old)], [record(NAME, replaced(old, unit="KiB"))])
    assert one([pair]).code == "metric-differs"


def test_other_parameters_are_another_benchmark():
    """Ten times the batch is no regression."""
    found = judge_pairs(measured(2.30, 2.31, 2.29, 2.30, identity="f" * 12), (), rules(fresh=0))
    assert [(each.word, each.code) for each in found] == [("new", "other-parameters"), ("gone", "other-parameters")]


def test_what_has_no_better_direction_is_not_judged():
    """And where there is nothing else, that is said."""
    each = record(NAME, around(0.01, better="neither"), count("allocations", 3, "neither"))
    found = one([pair_of([each], [each])] * FIRST)
    assert (found.word, found.code) == ("unjudged", "no-metric")


@pytest.mark.parametrize("side", ["base", "head"])
@pytest.mark.parametrize(
    ("values", "code"),
    [((0.01, 0.02), "too-few-samples"), ((0.01,) * 8, "no-variation"), ((*SPREAD[:7], math.nan), "not-positive")],
)
def test_samples_that_cannot_be_judged_in_one_pair(side, values, code):
    """Say so, of either side; the undisturbed pairs do not make it the same."""
    good, bad = record(NAME, around(0.01)), record(NAME, times(*values))
    odd = pair_of([bad], [good]) if side == "base" else pair_of([good], [bad])
    found = one([*measured(0.0, 0.001, -0.001), odd])
    assert (found.id, found.word, found.code) == (NAME, "unjudged", code)


@pytest.mark.parametrize(("disturbed", "word"), [(0, "same"), (1, "same"), (2, "unjudged"), (4, "unjudged")])
def test_more_than_a_third_of_disturbed_pairs_is_too_many(disturbed, word):
    """One of four may be."""
    quiet = [0.001, -0.001, 0.0005, -0.0005]
    first = [*measured(*quiet[:disturbed], flags=("throttled",)), *measured(*quiet[disturbed:])]
    found = one(first)
    assert found.word == word
    if word == "unjudged":
        assert (found.code, found.reason) == ("flagged", f"{disturbed} of 4 pairs were disturbed: throttled")


def test_a_disturbed_base_counts_as_well():
    """A pair is as good as its worse side."""
    bad = pair_of([record(NAME, around(0.01), flags=("throttled",))], [record(NAME, around(0.01))])
    assert one([*measured(0.0, 0.001), bad, bad]).code == "flagged"


def test_undisturbed_fresh_pairs_make_up_for_disturbed_ones():
    """Two of twelve are few."""
    disturbed = measured(0.06, 0.06, flags=("throttled",))
    found = one([*disturbed, *measured(0.06, 0.061)], measured(*[0.06, 0.061] * 4))
    assert found.word == "slower"


def test_a_disturbance_excuses_no_count():
    """Operators are counted exactly on a busy machine, too."""
    head = record(NAME, count("operators", 4), flags=("throttled",))
    assert one([pair_of([record(NAME, count("operators", 3))], [head])] * FIRST).word == "slower"


@pytest.mark.parametrize("ratio", [0.0, 0.02, 0.5, -0.5])
@pytest.mark.parametrize("fresh", [0, FRESH])
def test_one_pair_alone_tells_nothing(ratio, fresh):
    """Its error is unknown, and no change could be seen."""
    found = one(measured(ratio), judged_by=rules(fresh))
    assert found.word in {"unsure", "unjudged"}
    assert found.detectable == math.inf
    assert "(error unknown)" in found.reason


def test_one_pair_and_a_ledger_tell_something():
    """The noise of a pair was calibrated to half a percent."""
    known = rules(0, calibrated(0.005))
    assert [one(measured(ratio), judged_by=known).word for ratio in (0.0, 0.06, -0.06)] == ["same", "slower", "faster"]


def test_a_ledger_of_other_parameters_tells_nothing():
    """The same name is not the same benchmark."""
    assert one(measured(0.06), judged_by=rules(0, calibrated(0.005, "f" * 12))).word == "unsure"


def test_a_ledger_makes_a_small_suite_judgeable():
    """Two fresh pairs of one benchmark have one degree of freedom of their own."""
    first, second = measured(0.05, 0.07), measured(0.04, 0.08)
    without, known = rules(2), rules(2, calibrated(0.005))
    assert one(first, second, without).word == "unsure"
    assert one(first, second, known).word == "slower"


def test_a_candidate_without_fresh_values_is_unjudged():
    """It died, say: neither the same nor slower."""
    found = one(measured(0.06, 0.061, 0.059, 0.06))
    assert (found.word, found.code) == ("unjudged", "pairs-lost")


def test_what_too_few_pairs_measured_is_unjudged():
    """One pair of four survived: what it says may be why it survived."""
    few = measured(0.06)
    found = one(few, judged_by=rules(first=4, fresh=0))
    assert (found.word, found.code) == ("unjudged", "pairs-lost")


def test_candidates_that_too_few_fresh_pairs_measured_are_unjudged():
    """Two of eight."""
    found = one(measured(0.06, 0.061, 0.059, 0.06), measured(0.06, 0.06))
    assert (found.word, found.code) == ("unjudged", "pairs-lost")


def test_a_candidate_whose_fresh_samples_are_bad_says_why():
    """Not that nobody measured it."""
    bad = pair_of([record(NAME, around(0.01))], [record(NAME, times(0.01, 0.02))])
    found = one(measured(0.06, 0.061, 0.059, 0.06), [bad] * FRESH)
    assert (found.word, found.code) == ("unjudged", "too-few-samples")


def test_one_candidate_of_two_without_fresh_values():
    """The other one is judged by its own."""
    first = [
        Pair(base={**a.base, **b.base}, head={**a.head, **b.head})
        for a, b in zip(measured(0.06, 0.061, name="a"), measured(0.06, 0.061, name="b"), strict=True)
    ]
    second = measured(*[0.06, 0.061] * 4, name="a")
    assert {each.id: each.word for each in judge_pairs(first, second, rules())} == {"a": "slower", "b": "unjudged"}


def test_without_a_second_stage_the_first_decides():
    """Of one benchmark, twelve pairs."""
    found = one(measured(*[0.06, 0.061, 0.059] * 4), judged_by=rules(0))
    assert found.word == "slower"
    assert "confirmed" not in found.reason


def test_one_stage_alone_is_corrected_for_the_whole_suite():
    """At 4 % noise 1 of 10 clean benchmarks is nominated: few of 40 suites have a false alarm."""
    alarms = 0
    for seed in range(40):
        first = pairs(np.random.default_rng(seed), SUITE, FIRST, noise=0.04)
        alarms += "slower" in {each.word for each in judge_pairs(first, [], rules(0))}
    assert alarms <= 5


def test_ratios_without_any_scatter():
    """A clock of one digit: neither a division by zero nor a change that is not there."""
    assert one(measured(*[0.0] * FIRST)).word == "same"
    assert one(measured(*[0.06] * FIRST), measured(*[0.06] * FRESH)).word == "slower"
    assert one(measured(*[0.02] * FIRST), measured(*[0.02] * FRESH)).word == "same"


def test_the_worst_metric_decides():
    """A time that is the same does not hide a speedup that is lost."""

    def both_metrics(speedup):
        return record(NAME, around(0.01), around(speedup, metric="speedup", better="higher", kind="paired"))

    first = [pair_of([both_metrics(2.0)], [both_metrics(1.5 + 0.001 * number)]) for number in range(FIRST)]
    found = one(first, first * 2)
    assert (found.word, found.metric) == ("slower", "speedup")
    assert found.reason.startswith("speedup -2")
    assert found.change.value == pytest.approx(2 / 1.5, rel=0.01)


def test_noise_decides_between_the_same_and_unsure():
    """2 % in a pair are too many for 3 % to be seen in four, and the verdict says what would have been."""
    found = one(measured(0.03, -0.03, 0.02, -0.02))
    assert found.word == "unsure"
    assert found.reason.endswith(f"only a change of {found.detectable:.1%} would have been seen")
