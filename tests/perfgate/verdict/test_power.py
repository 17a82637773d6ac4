"""The simulation behind the choice of rules: every rule runs, sees what cannot be missed, and the table is complete."""

import dataclasses

import numpy as np
import pytest

from perfgate.verdict import peers, power, simulation
from perfgate.verdict.power import FAMILIES, NOISES, main, rows_of, table
from perfgate.verdict.simulation import BENCHMARKS, SLOWED, draw

RULES = 27
QUIET = 0.002


def outcomes(noise, change, suites=6, **other):
    """What every rule says about a few suites."""
    found = {}
    for number, family in enumerate(FAMILIES):
        rng = np.random.default_rng((9, number))
        found |= family(rng, draw(rng, suites, noise, change, **other))
    return found


def ours(found):
    """Those that call our rules."""
    return {rule: outcome for rule, outcome in found.items() if rule.startswith("ours")}


@pytest.fixture(scope="module")
def at_typical_noise():
    """All rows at 1.5 %, from 24 clean suites."""
    return {row.rule: row for number, family in enumerate(FAMILIES) for row in rows_of(family, 0.015, 24, (1, number))}


def test_every_rule_has_a_name_of_its_own():
    """A family's row does not hide another's."""
    assert len(outcomes(QUIET, 0.0, suites=1)) == RULES


def test_every_rule_sees_a_gross_change():
    """Ten times as slow, hardly any noise, no outliers: all three, in every suite."""
    for rule, outcome in outcomes(QUIET, 9.0, outliers=0.0).items():
        assert outcome.red[:, :SLOWED].all(), rule


def test_no_rule_of_ours_sees_what_is_not_there():
    """Clean suites with hardly any noise and no outliers."""
    for rule, outcome in ours(outcomes(QUIET, 0.0, outliers=0.0)).items():
        assert not outcome.red.any(), rule


def test_rules_of_thresholds_are_silent_where_nothing_moves():
    """The drift alone does not reach 5 %."""
    found = outcomes(QUIET, 0.0, outliers=0.0)
    for rule in ("pytest-benchmark median:5%", "pytest-benchmark min:5%", "asv continuous p<.002 and 1.1"):
        assert not found[rule].red.any(), rule


def test_faster_is_not_red():
    """Half the time: none of the rules calls it slower."""
    for rule, outcome in outcomes(QUIET, -0.5, outliers=0.0).items():
        assert not outcome.red[:, :SLOWED].any(), rule


def test_ours_alarms_less_than_rules_on_rounds(at_typical_noise):
    """Rounds of one process are not independent."""
    loud = [at_typical_noise[rule].alarm for rule in ("Mann-Whitney on rounds p<.05", "criterion p<.05 and 1 %")]
    assert max(row.alarm for rule, row in at_typical_noise.items() if rule.startswith("ours: ab")) < min(loud)


def test_two_stages_have_more_power_than_the_textbook(at_typical_noise):
    """At 5 %, with fewer pairs on average."""
    row = at_typical_noise["ours: ab 4+8"]
    assert row.power[1] > at_typical_noise["5 pairs, paired t, Holm, 3 %"].power[1]
    assert row.first + row.extra < 5


def test_the_second_stage_costs_what_its_candidates_do():
    """Nothing where there are none, its size for each where all are."""
    never = power.concluded([[]], [power.of_pairs([])], 4, 8)
    assert (never.first, never.extra) == (4, 0.0)
    everything = list(range(BENCHMARKS))
    always = power.concluded([everything], [power.of_pairs([[0.1, 0.1]] * BENCHMARKS)], 4, 8)
    assert always.extra == pytest.approx(8.0)
    assert always.red.all()


def test_the_table_has_every_row(at_typical_noise):
    """In plain ASCII, below its head."""
    text = table(0.015, list(at_typical_noise.values()))
    assert text.isascii()
    assert [line[:36].strip() for line in text.splitlines()[3:]] == list(at_typical_noise)


def test_main_prints_each_noise_level_and_the_seed(capsys):
    """And where the numbers come from."""
    main(["--suites", "1", "--seed", "5"])
    printed = capsys.readouterr().out
    assert [f"noise of a pair {noise:.1%}" in printed for noise in NOISES] == [True] * 3
    assert "1 clean suites" in printed
    assert "seed 5" in printed


def test_the_same_seed_gives_the_same_row():
    """And another seed another suite."""
    family = FAMILIES[0]
    assert rows_of(family, 0.015, 8, (1,)) == rows_of(family, 0.015, 8, (1,))
    assert rows_of(family, 0.015, 8, (1,)) != rows_of(family, 0.015, 8, (2,))


def test_simulated_pairs_have_the_noise_asked_for():
    """Without outliers and scatter between benchmarks: its deviation is the noise, its mean the truth."""
    rng = np.random.default_rng(1)
    suites = draw(rng, 200, 0.015, 0.05, outliers=0.0)
    typical = dataclasses.replace(suites, sigma=np.full_like(suites.sigma, 0.015 / np.sqrt(2)))
    found = simulation.pairs(rng, typical, 4)
    assert found[:, SLOWED:].std() == pytest.approx(0.015, rel=0.02)
    assert found[:, SLOWED:].mean() == pytest.approx(0.0, abs=3e-4)
    assert found[:, :SLOWED].mean() == pytest.approx(np.log(1.05), abs=2e-3)


def test_simulated_outliers_are_as_many_as_asked_for():
    """Slow processes only, by 10 to 20 %."""
    rng = np.random.default_rng(2)
    suites = dataclasses.replace(draw(rng, 100, 0.015, 0.0, outliers=0.1), sigma=np.zeros((100, BENCHMARKS)))
    found = simulation.processes(rng, suites, 5)
    slow = found[found != 0]
    assert slow.size / found.size == pytest.approx(0.1, abs=0.01)
    assert np.log(1.1) <= slow.min() < slow.max() <= np.log(1.2)


def test_rounds_of_one_process_lie_together():
    """Their medians scatter as processes do, far more than twenty independent rounds would."""
    rng = np.random.default_rng(3)
    suites = dataclasses.replace(draw(rng, 50, 0.02, 0.0, outliers=0.0), sigma=np.full((50, BENCHMARKS), 0.01))
    found = simulation.rounds(rng, suites, simulation.processes(rng, suites, 1))
    assert found.shape == (50, BENCHMARKS, simulation.ROUNDS)
    assert np.log(np.median(found, axis=-1)).std() == pytest.approx(0.01, rel=0.1)


def test_canary_leaves_the_residual():
    """Common to a session, a third of a percent between two of them; without it one percent, common to all."""
    rng = np.random.default_rng(4)
    suites = draw(rng, 400, 0.015, 0.0)
    left, all_of_it = (simulation.states(rng, suites, 1, canary=canary) for canary in (True, False))
    assert left.std() * np.sqrt(2) == pytest.approx(simulation.RESIDUAL, rel=0.05)
    assert all_of_it.shape == (400, 1, 1)
    assert all_of_it.std() * np.sqrt(2) == pytest.approx(simulation.DRIFT, rel=0.1)


def test_limit_of_median_and_minimum():
    """6 % is red, 4 % is not; a slow minority of rounds moves neither."""
    base = np.full((3, 20), 0.01)
    head = base * np.array([[1.06], [1.04], [1.0]])
    head[2, :8] *= 2
    assert peers.compare_fail_median(base, head).tolist() == [True, False, False]
    assert peers.compare_fail_min(base, head).tolist() == [True, False, False]


def test_asv_needs_the_factor_beside_the_significance():
    """5 % is certain and not enough, 15 % is."""
    base = 1 + np.arange(20) / 1e4
    assert peers.asv_continuous(np.stack([base, base]), np.stack([base * 1.05, base * 1.15])).tolist() == [False, True]
    assert peers.u_test(base, base * 1.05)


def test_criterion_needs_one_percent():
    """Half a percent is significant and within its noise threshold."""
    base = np.tile(1 + np.arange(20) / 1e5, (2, 1))
    assert peers.criterion(base, base * np.array([[1.005], [1.02]])).tolist() == [False, True]


def test_boundaries_of_a_history():
    """Deviation 1: bencher's at 2.54 for twenty runs, conbench's at 5."""
    history = np.tile(np.random.default_rng(5).permutation(np.linspace(-1, 1, 20)), (3, 1))
    history = (history - history.mean()) / history.std(axis=1, ddof=1, keepdims=True)
    new = np.array([2.5, 2.6, 5.1])
    assert peers.bencher(history, new).tolist() == [False, True, True]
    assert peers.conbench(history, new).tolist() == [False, False, True]


def test_paired_t_corrects_for_the_suite():
    """What is significant alone is not among sixty."""
    row = np.array([0.01, 0.05, 0.05, 0.06, 0.10])
    suite = np.concatenate([row[None], np.tile([-0.01, 0.01, 0.0, 0.01, -0.01], (59, 1))])
    assert peers.paired_t(row[None, None], 0.03, 0.05).all()
    assert not peers.paired_t(suite[None], 0.03, 0.05).any()
