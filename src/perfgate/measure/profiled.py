"""One step under torch's profiler: operators, runtime calls, device activity and allocations, as plain events.

The only module that reads the profiler's raw results (``kineto_results``): allocations are in no public view of it
but the exported trace. A test fails when that interface changes.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from perfgate.errors import MeasurementError

if TYPE_CHECKING:
    import torch

MARK = "perfgate-step"
LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch", "cudaLaunchCooperativeKernel")
SYNCHRONISATIONS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize")
UNCOUNTED = ("autograd::", "torch::autograd::", "torch::jit::")  # wrappers around operators, not operators


@dataclass(frozen=True)
class Event:
    """One entry of the profile."""

    name: str
    kind: Literal["host", "device", "memory"]
    start_nanoseconds: int
    end_nanoseconds: int
    allocated_bytes: int = 0
    """For memory: bytes allocated, negative where freed."""
    on_device: bool = False
    """For memory: whether the GPU's allocator says so."""
    call: int = 0
    """What a call of CUDA on the host and its work on the device have in common."""


def profile_step(run: Callable[[], None], device: torch.device) -> list[Event]:
    """Events of two runs, the second between a mark's start and end; in order of time.

    The first run makes the allocator's blocks known, since what was allocated before the profile is freed unseen.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities, profile_memory=True) as profiler:
        run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        with record_function(MARK):
            run()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    raw = profiler.profiler.kineto_results.events()  # type: ignore[union-attr]
    cpu = torch._C._autograd.DeviceType.CPU
    events = [
        Event(
            name=each.name(),
            kind="memory" if each.name() == "[memory]" else "host" if each.device_type() == cpu else "device",
            start_nanoseconds=each.start_ns(),
            end_nanoseconds=each.start_ns() + each.duration_ns(),
            allocated_bytes=each.nbytes() if each.name() == "[memory]" else 0,
            on_device=each.device_type() != cpu,
            call=each.correlation_id(),
        )
        for each in raw
    ]
    if device.type == "cuda":
        check_seen(events)
    return sorted(events, key=lambda each: each.start_nanoseconds)


@functools.cache
def attach(device: torch.device) -> None:
    """Profile nothing, once per process: CUPTI stays attached to it from the first profile on.

    What that costs a launch, the first benchmark shall pay as all others do.
    """
    if device.type == "cuda":
        profile_step(lambda: None, device)


def check_seen(events: Iterable[Event]) -> None:
    """A profile of a GPU holds at least the two waits of :func:`profile_step`.

    Raises:
        MeasurementError: where it does not, so that every count would be zero.
    """
    if not any(each.name.startswith(SYNCHRONISATIONS) for each in events):
        raise MeasurementError(
            "torch's profiler shows no CUDA call of a step on the GPU, so nothing can be counted: another profiler "
            "(nsys, ncu) may be attached to the process, or this user may not profile; run without the one, or allow "
            "the other"
        )


def span(events: Iterable[Event]) -> tuple[int, int]:
    """Start and end of the mark on the host, in nanoseconds.

    Raises:
        LookupError: where the profile holds no mark.
    """
    for each in events:
        if each.name == MARK and each.kind == "host":
            return each.start_nanoseconds, each.end_nanoseconds
    raise LookupError(f"the profile holds no event named {MARK!r}")


def transient_bytes(events: list[Event]) -> tuple[int, int]:
    """Host memory of the marked run: the highest point above its start, and the number of allocations."""
    start, end = span(events)
    level = highest = allocations = 0
    for each in events:
        if each.kind != "memory" or each.on_device or not start <= each.start_nanoseconds <= end:
            continue
        level += each.allocated_bytes
        highest = max(highest, level)
        allocations += each.allocated_bytes > 0
    return highest, allocations


def count_operators(events: list[Event]) -> Counter[str]:
    """Operators of the marked run by name; names of compiled graphs lose their hash."""
    start, end = span(events)
    names = (each.name for each in events if each.kind == "host" and start <= each.start_nanoseconds <= end)
    return Counter(
        "CompiledFxGraph" if "CompiledFxGraph" in name else name
        for name in names
        if "CompiledFxGraph" in name or ("::" in name and not name.startswith(UNCOUNTED))
    )


def count_device_work(events: list[Event]) -> dict[str, int]:
    """Kernel launches, copies by direction and synchronisations that the host asked for in the marked run."""
    start, end = span(events)
    marked = [each for each in events if each.kind == "host" and start <= each.start_nanoseconds <= end]
    calls = {each.call for each in marked if each.name.startswith("cu")}
    device = [each.name for each in events if each.kind == "device" and each.call in calls]
    return {
        "kernel_launches": sum(each.name.startswith(LAUNCHES) for each in marked),
        "graph_launches": sum(each.name.startswith("cudaGraphLaunch") for each in marked),
        "synchronisations": sum(each.name.startswith(SYNCHRONISATIONS) for each in marked),
        "copies_to_device": sum("Memcpy HtoD" in name for name in device),
        "copies_to_host": sum("Memcpy DtoH" in name for name in device),
    }
