"""Timed rounds with a second attempt: what disturbed the first may be over, and only undisturbed rounds are judged."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from perfgate.measure.condition import Condition, Reading, between
from perfgate.measure.rounds import Pedantic, Side, replace_samples, run_rounds
from perfgate.turns import ALONE, Turns


class Repetition:
    """Takes rounds as pytest-benchmark's fixture does, which refuses to be used twice; tells nobody."""

    def __init__(self) -> None:
        """No samples yet."""
        self.extra_info: dict[str, Any] = {}
        self.stats = SimpleNamespace(stats=SimpleNamespace(data=[]))

    def pedantic(self, target: Callable[[], None], **arguments: Any) -> None:
        """Run ``target`` for a number of rounds of one iteration each."""
        setup, teardown, rounds = (arguments[each] for each in ("setup", "teardown", "rounds"))
        for _ in range(rounds):
            setup()
            start = time.perf_counter()
            target()
            end = time.perf_counter()
            self.stats.stats.data.append(end - start)
            teardown()


def attempt_rounds(
    benchmark: Pedantic,
    sides: list[Side],
    rounds: int,
    look: Callable[[], Reading],
    *,
    again: bool,
    turns: Turns = ALONE,
) -> Condition:
    """Take the rounds, and ``again`` where they were disturbed; what is to be known of those that are kept.

    A second attempt replaces the first only where nothing disturbed it, in pytest-benchmark's table and JSON, too.
    There is none where partners would have to wait for it.

    Raises:
        MeasurementError: where wall clock and CUDA events disagree, or the device is lost.
    """
    variant, plain = sides[0], sides[1] if len(sides) > 1 else None
    before = look()
    run_rounds(benchmark, variant, plain, rounds, turns)
    first = between(before, look())
    if not (again and first.disturbances and turns is ALONE and variant.timings):
        return first
    kept = [list(side.timings) for side in sides]
    before = look()
    run_rounds(Repetition(), variant, plain, rounds)
    second = between(before, look())
    if not second.disturbances:
        replace_samples(benchmark, [each.wall_seconds for each in variant.timings])
        told = f"the rounds were taken twice, because the first were disturbed: {'; '.join(first.disturbances)}"
        return dataclasses.replace(second, notes=(*second.notes, told))
    for side, timings in zip(sides, kept, strict=True):
        side.timings[:] = timings
    twice = "the rounds were taken twice and disturbed both times"
    return dataclasses.replace(first, notes=(*first.notes, f"{twice}, then: {'; '.join(second.disturbances)}"))
