"""Clocks, warm-up, stopping and interleaving, with times that the test decides."""

import gc
from types import SimpleNamespace

import pytest
import torch

from perfgate.errors import MeasurementError
from perfgate.measure import clock as clocks
from perfgate.measure.clock import CudaClock, Timing, WallClock, check_agreement, clock_for, time_round
from perfgate.measure.measurements import side_measurements, speedup, unjudged
from perfgate.measure.rounds import Side, run_rounds
from perfgate.measure.stopping import rounds_for
from perfgate.measure.warmup import is_steady, warm_up
from tests.conftest import count
from tests.perfgate.measure.fakes import FakeStep


def test_a_wall_clock_adds_nothing_to_the_step():
    """Its target is the function itself."""
    assert WallClock().target(print) is print
    assert clock_for(torch.device("cpu")).event_seconds() is None


def test_wall_seconds_are_those_of_the_call(monkeypatch):
    """Read before and after."""
    readings = iter([10.0, 10.25])
    monkeypatch.setattr(clocks.time, "perf_counter", lambda: next(readings))
    assert time_round(WallClock(), lambda: None) == Timing(0.25, None)


def test_a_cuda_round_is_enclosed_in_events_and_waits_for_the_device(monkeypatch):
    """Nothing waits between the two."""
    log = []

    class Event:
        def __init__(self, *, enable_timing):
            assert enable_timing

        def record(self, stream):
            log.append(f"record on {stream}")

        def elapsed_time(self, other):
            return 2.5  # milliseconds

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: "stream")
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: log.append(f"wait for {device}"))
    clock = CudaClock(torch.device("cuda", 0))
    clock.target(lambda: log.append("step"))()
    assert log == ["record on stream", "step", "record on stream", "wait for cuda:0"]
    assert clock.event_seconds() == 0.0025


def test_events_that_outlast_the_wall_are_an_error():
    """Something ran where the round did not wait for it."""
    check_agreement(0.010, 0.0101)
    check_agreement(0.010, None)
    with pytest.raises(MeasurementError, match="did not see the step"):
        check_agreement(0.010, 0.011)


def test_steady_means_two_medians_of_five_within_one_percent():
    """Outliers do not matter, drift does."""
    assert is_steady([1.0, 9.0, 1.0, 1.0, 1.0, 1.005, 1.0, 7.0, 1.0, 1.0])
    assert not is_steady([1.0] * 5 + [1.02] * 5)
    assert not is_steady([1.0] * 9)


def test_warm_up_ends_when_steady():
    """And says so."""
    falling = iter([9.0, 5.0, 3.0, 2.0, 1.5] + [1.0] * 20)
    found = warm_up(lambda: next(falling), 100.0, clock=lambda: 0.0)
    assert found.steady
    assert found.round_seconds == 1.0
    assert str(found) == f"steady after {found.rounds} rounds"


def test_a_warm_up_lasts_for_as_long_as_a_gpu_takes_to_raise_its_clock():
    """The slow clock of an idle GPU looks steady."""
    ticks = iter(range(100))
    found = warm_up(lambda: 1.0, 50.0, least_seconds=20.0, clock=lambda: next(ticks))
    assert found.steady
    assert found.rounds > 10  # which suffice otherwise
    assert warm_up(lambda: 1.0, 50.0, clock=lambda: 0.0).rounds == 10


def test_warm_up_ends_when_its_budget_is_spent():
    """And says that, too."""
    now = iter(range(100))
    seconds = iter(range(1, 100))
    found = warm_up(lambda: next(seconds), 5.0, clock=lambda: next(now))
    assert not found.steady
    assert "budget spent" in str(found)


@pytest.mark.parametrize(
    ("round_seconds", "rounds"), [(0.001, 120), (0.1, 40), (0.3, 20), (0.65, 10), (100.0, 10), (0.0, 120), (0.13, 30)]
)
def test_rounds_fit_the_budget_and_are_even(round_seconds, rounds):
    """20 to 120, or 10 where 20 would take far too long; four seconds here."""
    assert rounds_for(round_seconds, 4.0) == rounds


class Benchmark:
    """As much of pytest-benchmark's fixture as is used."""

    def __init__(self):
        self.stats = SimpleNamespace(stats=SimpleNamespace(data=[]))

    def pedantic(self, target, setup, teardown, rounds, iterations):
        assert iterations == 1
        for _ in range(rounds):
            setup()
            assert not gc.isenabled()
            target()
            self.stats.stats.data.append(0.5)
            teardown()


def test_rounds_alternate_in_the_order_a_b_b_a():
    """Plain before even rounds and after odd ones."""
    log = []
    variant, plain = Side(FakeStep(log, "B"), WallClock()), Side(FakeStep(log, "A"), WallClock())
    run_rounds(Benchmark(), variant, plain, 4)
    assert "".join(log) == "ABBAABBA"
    assert len(plain.timings) == len(variant.timings) == 4
    assert {each.wall_seconds for each in variant.timings} == {0.5}
    assert gc.isenabled()


def test_without_a_twin_only_the_step_runs():
    """And a disabled benchmark has no times."""
    log = []
    side = Side(FakeStep(log, "B"), WallClock())
    run_rounds(Benchmark(), side, None, 3)
    assert log == ["B"] * 3
    disabled = Benchmark()
    disabled.stats = None
    disabled.pedantic = lambda target, **_: target()
    run_rounds(disabled, side, None, 3)
    assert side.timings == []


def test_a_technique_is_active_in_its_own_rounds_only():
    """Also after a round that raised."""
    active = []

    class Flag(FakeStep):
        def active(self):
            from contextlib import contextmanager

            @contextmanager
            def flag():
                active.append(self.name)
                yield
                active.remove(self.name)

            return flag()

        def run(self):
            assert active == [self.name]
            super().run()
            if len(self.log) > 5:
                raise RuntimeError("in a round")

    log = []
    with pytest.raises(RuntimeError, match="in a round"):
        run_rounds(Benchmark(), Side(Flag(log, "B"), WallClock()), Side(Flag(log, "A"), WallClock()), 4)
    assert active == []


def test_speedup_is_one_ratio_per_a_b_b_a():
    """A bias between first and second cancels in the geometric mean of the two pairs."""
    variant = [Timing(1.0, None), Timing(2.0, None)] * 3
    plain = [Timing(4.0, None), Timing(2.0, None)] * 3
    assert speedup(variant, plain).samples == ((2.0, 2.0, 2.0),)


def test_what_is_unknown_has_no_value_and_says_why():
    """On a CPU: events and energy."""
    by_name = {each.metric: each for each in side_measurements([Timing(0.1, None)], 0.5, (), 4)}
    assert by_name["wall_seconds"].samples == ((0.1,),)
    assert by_name["first_call_seconds"].values == (0.5,)
    assert by_name["energy_joules"].samples == ()
    assert "unknown" in by_name["energy_joules"].note
    assert "GPU" in by_name["event_seconds"].note


def test_energy_is_per_step_and_per_sample():
    """In joules."""
    by_name = {each.metric: each for each in side_measurements([Timing(0.1, 0.09)], 0.5, (8.0,), 4)}
    assert by_name["energy_joules"].values == (8.0,)
    assert by_name["energy_joules_per_sample"].values == (2.0,)
    assert by_name["event_seconds"].values == (0.09,)


def test_counts_that_do_not_repeat_are_not_judged():
    """They stay visible."""
    shown = unjudged(count("operators", 3, **{"aten::mm()": 3}))
    assert (shown.kind, shown.better, shown.values, shown.table) == ("sampled", "neither", (3,), {})
