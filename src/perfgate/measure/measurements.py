"""The measurements of a record, made from what the passes found."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from perfgate.measure.clock import Timing
from perfgate.measure.step import Figure
from perfgate.results.record import Better, Kind, Measurement

DIGITS = 8  # of a saved sample: finer than any clock here, and half the size of the file


def sampled(
    metric: str,
    unit: str,
    values: Sequence[float],
    *,
    better: Better = "neither",
    kind: Kind = "sampled",
    note: str | None = None,
) -> Measurement:
    """A noisy metric with all its raw values, from one process; no value where ``values`` is empty."""
    samples = (tuple(float(f"{value:.{DIGITS}g}") for value in values),) if values else ()
    return Measurement(metric=metric, unit=unit, better=better, kind=kind, samples=samples, note=note)


def counted(
    metric: str, unit: str, value: int, *, better: Better = "lower", table: Mapping[str, int] | None = None
) -> Measurement:
    """An exact metric."""
    return Measurement(metric=metric, unit=unit, better=better, kind="counted", samples=((value,),), table=table or {})


def unjudged(measurement: Measurement) -> Measurement:
    """A count that differs from run to run: shown, and never compared."""
    return dataclasses.replace(measurement, kind="sampled", better="neither", table={}, note="differs from run to run")


def speedup(variant: Sequence[Timing], plain: Sequence[Timing], *, samples_ratio: float = 1.0) -> Measurement:
    """How many times faster the variant is than plain: one ratio per A B B A, the geometric mean of its two pairs.

    A round that follows its own kind finds its data in the caches and is faster than one that follows the twin; only
    within a whole A B B A does each side have one of either. ``samples_ratio`` is the variant's samples per round over
    the twin's: where they differ, times per sample are compared.
    """
    ratios = [
        samples_ratio * theirs.wall_seconds / ours.wall_seconds for ours, theirs in zip(variant, plain, strict=True)
    ]
    if len(ratios) > 1:
        ratios = [math.sqrt(first * second) for first, second in zip(ratios[::2], ratios[1::2], strict=True)]
    return sampled("speedup", "1", ratios, better="higher", kind="paired")


def figure(found: Figure) -> Measurement:
    """What only the subject could tell."""
    if found.exact and len(found.values) == 1:
        return Measurement(
            metric=found.name,
            unit=found.unit,
            better=found.better,
            kind="counted",
            samples=(found.values,),
            note=found.note,
        )
    return sampled(found.name, found.unit, found.values, better=found.better, note=found.note)


def side_measurements(
    timings: Sequence[Timing], first_call_seconds: float, energy_joules: Sequence[float], samples: int
) -> list[Measurement]:
    """Times and energy of one side; what is unknown is there without values and says why."""
    events = [each.event_seconds for each in timings if each.event_seconds is not None]
    return [
        sampled("wall_seconds", "s", [each.wall_seconds for each in timings], better="lower"),
        sampled("event_seconds", "s", events, note=None if events else "unknown: CUDA events need a GPU"),
        sampled("first_call_seconds", "s", [first_call_seconds]),
        *energy(energy_joules, samples),
    ]


def energy(joules: Sequence[float], samples: int, *, prefix: str = "") -> list[Measurement]:
    """Joules per step and per sample of one side; the twin's bear a ``prefix``."""
    note = None if joules else "unknown: no GPU with an energy counter"
    figures = {"energy_joules": joules, "energy_joules_per_sample": [each / samples for each in joules]}
    return [sampled(f"{prefix}{name}", "J", values, better="neither", note=note) for name, values in figures.items()]
