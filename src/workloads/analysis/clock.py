"""Seconds of rounds and of the phases of a step, with the device's share of them waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from workloads.timing import seconds_of, synchronize
from workloads.workload import Parts

if TYPE_CHECKING:
    import torch

PHASES = ("forward", "backward", "optimizer")
_PHASE_OF = {
    "forward": "forward",
    "uncompiled": "forward",
    "loss": "forward",
    "backward": "backward",
    "update": "optimizer",
}
"""Which phase of a step each callable of its parts belongs to."""


def rounds_of(work: Callable[[], Any], device: torch.device, rounds: int) -> tuple[float, ...]:
    """Wall seconds of each of ``rounds`` calls, after one that is not counted."""
    work()
    return tuple(seconds_of(work, device) for _ in range(rounds))


def rounds_beside(
    work: Callable[[], Any], roof: Callable[[], Any], device: torch.device, rounds: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Wall seconds of both in turn, so that a machine's drift and its other guests slow both alike.

    ``work`` runs once, not counted, before each of its rounds: ``roof`` left the caches full of its own data.
    """
    roof()
    own, beside = [], []
    for _ in range(rounds):
        beside.append(seconds_of(roof, device))
        work()
        own.append(seconds_of(work, device))
    return tuple(own), tuple(beside)


class Stopwatch:
    """Adds up the seconds of each phase of a step."""

    def __init__(self, device: torch.device) -> None:
        """Starts at zero; waits for ``device`` at each phase's ends."""
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._device = device

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        """Time the block as part of ``phase``."""
        synchronize(self._device)
        start = time.perf_counter()
        yield
        synchronize(self._device)
        self.seconds[phase] += time.perf_counter() - start


@contextmanager
def watched(parts: Parts, around: Callable[[str], Any]) -> Iterator[None]:
    """Let every forward (with its loss), backward and update of ``parts`` happen inside ``around(phase)``.

    A technique that replays a recorded step calls none of them, and its phases cannot be told.
    """
    calls = {name: getattr(parts, name) for name in _PHASE_OF}
    for name, call in calls.items():
        if call is not None:
            setattr(parts, name, _inside(call, around, _PHASE_OF[name]))
    try:
        yield
    finally:
        for name, call in calls.items():
            setattr(parts, name, call)


def _inside(call: Callable[..., Any], around: Callable[[str], Any], phase: str) -> Callable[..., Any]:
    def called(*arguments: Any) -> Any:
        with around(phase):
            return call(*arguments)

    return called
