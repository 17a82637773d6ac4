"""Peak memory of a step: the tensors that stay, plus the highest point of what one run allocates above its start.

So defined, the twin that is alive in the same process does not count, and neither does the process's history. On a GPU
the bytes are those asked for: what the allocator rounds them up to depends on the blocks that happen to be free.
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


def resident_bytes(tensors: Iterable[torch.Tensor], apart_from: Iterable[range] = ()) -> int:
    """Bytes of the distinct storages of ``tensors``, leaving out those whose address lies in ``apart_from``."""
    storages = {each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors}
    elsewhere = list(apart_from)
    return sum(size for address, size in storages.items() if not any(address in each for each in elsewhere))


def host_peak(tensors: Iterable[torch.Tensor], events: list[Event]) -> PeakMemory:
    """Peak on a CPU, from the profile of a run; ``tensors`` as they are after it."""
    transient, allocations = transient_bytes(events)
    return PeakMemory(resident_bytes(tensors) + transient, allocations, None)


def graph_pools(device: torch.device) -> list[range]:
    """Addresses that captured CUDA graphs hold for their replays: memory that no allocation of a run shows."""
    import torch

    return [
        range(segment["address"], segment["address"] + segment["total_size"])
        for segment in torch.cuda.memory_snapshot()
        if segment["device"] == (device.index or 0) and tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0)
    ]


def forget_workspaces(device: torch.device) -> None:
    """Free what cuBLAS keeps for good, lest the next benchmark find it in a graph's pool of this one.

    The first capture of a process allocates it in its own pool, which then outlives the graph. No public call frees it;
    a test fails when the private one goes.
    """
    import torch

    if device.type == "cuda":
        torch._C._cuda_clearCublasWorkspaces()  # noqa: SLF001 - see above


def cuda_peak(
    run: Callable[[], None],
    tensors: Callable[[], Iterable[torch.Tensor]],
    device: torch.device,
    *,
    graphs: bool = False,
) -> PeakMemory:
    """Peak on a GPU, from the caching allocator's own counters, in a run without a profiler.

    ``graphs``: the step may replay captured graphs, whose pools then count as a whole, and nothing in them again.
    """
    import torch

    torch.cuda.empty_cache()
    pools = graph_pools(device) if graphs else []
    resident = resident_bytes(tensors(), apart_from=pools)
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_stats(device)
    run()
    torch.cuda.synchronize(device)
    after = torch.cuda.memory_stats(device)
    # cudaMallocAsync, which PYTORCH_ALLOC_CONF may choose, does not tell what was asked for
    kind = "requested" if before["requested_bytes.all.current"] else "allocated"
    transient = after[f"{kind}_bytes.all.peak"] - before[f"{kind}_bytes.all.current"]
    return PeakMemory(
        peak_bytes=resident + transient + sum(map(len, pools)),
        allocations=after["allocation.all.allocated"] - before["allocation.all.allocated"],
        reserved_bytes=torch.cuda.max_memory_reserved(device),
    )
