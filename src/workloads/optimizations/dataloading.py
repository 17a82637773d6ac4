"""The DataLoader's options: worker processes, pinned memory, living workers, prefetching, copies without waiting."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from workloads.cores import usable_cores
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable, Workload

SOURCE = "https://docs.pytorch.org/docs/stable/data.html"
KINDS = frozenset({"load", "epoch"})  # steps that have a loader


@dataclass(frozen=True)
class Workers(Optimization):
    """``num_workers``: decode in that many processes. Throughput has a maximum; it is not monotone."""

    name: ClassVar[str] = "workers"
    order: ClassVar[int] = 10
    source: ClassVar[str] = SOURCE
    kinds: ClassVar[frozenset[str]] = KINDS
    count: int = 2

    def __post_init__(self) -> None:
        """Refuse less than one worker."""
        if self.count < 1:
            raise Unsuitable(f"workers: count must be at least 1, got {self.count}; the plain loader has none")

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """More workers than cores only take turns."""
        cores = usable_cores()
        if self.count <= cores:
            return None
        return f"{self.count} loader workers need {self.count} usable cores, this process has {cores}"

    def apply(self, parts: Parts) -> None:
        """Set ``num_workers``."""
        parts.loader_arguments["num_workers"] = self.count

    def proof(self, seen: Observation) -> str:
        """So many other processes delivered samples."""
        workers = seen.facts.get("workers", set()) - {seen.facts.get("this_process")}
        if len(workers) != self.count:
            raise NotInEffect(f"{len(workers)} other processes delivered samples, expected {self.count}")
        return f"{len(workers)} processes delivered samples"


@dataclass(frozen=True)
class PinMemory(Optimization):
    """``pin_memory``: page-locked batches, which a GPU can fetch by itself."""

    name: ClassVar[str] = "pin-memory"
    order: ClassVar[int] = 11
    source: ClassVar[str] = SOURCE
    kinds: ClassVar[frozenset[str]] = KINDS

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Nothing fetches from pinned memory without a GPU."""
        return None if device.type == "cuda" else "pinned memory needs a CUDA GPU to copy to"

    def apply(self, parts: Parts) -> None:
        """Set ``pin_memory``."""
        parts.loader_arguments["pin_memory"] = True

    def proof(self, seen: Observation) -> str:
        """Every batch of an epoch was pinned."""
        if not seen.facts.get("pinned"):
            raise NotInEffect("batches are not pinned")
        return "all batches pinned"


@dataclass(frozen=True)
class PersistentWorkers(Optimization):
    """``persistent_workers``: the processes live on from epoch to epoch. Needs :class:`Workers`."""

    name: ClassVar[str] = "persistent-workers"
    order: ClassVar[int] = 12
    source: ClassVar[str] = SOURCE
    kinds: ClassVar[frozenset[str]] = KINDS

    def baseline(self) -> tuple[Optimization, ...]:
        """Two workers that are started for each epoch."""
        return (Workers(2),)

    def apply(self, parts: Parts) -> None:
        """Set ``persistent_workers``."""
        _need_workers(self, parts)
        parts.loader_arguments["persistent_workers"] = True

    def proof(self, seen: Observation) -> str:
        """Two epochs were delivered by the same processes."""
        if not seen.facts.get("workers") or seen.facts["workers"] != seen.facts.get("earlier_workers"):
            raise NotInEffect("two epochs were delivered by different processes")
        return "two epochs delivered by the same processes"


@dataclass(frozen=True)
class Prefetch(Optimization):
    """``prefetch_factor``: batches that each worker prepares ahead; 2 is the default. Needs :class:`Workers`."""

    name: ClassVar[str] = "prefetch"
    order: ClassVar[int] = 13
    expected: ClassVar = "any"  # helps only where batches take unequal time
    source: ClassVar[str] = SOURCE
    kinds: ClassVar[frozenset[str]] = KINDS
    factor: int = 4

    def __post_init__(self) -> None:
        """Refuse less than one batch."""
        if self.factor < 1:
            raise Unsuitable(f"prefetch: factor must be at least 1, got {self.factor}")

    def baseline(self) -> tuple[Optimization, ...]:
        """Two workers with the default of two batches each."""
        return (Workers(2),)

    def apply(self, parts: Parts) -> None:
        """Set ``prefetch_factor``."""
        _need_workers(self, parts)
        parts.loader_arguments["prefetch_factor"] = self.factor

    def proof(self, seen: Observation) -> str:
        """The loader that ran reads it back."""
        found = getattr(seen.facts.get("loader"), "prefetch_factor", None)
        if found != self.factor:
            raise NotInEffect(f"the loader's prefetch_factor is {found}")
        return f"prefetch_factor read back as {found}"


@dataclass(frozen=True)
class NonBlocking(Optimization):
    """``non_blocking`` copies: the host goes on while a pinned batch travels. Needs :class:`PinMemory`."""

    name: ClassVar[str] = "non-blocking"
    order: ClassVar[int] = 14
    source: ClassVar[str] = SOURCE
    kinds: ClassVar[frozenset[str]] = KINDS

    def baseline(self) -> tuple[Optimization, ...]:
        """Pinned batches that the host waits for."""
        return (PinMemory(),)

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """A copy within host memory always blocks."""
        return None if device.type == "cuda" else "non-blocking copies need a CUDA GPU to copy to"

    def apply(self, parts: Parts) -> None:
        """Copy with ``non_blocking=True``."""
        if not parts.loader_arguments.get("pin_memory"):
            raise Unsuitable("non-blocking copies need pinned batches: add pin-memory to the stack")
        parts.non_blocking = True

    def proof(self, seen: Observation) -> str:
        """The batches were pinned, without which the flag does nothing."""
        if not (seen.parts.non_blocking and seen.facts.get("pinned")):
            raise NotInEffect("batches are not pinned, so every copy waits")
        return "pinned batches copied without waiting"


def _need_workers(optimization: Optimization, parts: Parts) -> None:
    if not parts.loader_arguments.get("num_workers"):
        raise Unsuitable(f"{optimization.name} needs worker processes: add workers-2 to the stack")
