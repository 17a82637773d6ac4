"""Clocks: synchronised wall time everywhere, CUDA-event time beside it on a GPU.

A step on a GPU returns before its work is done. Each timed round therefore ends by waiting for the whole device, side
streams included; nothing waits inside the step, and every round starts on an idle device.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from perfgate.errors import MeasurementError

if TYPE_CHECKING:
    import torch

DISAGREEMENT = (
    0.02,
    50e-6,
)  # events may exceed wall time by a share and by seconds of event resolution and call overhead


@dataclass(frozen=True)
class Timing:
    """One round."""

    wall_seconds: float
    event_seconds: float | None
    """Time between CUDA events; ``None`` on a CPU."""


class Clock(Protocol):
    """Times rounds of a function."""

    def target(self, run: Callable[[], None]) -> Callable[[], None]:
        """``run`` followed by what it takes to be done, for somebody else's wall clock."""

    def event_seconds(self) -> float | None:
        """Event time of the last call of a target; ``None`` without a GPU."""


class WallClock:
    """For devices whose work is done when the call returns: nothing is added to the step."""

    def target(self, run: Callable[[], None]) -> Callable[[], None]:
        """``run`` itself."""
        return run

    def event_seconds(self) -> float | None:
        """None: there are no events."""
        return None


class CudaClock:
    """Records an event before and after the step, then waits for the device."""

    def __init__(self, device: torch.device) -> None:
        """Events are made once and used again in every round."""
        import torch

        self._stream = torch.cuda.current_stream(device)
        self._wait = partial(torch.cuda.synchronize, device)
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)

    def target(self, run: Callable[[], None]) -> Callable[[], None]:
        """``run`` between two events, then the wait."""

        def timed() -> None:
            self._start.record(self._stream)
            run()
            self._end.record(self._stream)
            self._wait()

        return timed

    def event_seconds(self) -> float | None:
        """Seconds between the two events of the last round."""
        return float(self._start.elapsed_time(self._end)) / 1e3  # elapsed_time is in milliseconds


def clock_for(device: torch.device) -> Clock:
    """The clock of a device."""
    return CudaClock(device) if device.type == "cuda" else WallClock()


def time_round(clock: Clock, target: Callable[[], None]) -> Timing:
    """Run ``target`` (from ``clock.target``) once."""
    start = time.perf_counter()
    target()
    end = time.perf_counter()
    return Timing(end - start, clock.event_seconds())


def check_agreement(wall_seconds: float, event_seconds: float | None) -> None:
    """A kernel cannot take longer than the round that waited for it.

    Raises:
        MeasurementError: where it did, so that one of the two clocks did not see the step.
    """
    share, seconds = DISAGREEMENT
    if event_seconds is not None and event_seconds > wall_seconds * (1 + share) + seconds:
        raise MeasurementError(
            f"CUDA events say {event_seconds:.6f} s, the wall clock {wall_seconds:.6f} s: one of them did not see the "
            "step; was the device reset, or the clock changed, in between?"
        )
