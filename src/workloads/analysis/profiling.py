"""A step under torch's profiler: the peak of a CPU's memory, and what profiling costs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerActivity, profile, record_function

from workloads.timing import seconds_of

if TYPE_CHECKING:
    import torch

MARK = "analysed-step"
ERROR_STREAM = 2  # POSIX's number of the standard error
CPU = 0  # c10::DeviceType of a memory event in the exported trace


@dataclass(frozen=True, kw_only=True)
class Profiled:
    """What the profiler saw, and how long the runs took under it."""

    seconds: tuple[float, ...]
    """Of each run but the first."""
    transient_bytes: int
    """Host memory: the highest point of the last run above its start."""


def profile_of(run: Callable[[], None], device: torch.device, *, rounds: int) -> Profiled:
    """Profile ``rounds`` runs with their allocations, after one that makes the allocator's blocks known."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]

    def marked() -> None:
        with record_function(MARK):
            run()

    with _chatter_aside(), profile(activities=activities, profile_memory=True) as profiler:
        run()
        seconds = tuple(seconds_of(marked, device) for _ in range(rounds))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(file))
        events = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
    return Profiled(seconds=seconds, transient_bytes=highest_level(events))


@contextmanager
def _chatter_aside() -> Iterator[None]:
    """Drop what the profiler's libraries write to the standard error: on a CPU, that they found no GPU.

    Their log level is read when torch is loaded, which is too late for a variable that is set here.
    """
    sys.stderr.flush()
    kept = os.dup(ERROR_STREAM)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), ERROR_STREAM)
    try:
        yield
    finally:
        os.dup2(kept, ERROR_STREAM)
        os.close(kept)


def highest_level(events: Iterable[Mapping[str, Any]]) -> int:
    """The highest sum of host allocations and frees inside the last mark, in bytes above its start.

    Raises:
        LookupError: where the trace holds no mark.
    """
    events = sorted((each for each in events if "ts" in each), key=lambda each: float(each["ts"]))
    marks = [each for each in events if each.get("name") == MARK and "dur" in each]
    if not marks:
        raise LookupError(f"the trace holds no event named {MARK!r}")
    start = float(marks[-1]["ts"])
    end = start + float(marks[-1]["dur"])
    level = highest = 0
    for each in events:
        inside = start <= float(each["ts"]) <= end
        if inside and each.get("name") == "[memory]" and int(each["args"]["Device Type"]) == CPU:
            level += int(each["args"]["Bytes"])
            highest = max(highest, level)
    return highest
