"""The machine's condition around the rounds: flags, notes, and the second attempt."""

from types import SimpleNamespace

import pytest

from perfgate.errors import MeasurementError
from perfgate.measure import condition
from perfgate.measure.attempts import attempt_rounds
from perfgate.measure.clock import WallClock
from perfgate.measure.condition import Reading, between
from perfgate.measure.nvml import Gpu, Unavailable
from perfgate.measure.rounds import Side
from perfgate.measure.warmup import SteadyClock, warm_up
from tests.perfgate.measure.fakes import FakeBenchmark, FakeNVML, FakeStep, processes


def reading(**answers):
    """What is read of a GPU that answers so."""
    return condition.read(Gpu(FakeNVML(**answers), "x"), on_gpu=True)


CALM = reading()
HOT = reading(nvmlDeviceGetCurrentClocksEventReasons=0x44)
BUSY = reading(nvmlDeviceGetComputeRunningProcesses=processes(1, 2, 2**30, 2**30 + 1))
SHARED = reading(nvmlDeviceGetVirtualizationMode=2)


def violated(nanoseconds):
    """A GPU whose clocks have been held down for so long, for either reason."""
    return reading(nvmlDeviceGetViolationStatus=SimpleNamespace(violationTime=nanoseconds))


def test_a_calm_gpu_and_a_cpu_have_nothing_to_tell():
    """No flags, no notes."""
    assert between(CALM, CALM) == condition.Condition()
    assert condition.read(None, on_gpu=False) == Reading()
    assert between(Reading(), Reading()) == condition.Condition()


def test_throttling_is_flagged_whenever_it_is_seen():
    """With its reasons."""
    text = "the rounds: power cap, hardware thermal slowdown"
    assert between(CALM, HOT).flags == (f"GPU clocks held down after {text}",)
    assert between(HOT, HOT).flags == (f"GPU clocks held down before {text}", f"GPU clocks held down after {text}")


def test_throttling_between_the_readings_shows_in_the_counter():
    """The reasons of the moment may be gone again; what the power cap held down is only a note."""
    found = between(violated(1_000_000), violated(13_500_000))
    assert found.flags == ("GPU clocks held down during the rounds: thermal slowdown for 12.5 ms",)
    assert found.notes == ("the power cap held clocks down for 12.5 ms, which is normal under load",)
    assert not between(violated(5), violated(5)).flags
    assert not between(violated(5), violated(4)).flags  # the driver was loaded again
    assert not between(Reading(), violated(5)).flags


def test_a_power_cap_is_a_note():
    """Normal under load."""
    capped = reading(nvmlDeviceGetCurrentClocksEventReasons=0x4)
    assert between(capped, capped).flags == ()
    assert between(CALM, capped).notes == ("the power cap held clocks down, which is normal under load",)


def test_other_processes_are_flagged():
    """Before and after."""
    one = reading(nvmlDeviceGetComputeRunningProcesses=processes(2**30, 2**30 + 1))  # of another namespace: one is us
    assert between(one, CALM).flags == ("1 other process on the GPU before the rounds",)
    assert between(CALM, BUSY).flags[0].endswith("other processes on the GPU after the rounds")


def test_what_trying_again_does_not_mend_is_unfit():
    """Told once."""
    broken = reading(nvmlDeviceGetTotalEccErrors=1)
    found = between(broken, broken)
    assert found.disturbances == ()
    assert found.flags == found.unfit
    assert len(found.unfit) == 1
    assert "1 uncorrectable" in found.unfit[0]
    assert "vGPU" in between(SHARED, SHARED).flags[0]


def test_unknown_is_no_accusation_but_a_note():
    """Each check that is off is told."""
    error = FakeNVML.NVMLError()
    blind = reading(nvmlDeviceGetCurrentClocksEventReasons=error, nvmlDeviceGetComputeRunningProcesses=error)
    assert between(blind, blind).flags == ()
    assert between(blind, blind).notes == ("partial: NVML does not tell throttling, other processes",)


def test_without_nvml_the_checks_are_off():
    """With the reason, also where nobody looked for it."""
    gone = condition.read(Unavailable("x", "pip install it"), on_gpu=True)
    (note,) = between(gone, gone).notes
    assert note == "partial: clock, temperature and other-process checks are off (pip install it)"
    assert between(gone, gone).flags == ()
    assert "was not asked" in between(condition.read(None, on_gpu=True), Reading()).notes[0]


def looking(*readings):
    """Gives one reading after the other."""
    left = iter(readings)
    return lambda: next(left)


def attempted(*readings, again=True, twin=True, **fields):
    """The condition, log, samples and sides of two rounds among these readings."""
    log, benchmark = [], FakeBenchmark()
    sides = [Side(FakeStep(log, "B"), WallClock()), Side(FakeStep(log, "A"), WallClock())][: 2 if twin else 1]
    found = attempt_rounds(benchmark, sides, 2, looking(*readings), again=again, **fields)
    return SimpleNamespace(found=found, log="".join(log), benchmark=benchmark, sides=sides)


def test_undisturbed_rounds_are_taken_once():
    """The readings are those around them."""
    one = attempted(CALM, CALM)
    assert one.log == "ABBA"
    assert one.found == condition.Condition()


@pytest.mark.parametrize("twin", [True, False])
def test_disturbed_rounds_are_taken_again_and_replaced(twin):
    """In the same order; pytest-benchmark's statistics are those of the second attempt, too."""
    one = attempted(CALM, HOT, CALM, CALM, twin=twin)
    assert one.log == ("ABBAABBA" if twin else "BBBB")
    assert one.found.flags == ()
    assert "taken twice" in one.found.notes[-1]
    assert "hardware thermal slowdown" in one.found.notes[-1]
    ours = [each.wall_seconds for each in one.sides[0].timings]
    assert one.benchmark.stats.stats.data == ours
    assert one.benchmark.stats.stats.total == sum(ours)
    assert {len(side.timings) for side in one.sides} == {2}


def test_rounds_that_are_disturbed_twice_keep_the_first_and_are_flagged():
    """No sample is thrown away for a worse one."""
    one = attempted(CALM, HOT, BUSY, CALM)
    first = one.benchmark.stats.stats.data
    assert [each.wall_seconds for each in one.sides[0].timings] == first
    assert len(first) == len(one.sides[1].timings) == 2
    assert "after the rounds: power cap, hardware" in one.found.flags[0]
    assert "both times" in one.found.notes[-1]
    assert "processes" in one.found.notes[-1]


def test_no_second_attempt_in_a_smoke_run_with_partners_or_for_what_stays():
    """Partners would wait, and memory errors do not go away."""
    assert attempted(CALM, HOT, again=False).log == "ABBA"
    partners = SimpleNamespace(before_round=lambda: None, after_rounds=lambda: None)
    assert attempted(CALM, HOT, turns=partners).found.flags
    assert attempted(SHARED, SHARED).found.unfit
    assert attempted(SHARED, SHARED).log == "ABBA"


def test_what_stays_is_flagged_after_a_second_attempt_too():
    """The disturbance is over, the sharing is not."""
    both = Reading(texts={**SHARED.texts, "throttling": "hardware slowdown"})
    one = attempted(both, SHARED, SHARED, SHARED)
    assert one.log == "ABBAABBA"
    assert one.found.flags == one.found.unfit != ()


def test_an_error_of_the_second_attempt_is_told():
    """As one of the first would be."""

    def lose():
        raise MeasurementError("gone")

    looks = iter([lambda: CALM, lambda: HOT, lose])

    def look():
        return next(looks)()

    side = Side(FakeStep(), WallClock())
    with pytest.raises(MeasurementError, match="gone"):
        attempt_rounds(FakeBenchmark(), [side], 2, look, again=True)


def test_a_clock_that_rises_is_not_steady():
    """Two successive readings must agree within 2 %; an unknown clock holds nothing up."""
    readings = iter([345.0, 1200.0, 1900.0, 1935.0, 1935.0])
    steady = SteadyClock(lambda: next(readings))
    assert [steady() for _ in range(5)] == [False, False, False, True, True]
    assert SteadyClock(lambda: None)()


def test_warm_up_goes_on_until_the_clock_is_steady():
    """Or its budget is spent."""
    answers = iter([False, False, True])
    found = warm_up(lambda: 1.0, 100.0, settled=lambda: next(answers), clock=lambda: 0.0)
    assert (found.steady, found.rounds) == (True, 12)
    now = iter(range(100))
    found = warm_up(lambda: 1.0, 20.0, settled=lambda: False, clock=lambda: next(now))
    assert not found.steady
