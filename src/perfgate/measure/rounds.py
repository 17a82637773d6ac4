"""Timed rounds of a variant and its plain twin, interleaved A B B A in one process so that drift cancels."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from perfgate.measure.clock import Clock, Timing, check_agreement, time_round
from perfgate.measure.step import Step
from perfgate.turns import ALONE, Turns


class Pedantic(Protocol):
    """The part of pytest-benchmark's fixture that is used."""

    extra_info: dict[str, Any]
    stats: Any

    def pedantic(self, target: Callable[[], None], **arguments: Any) -> Any:
        """Run ``target`` for a number of rounds."""


@dataclass
class Side:
    """One of the two: its step, and the timings taken so far."""

    step: Step
    clock: Clock
    timings: list[Timing] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Bind the target once: making it costs more than calling it."""
        self.target = self.clock.target(self.step.run)

    def round(self) -> float:
        """Take one round now, outside pytest-benchmark; its wall seconds."""
        with self.step.active():
            timing = time_round(self.clock, self.target)
        self.timings.append(timing)
        return timing.wall_seconds


class Interleaving:
    """The hooks around pytest-benchmark's rounds: plain before even rounds and after odd ones."""

    def __init__(self, variant: Side, plain: Side | None, turns: Turns = ALONE) -> None:
        """``plain`` is ``None`` for a benchmark without a twin."""
        self._variant, self._plain, self._turns = variant, plain, turns
        self._number = 0
        self._active = ExitStack()
        self.event_seconds: list[float | None] = []
        """Event time of each of the variant's rounds."""

    def before(self) -> None:
        """The ``setup`` of a round."""
        self._turns.before_round()
        if self._plain and self._number % 2 == 0:
            self._plain.round()
        self._active.enter_context(self._variant.step.active())

    def after(self) -> None:
        """The ``teardown`` of a round."""
        self._active.close()
        self.event_seconds.append(self._variant.clock.event_seconds())
        if self._plain and self._number % 2 == 1:
            self._plain.round()
        self._number += 1

    def close(self) -> None:
        """Leave the variant's state where a round raised."""
        self._active.close()


def run_rounds(benchmark: Pedantic, variant: Side, plain: Side | None, rounds: int, turns: Turns = ALONE) -> None:
    """Time ``rounds`` rounds of each side; the variant's through pytest-benchmark, whose table and JSON show them."""
    hooks = Interleaving(variant, plain, turns)
    for side in (variant, plain):
        if side:
            side.timings.clear()
    try:
        with _no_collection():
            benchmark.pedantic(variant.target, setup=hooks.before, teardown=hooks.after, rounds=rounds, iterations=1)
    finally:
        hooks.close()
    turns.after_rounds()
    if benchmark.stats is None:  # --benchmark-disable: ran once, measured nothing
        return
    walls = benchmark.stats.stats.data
    events = hooks.event_seconds[: len(walls)]  # --benchmark-cprofile calls the hooks once more
    variant.timings.extend(Timing(wall, event) for wall, event in zip(walls, events, strict=True))
    if plain:
        del plain.timings[len(walls) :]
    for side in (variant, plain):
        for timing in side.timings if side else ():
            check_agreement(timing.wall_seconds, timing.event_seconds)


def replace_samples(benchmark: Pedantic, wall_seconds: Sequence[float]) -> None:
    """Let pytest-benchmark's table and JSON show these times instead of those it took.

    Its list of samples is public; it computes and keeps its statistics when they are first asked for, after all tests.
    """
    benchmark.stats.stats.data[:] = wall_seconds


@contextmanager
def _no_collection() -> Iterator[None]:
    """Collect garbage first and not during the rounds."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
