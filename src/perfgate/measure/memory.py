"""Peak memory of a step: the tensors that stay, plus the highest point of what one run allocates above its start.

So defined, the twin that is alive in the same process does not count, and neither does the process's history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perfgate.measure.profiled import Event, transient_bytes

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class PeakMemory:
    """Bytes of one step."""

    peak_bytes: int
    """Resident tensors plus the transient peak."""
    allocations: int
    """Allocations in one run."""
    reserved_bytes: int | None
    """What the CUDA allocator held from the driver for the whole process; ``None`` on a CPU."""


def resident_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the distinct storages of ``tensors``."""
    storages = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}
    return sum(storages.values())


def host_peak(tensors: Iterable[torch.Tensor], events: list[Event]) -> PeakMemory:
    """Peak on a CPU, from the profile of a run; ``tensors`` as they are after it."""
    transient, allocations = transient_bytes(events)
    return PeakMemory(resident_bytes(tensors) + transient, allocations, None)


def graph_pool_bytes(device: torch.device) -> int:
    """What captured CUDA graphs hold for their replays: memory that no allocation of a run shows."""
    import torch

    return sum(
        int(segment["total_size"])
        for segment in torch.cuda.memory_snapshot()
        if segment["device"] == (device.index or 0) and tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0)
    )


def cuda_peak(
    run: Callable[[], None],
    tensors: Callable[[], Iterable[torch.Tensor]],
    device: torch.device,
    *,
    graphs: bool = False,
) -> PeakMemory:
    """Peak on a GPU, from the caching allocator's own counters, in a run without a profiler.

    ``graphs``: the step may replay captured graphs, whose pools then count as a whole.
    """
    import torch

    resident = resident_bytes(tensors())
    torch.cuda.empty_cache()
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_stats(device)
    run()
    torch.cuda.synchronize(device)
    after = torch.cuda.memory_stats(device)
    transient = after["allocated_bytes.all.peak"] - before["allocated_bytes.all.current"]
    return PeakMemory(
        peak_bytes=resident + transient + (graph_pool_bytes(device) if graphs else 0),
        allocations=after["allocation.all.allocated"] - before["allocation.all.allocated"],
        reserved_bytes=torch.cuda.max_memory_reserved(device),
    )
