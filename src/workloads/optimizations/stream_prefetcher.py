"""Prefetching on a CUDA stream of its own: the next batch travels while the GPU works on the current one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from workloads.optimizations.dataloading import NonBlocking, PinMemory, Workers
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable, Workload


@dataclass(frozen=True)
class Prefetcher(Optimization):
    """Copies on a side stream, one batch ahead. Needs :class:`PinMemory`, and a step to copy beside."""

    name: ClassVar[str] = "stream-prefetcher"
    order: ClassVar[int] = 15
    source: ClassVar[str] = "data_prefetcher of NVIDIA's ImageNet example: https://github.com/NVIDIA/apex"
    kinds: ClassVar[frozenset[str]] = frozenset({"epoch"})  # a mere loading step has nothing to copy beside

    def baseline(self) -> tuple[Optimization, ...]:
        """Pinned batches of two workers, which the host does not wait for either."""
        return (Workers(2), PinMemory(), NonBlocking())

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Streams are CUDA's."""
        return None if device.type == "cuda" else "copies on a stream of their own need a CUDA GPU to copy to"

    def apply(self, parts: Parts) -> None:
        """Bring batches on a side stream, without waiting."""
        if not parts.loader_arguments.get("pin_memory"):
            raise Unsuitable("stream-prefetcher copies from pinned batches only: add pin-memory to the stack")
        parts.non_blocking = True
        stream = torch.cuda.Stream(parts.device)  # one for all epochs: the allocator keeps memory per stream
        parts.delivery = lambda batches, bring: _ahead(stream, parts.device, iter(batches), bring)

    def proof(self, seen: Observation) -> str:
        """Every batch was brought on another stream than the step's."""
        streams, here = seen.facts.get("streams", set()), seen.facts.get("this_stream")
        if not streams or here in streams:
            raise NotInEffect(f"batches were brought on streams {sorted(streams)}, the step runs on {here}")
        if not seen.facts.get("pinned"):
            raise NotInEffect("batches are not pinned, so every copy waits")
        return "pinned batches copied on a stream of their own"


def _ahead(
    stream: torch.cuda.Stream, device: torch.device, batches: Iterator[Any], bring: Callable[[Any], Iterable[Any]]
) -> Iterator[Any]:
    """Each batch, after the copy of the one after it was queued."""
    following = _start(stream, batches, bring)
    while following is not None:
        batch = following
        current = torch.cuda.current_stream(device)
        current.wait_stream(stream)  # before the next copy is queued, or the step would wait for that one, too
        for each in batch:
            if each.device.type == device.type:
                each.record_stream(current)  # or its memory could be the next copy's while the step still reads it
        following = _start(stream, batches, bring)
        yield batch


def _start(stream: torch.cuda.Stream, batches: Iterator[Any], bring: Callable[[Any], Iterable[Any]]) -> Any:
    """The next batch, on its way; ``None`` where there is none."""
    for batch in batches:
        with torch.cuda.stream(stream):
            return bring(batch)
    return None
