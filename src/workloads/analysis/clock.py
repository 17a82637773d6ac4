"""Seconds of a piece of work, with the device's share of it waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from workloads.workload import Parts

PHASES = ("forward", "backward", "optimizer")
_PHASE_OF = {
    "forward": "forward",
    "uncompiled": "forward",
    "loss": "forward",
    "backward": "backward",
    "update": "optimizer",
}
"""Which phase of a step each callable of its parts belongs to."""


def synchronize(device: torch.device) -> None:
    """Wait until ``device`` has done what it was given; a CPU has already."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds_of(work: Callable[[], Any], device: torch.device) -> float:
    """Wall seconds of one call, from an idle device to an idle device."""
    synchronize(device)
    start = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - start


def rounds_of(work: Callable[[], Any], device: torch.device, rounds: int) -> tuple[float, ...]:
    """Wall seconds of each of ``rounds`` calls, after one that is not counted."""
    work()
    return tuple(seconds_of(work, device) for _ in range(rounds))


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
