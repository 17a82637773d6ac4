"""What compiling costs: with a cold cache, with a warm one, and how many steps pay it back."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from perfgate.measure.clock import Timing
from perfgate.measure.measurements import sampled
from perfgate.results.record import Measurement


def steady_seconds(timings: Sequence[Timing]) -> float:
    """The median round; zero where none was timed."""
    return statistics.median(each.wall_seconds for each in timings) if timings else 0.0


def compile_times(cold_seconds: float, warm_seconds: float | None, variant: Sequence[Timing]) -> list[Measurement]:
    """What the first calls took beyond a steady round: capturing, generating and compiling code.

    ``cold_seconds`` is the first call's time with an empty cache, ``warm_seconds`` that of another build which finds
    the code in it; ``None`` where that was not measured.
    """
    steady = steady_seconds(variant)
    warm = [] if warm_seconds is None else [max(0.0, warm_seconds - steady)]
    return [
        sampled("compile_seconds", "s", [cold_seconds - steady]),
        sampled("warm_compile_seconds", "s", warm, note=None if warm else "not measured in a smoke run"),
    ]


def break_even(cold_seconds: float, variant: Sequence[Timing], plain: Sequence[Timing]) -> Measurement:
    """After how many steps the time spent on compiling is won back; no value where a step is not faster."""
    ours, theirs = steady_seconds(variant), steady_seconds(plain)
    if ours >= theirs:
        return sampled("break_even_steps", "count", [], note="never: a compiled step is not faster here")
    return sampled("break_even_steps", "count", [math.ceil((cold_seconds - ours) / (theirs - ours))])
