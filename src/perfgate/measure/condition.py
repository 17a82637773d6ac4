"""The machine's condition around timed rounds: what makes them worthless, what disturbed them, what is worth a note.

Flags say that times must not be judged: the verdicts go by them, and counts are judged all the same. Notes inform.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from perfgate.measure.nvml import UNKNOWN

if TYPE_CHECKING:
    from perfgate.measure.nvml import Gpu

HARMLESS = {UNKNOWN, "none", "power cap"}  # of throttling: a power cap is normal under load
CHECKED = {
    "throttling": "throttling",
    "other_processes": "other processes",
    "sharing": "sharing",
    "memory_errors": "memory errors",
    "temperature": "temperature",
    "gpu_clock": "clock",
}
"""Readings that a measurement is checked by, and how they are called."""
NO_NVML = "NVML was not asked"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read at one moment; empty on a CPU."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """From :meth:`~perfgate.measure.nvml.Gpu.readings`."""
    held_down_nanoseconds: Mapping[str, int] = field(default_factory=dict)
    """Counters of how long clocks have been held down, by reason; empty where there are none."""
    problem: str = ""
    """Why NVML tells nothing."""


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What two readings, before and after the rounds, say about them."""

    unfit: tuple[str, ...] = ()
    """Why no time on this device can be trusted: trying again does not help."""
    disturbances: tuple[str, ...] = ()
    """What disturbed these rounds and may be over next time."""
    notes: tuple[str, ...] = ()
    """What else to know."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Why the times must not be judged, as sentences; empty where they may."""
        return (*self.unfit, *self.disturbances)


def read(gpu: Gpu | None, *, on_gpu: bool, partners: bool = False) -> Reading:
    """Read what there is to read; ``on_gpu`` whether a GPU is measured, ``partners`` whether others take turns on it.

    Raises:
        DeviceLost: where the GPU is gone.
    """
    if gpu is None:
        return Reading(problem=NO_NVML if on_gpu else "")
    return Reading(
        texts=gpu.readings(partners=partners),
        held_down_nanoseconds=gpu.held_down_nanoseconds(),
        problem=gpu.problem,
    )


def between(before: Reading, after: Reading) -> Condition:
    """The condition of what was measured between two readings."""
    return Condition(
        unfit=tuple(dict.fromkeys((*_unfit(before.texts), *_unfit(after.texts)))),
        disturbances=(
            *_disturbances(before.texts, "before"),
            *_disturbances(after.texts, "after"),
            *_grown(before, after, "thermal slowdown", "GPU clocks held down during the rounds: thermal slowdown for"),
        ),
        notes=tuple(_notes(before, after)),
    )


def _unfit(texts: Mapping[str, str]) -> list[str]:
    found = []
    errors, sharing = texts.get("memory_errors", UNKNOWN), texts.get("sharing", UNKNOWN)
    if errors not in {UNKNOWN, "none"}:
        found.append(
            f"unfit: errors in the GPU's memory ({errors}): reset the GPU; see nvidia-smi -q -d ECC,ROW_REMAPPER"
        )
    if sharing not in {UNKNOWN, "none"}:
        found.append(f"unfit: the GPU is shared ({sharing}), so that others slow it down unseen")
    return found


def _disturbances(texts: Mapping[str, str], when: str) -> list[str]:
    found = []
    throttling, others = texts.get("throttling", UNKNOWN), texts.get("other_processes", UNKNOWN)
    if throttling not in HARMLESS:
        found.append(f"GPU clocks held down {when} the rounds: {throttling}")
    if others not in {UNKNOWN, "0"}:
        found.append(f"{others} other process{'' if others == '1' else 'es'} on the GPU {when} the rounds")
    return found


def _grown(before: Reading, after: Reading, reason: str, text: str) -> list[str]:
    """A sentence where a counter grew between the readings."""
    counters = before.held_down_nanoseconds.get(reason), after.held_down_nanoseconds.get(reason)
    if counters[0] is None or counters[1] is None or counters[1] <= counters[0]:
        return []
    return [f"{text} {(counters[1] - counters[0]) / 1e6:.3g} ms"]


def _notes(before: Reading, after: Reading) -> list[str]:
    if before.problem:
        return [f"partial: clock, temperature and other-process checks are off ({before.problem})"]
    notes = []
    unknown = [name for key, name in CHECKED.items() if key in before.texts and before.texts[key] == UNKNOWN]
    if unknown:
        notes.append(f"partial: NVML does not tell {', '.join(unknown)}")
    grown = _grown(before, after, "power cap", "the power cap held clocks down for")
    if not grown and after.texts.get("throttling") == "power cap":
        grown = ["the power cap held clocks down"]
    return [*notes, *(f"{each}, which is normal under load" for each in grown)]
