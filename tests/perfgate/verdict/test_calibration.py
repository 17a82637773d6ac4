"""A/A pairs: the noise that went into them comes out, and what a gate sees with it."""

import math
import random
import statistics

import pytest

from perfgate.report.calibration import table
from perfgate.results.ledger import Noise
from perfgate.settings import Settings
from perfgate.verdict.calibration import UNFIT, Calibrated, between_processes, bias, calibrate
from perfgate.verdict.paired import Pair, series_of
from tests.conftest import count, record, replaced, times

NAME = "benches/test_a.py::test_a"
ROUNDS = (1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.0, 1.0)


def side(log_median, *more, name=NAME):
    """A record whose time has this median."""
    return record(name, times(*(0.01 * math.exp(log_median) * each for each in ROUNDS)), *more)


def pair(base, head, name=NAME, **fields):
    """A pair of processes with these log medians."""
    return Pair(base={name: side(base, name=name)}, head={name: side(head, name=name)}, **fields)


def found(pairs, settings=None):
    """What is found of the only metric."""
    (only,) = calibrate(pairs, settings or Settings(), first=4, fresh=8)
    return only


def test_the_deviation_of_a_pair_is_the_one_put_in():
    """About 0, which is the truth of a program against itself."""
    values = [0.01, -0.01, 0.02, -0.02]
    noise = found([pair(0.0, value) for value in values]).noise
    assert noise.pair_deviation == pytest.approx(math.sqrt(statistics.fmean(value**2 for value in values)))
    assert noise.pair_degrees == 4
    assert (noise.id, noise.metric, noise.identity) == (NAME, "wall_seconds", "0" * 12)


def test_a_side_that_is_always_worse_is_noise_too():
    """Nothing may be subtracted: no difference is true here."""
    assert found([pair(0.0, 0.05)] * 6).noise.pair_deviation == pytest.approx(0.05)


def test_simulated_noise_is_found_again():
    """Within what so many pairs allow."""
    draw = random.Random(1)
    pairs = [pair(draw.gauss(0, 0.03), draw.gauss(0, 0.03)) for _ in range(400)]
    noise = found(pairs).noise
    assert noise.pair_deviation == pytest.approx(0.03 * math.sqrt(2), rel=0.1)
    assert noise.process_deviation == pytest.approx(0.03, rel=0.1)
    assert noise.process_degrees == 2 * 399


def test_the_canary_can_take_the_machines_speed_out_of_a_process():
    """Where it went along with the benchmark, nothing is left between processes. The ledger keeps them as they are."""
    speeds = [0.0, 0.1, -0.1, 0.2]
    pairs = [pair(speed, speed + 1e-6, canaries={"base": speed, "head": speed}) for speed in speeds]
    ((question,),) = [[each.question for each in series_of(pairs)[0].values()]]
    assert between_processes(pairs, question, canary=True)[0] == pytest.approx(0.0, abs=1e-9)
    assert found(pairs).noise.process_deviation > 0.1


def test_a_speedup_needs_no_canary():
    """It is a ratio within one process."""
    speedup = times(*(1.5 * each for each in ROUNDS), metric="speedup", better="higher", kind="paired")
    again = replaced(speedup, samples=(tuple(each * 1.000001 for each in speedup.values),))
    pairs = [
        Pair(
            base={NAME: side(0.0, speedup)},
            head={NAME: side(1e-6, again)},
            canaries={"base": speed, "head": speed},
        )
        for speed in (0.0, 0.5, -0.5)
    ]
    found = {
        key[1]: between_processes(pairs, each.question, canary=True)[0] for key, each in series_of(pairs)[0].items()
    }
    assert found["wall_seconds"] > 0.1
    assert found["speedup"] < 1e-3


def test_more_noise_hides_more():
    """And beyond twice the limit a benchmark cannot gate."""
    quiet = found([pair(0.0, value) for value in (0.001, -0.001) * 6])
    noisy = found([pair(0.0, value) for value in (0.1, -0.1) * 6])
    assert quiet.noise.detectable < noisy.noise.detectable
    assert quiet.fit
    assert not noisy.fit


def test_the_limit_is_the_benchmarks_own():
    """So that a noisy one can be given more room."""
    generous = Settings(benchmarks={"benches/test_a.py": {"threshold": 0.5}})
    noisy = found([pair(0.0, value) for value in (0.05, -0.05) * 6], generous)
    assert noisy.threshold == 0.5
    assert noisy.fit


@pytest.mark.parametrize(
    ("detectable", "fit"), [(None, False), (0.03, True), (0.03 * UNFIT, True), (0.03 * UNFIT * 1.01, False)]
)
def test_what_is_fit(detectable, fit):
    """Up to twice the limit; never where nothing can be seen."""
    noise = replaced(NOISE, detectable=detectable)
    assert Calibrated(noise=noise, threshold=0.03).fit is fit


def test_a_single_pair_is_no_error():
    """There are no two processes of a side to compare."""
    noise = found([pair(0.0, 0.01)]).noise
    assert (noise.pair_degrees, noise.process_deviation, noise.process_degrees) == (1, 0.0, 0)


def test_pairs_without_noise_are_no_error():
    """A deviation of 0 is possible on paper."""
    only = found([pair(0.0, 0.0)] * 4)
    assert only.noise.pair_deviation == 0.0
    assert only.noise.detectable is None or only.noise.detectable >= 0.0


def test_counts_are_not_calibrated():
    """They are certain."""
    both = Pair(base={NAME: side(0.0, count("operators", 3))}, head={NAME: side(0.01, count("operators", 3))})
    assert [each.noise.metric for each in calibrate([both] * 2, Settings(), first=4, fresh=8)] == ["wall_seconds"]


def test_what_only_one_side_measured_is_left_out():
    """And nothing at all is nothing."""
    lonely = Pair(base={NAME: side(0.0)}, head={})
    assert calibrate([lonely], Settings(), first=4, fresh=8) == []
    assert calibrate([], Settings(), first=4, fresh=8) == []


def test_one_pair_in_which_it_failed_is_left_out():
    """The others count."""
    pairs = [pair(0.0, 0.01), Pair(base={NAME: side(0.0)}, head={}), pair(0.0, -0.01)]
    assert found(pairs).noise.pair_degrees == 2


def test_the_bias_of_all_and_of_the_side_that_starts():
    """Base starts in even pairs, head in odd ones."""
    assert bias([pair(0.0, 0.02)] * 4) == (pytest.approx(0.02), pytest.approx(0.0))
    first_is_worse = [pair(0.02, 0.0), pair(0.0, 0.02)] * 2
    assert bias(first_is_worse) == (pytest.approx(0.0), pytest.approx(0.02))
    assert bias([]) == (0.0, 0.0)


NOISE = Noise(
    id=NAME,
    metric="wall_seconds",
    identity="0" * 12,
    pair_deviation=0.012,
    pair_degrees=12,
    process_deviation=0.034,
    process_degrees=22,
    detectable=0.05,
)


def test_the_table_tells_what_can_gate():
    """Noisiest first, with the number of those that cannot."""
    noisy = replaced(NOISE, id="benches/test_b.py::test_b", pair_deviation=0.2, detectable=None)
    lines = table([Calibrated(noise=NOISE, threshold=0.03), Calibrated(noise=noisy, threshold=0.03)]).splitlines()
    assert lines[1].split() == [
        *("20.0", "%", "3.4", "%", "none", "3.0", "%", "wall_seconds", "benches/test_b.py::test_b"),
        *("unfit", "to", "gate", "by", "time"),
    ]
    assert lines[2].split() == ["1.2", "%", "3.4", "%", "5.0", "%", "3.0", "%", "wall_seconds", NAME]
    assert lines[3].startswith("1 of 2 unfit")


def test_the_table_obeys_no_name():
    """No escape reaches the terminal, and no name breaks a line."""
    evil = replaced(NOISE, id="t.py::test[\x1b[2J\n\u202e]")
    shown = table([Calibrated(noise=evil, threshold=0.03)])
    assert not set(shown) & set("\x1b\u202e")
    assert len(shown.splitlines()) == 3
