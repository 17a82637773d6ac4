"""What compiling costs: with a cold cache, with a warm one, and how many steps pay it back."""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import statistics
from collections.abc import Sequence

import torch

from perfgate.measure.clock import Timing
from perfgate.measure.measurements import sampled
from perfgate.results.record import Measurement


@functools.cache
def start_compiler(device_type: str) -> None:
    """Compile next to nothing, once per process: what the compiler takes to come up is no model's compile time.

    On a CPU it precompiles its headers, for instance, and a GPU loads its libraries of products and convolutions. Where
    it cannot, whoever needs it will hear why.
    """
    logging.getLogger("torch.__trace").propagate = False  # its records are empty but for torch's own handler
    with contextlib.suppress(Exception), torch.no_grad():
        image = torch.ones(1, 1, 4, 4, device=device_type)
        torch.compile(torch.sin)(image @ image)
        torch.nn.functional.conv2d(image, image)
    torch.compiler.reset()


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
