"""The roofline: known work and known peaks give the known class."""

import pytest
import torch

from workloads.analysis import peaks
from workloads.analysis.clock import Stopwatch, seconds_of
from workloads.analysis.peaks import Peaks, float32_as
from workloads.analysis.roofline import LAUNCH_FACTOR, Roofline
from workloads.commands.analysis_tables import above_peak


def roofline(**changes):
    """100 FLOP and 10 B in 2 s, on a machine that computes 100 FLOP/s and moves 100 B/s."""
    defaults = {
        "flops": 100,
        "traffic_bytes": 10,
        "compute_roof_seconds": 1.0,
        "memory_roof_seconds": 0.1,
        "step_seconds": 2.0,
        "data_seconds": 0.5,
    }
    return Roofline(**{**defaults, **changes})


def test_rates_shares_and_intensity():
    """By their definitions."""
    found = roofline()
    assert (found.flops_per_second, found.bytes_per_second) == (50, 5)
    assert (found.compute_share, found.memory_share) == (0.5, 0.05)
    assert found.arithmetic_intensity == 10
    assert found.ridge_point == pytest.approx(1.0)  # 100 FLOP/s over 100 B/s


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({}, "compute"),
        ({"memory_roof_seconds": 1.5}, "memory"),
        ({"step_seconds": LAUNCH_FACTOR * 1.01}, "launch"),
        ({"step_seconds": LAUNCH_FACTOR * 0.99}, "compute"),
        ({"data_seconds": 2.1}, "input"),
        ({"data_seconds": None}, "compute"),
        ({"flops": 0, "compute_roof_seconds": 0.0, "memory_roof_seconds": 1.0}, "memory"),
    ],
)
def test_what_bounds_a_step(changes, bound):
    """The lower roof, unless the step is far above both or the loader is slower."""
    assert roofline(**changes).bound == bound


def test_a_step_without_flops_has_no_ridge():
    """And no division by zero."""
    found = roofline(flops=0, compute_roof_seconds=0.0)
    assert (found.arithmetic_intensity, found.ridge_point, found.compute_share) == (0, 0, 0)


def test_each_precision_has_its_own_roof():
    """Half of the work in a type that is four times as fast."""
    found = Peaks(flops_per_second={"float32": 100.0, "bfloat16": 400.0}, bytes_per_second=1.0)
    assert found.compute_seconds({"float32": 100, "bfloat16": 100}) == 1.25


def test_a_precision_that_cannot_be_measured_is_compared_with_bfloat16(monkeypatch):
    """``torch.mm`` has no 8-bit floats."""
    monkeypatch.setattr(peaks, "matmul_peak", lambda device, precision, threads: {"bfloat16": 7.0}[precision])
    monkeypatch.setattr(peaks, "copy_peak", lambda device, threads: 3.0)
    found = peaks.measured_peaks(torch.device("cpu"), ("float8_e4m3fn",))
    assert (found.flops_per_second, found.bytes_per_second) == ({"float8_e4m3fn": 7.0}, 3.0)


def test_the_peak_is_the_best_of_all_sizes_and_rounds(monkeypatch):
    """Disturbed rounds do not lower it; every size has at least three."""
    seconds = iter([9.0, 1.0, 5.0, 8.0, 16.0, 64.0])
    monkeypatch.setattr(peaks, "MATMUL_SIDES", {"cpu": (1, 2)})
    monkeypatch.setattr(peaks, "seconds_of", lambda work, device: next(seconds))
    peaks.matmul_rates.cache_clear()
    assert peaks.matmul_peak(torch.device("cpu"), "float32", 1) == max(2 * 1 / 1.0, 2 * 8 / 8.0)
    peaks.matmul_rates.cache_clear()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"compute_roof_seconds": 2.1}, ["MFU above 100 %: the machine was busier"]),
        ({"memory_roof_seconds": 2.1}, ["bytes above 100 %: caches served"]),
    ],
)
def test_a_share_above_the_whole_is_explained(changes, said):
    """Nobody can do more than the peak: it was measured at another time, or counts what was not done."""
    lines = list(above_peak(roofline(**changes)))
    assert len(lines) == len(said)
    assert all(line.startswith(start) for line, start in zip(lines, said, strict=True))


@pytest.mark.parametrize("precision", ["tf32", "float32", "bfloat16"])
def test_float32_precision_is_put_back(precision):
    """Whatever was measured."""
    before = torch.backends.cuda.matmul.fp32_precision
    with float32_as(precision):
        inside = torch.backends.cuda.matmul.fp32_precision
    assert (inside == "tf32") == (precision == "tf32")
    assert torch.backends.cuda.matmul.fp32_precision == before


def test_a_gpu_is_waited_for_at_both_ends(monkeypatch):
    """Or the time would be that of asking."""
    asked = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: asked.append("wait"))
    cuda = torch.device("cuda", 0)
    assert seconds_of(lambda: asked.append("work"), cuda) >= 0
    with Stopwatch(cuda)("forward"):
        asked.append("forward")
    assert asked == ["wait", "work", "wait", "wait", "forward", "wait"]
