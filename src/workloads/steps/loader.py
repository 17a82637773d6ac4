"""The loader of a step: a DataLoader over the training samples, and the way of its batches to the device."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.context import BaseContext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from workloads.workload import Parts, Unsuitable, Workload

WORKER_TIMEOUT_SECONDS = 60  # a hung worker raises instead of waiting for ever


class Traced(Dataset[tuple[Any, Tensor, int, int]]):
    """Samples with their index and the process that made them, as evidence of who worked and in which order."""

    def __init__(self, samples: Dataset[Any]) -> None:
        """Wraps any map-style dataset."""
        self.samples = samples

    def __len__(self) -> int:
        """As many as in the wrapped dataset."""
        return len(self.samples)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[Any, Tensor, int, int]:
        """Input, target, index, process id."""
        return (*self.samples[index], index, os.getpid())


class Batch(NamedTuple):
    """A batch that arrived."""

    inputs: Tensor
    """The model's, on the device."""
    targets: Tensor
    """On the device."""
    indices: Tensor
    """Which samples they are; on the host."""


@dataclass
class Seen:
    """What was seen of an epoch's batches on their way."""

    workers: set[int] = field(default_factory=set)
    """Processes that delivered samples."""
    pinned: bool = True
    """Whether all inputs lay in page-locked memory."""
    loaded_dtypes: set[torch.dtype] = field(default_factory=set)
    """Of what the loader gave as inputs."""
    arrived_dtypes: set[torch.dtype] = field(default_factory=set)
    """Of the model's inputs."""
    loaded_bytes: int = 0
    """Of the loader's inputs, all batches together."""
    arrived_bytes: int = 0
    """Of the model's inputs, all batches together."""
    streams: set[int] = field(default_factory=set)
    """CUDA streams that brought the batches; empty on a CPU."""

    def note(self, loaded: Any, processes: Tensor, arrived: Tensor) -> None:
        """One batch."""
        tensors = list(tensors_of(loaded))
        self.workers.update(processes.tolist())
        self.pinned = self.pinned and all(each.is_pinned() for each in tensors)
        self.loaded_dtypes.update(each.dtype for each in tensors)
        self.arrived_dtypes.add(arrived.dtype)
        self.loaded_bytes += sum(each.nbytes for each in tensors)
        self.arrived_bytes += arrived.nbytes
        if arrived.is_cuda:
            self.streams.add(torch.cuda.current_stream(arrived.device).stream_id)


class Waiting:
    """Passes a loader's batches on and adds up how long the host waited for them."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        """``clock`` gives seconds."""
        self._clock = clock
        self.seconds = 0.0
        """For the iterator to be made, for each of its batches, and for its end."""

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches."""
        before = self._clock()
        for batch in batches:
            self.seconds += self._clock() - before
            yield batch
            before = self._clock()
        self.seconds += self._clock() - before


def nothing_to_load(workload: Workload, batches: int) -> str | None:
    """Why a workload's training samples do not fill so many batches."""
    if type(workload).dataset is Workload.dataset:
        return f"{workload.name} has no dataset(), so there is nothing to load"
    there = whole_batches(workload)
    if not there:
        return f"the dataset of {workload.name} has less than one batch of {workload.batch_size} samples"
    return f"an epoch of {workload} has {there} batches, not {batches}" if batches > there else None


def whole_batches(workload: Workload) -> int:
    """Batches that the training samples fill; 0 where the workload gives none."""
    if type(workload).dataset is Workload.dataset:
        return 0
    return len(workload.samples(train=True)) // workload.batch_size  # type: ignore[arg-type]


def samples_of(parts: Parts, *, train: bool) -> Dataset[Any]:
    """What a loader takes its samples from.

    Raises:
        Unsuitable: where the parts have none.
    """
    if parts.dataset is None:
        raise Unsuitable("the parts of this step have no dataset to load from: make them with Workload.parts()")
    return parts.dataset(train=train)


def new_loader(workload: Workload, parts: Parts, *, batches: int) -> DataLoader[Any]:
    """The first ``batches`` of the training samples, in order; workers start with the first epoch."""
    return DataLoader(
        Traced(samples_of(parts, train=True)),
        batch_size=workload.batch_size,
        sampler=range(batches * workload.batch_size),
        **loader_arguments(parts),
    )


def loader_arguments(parts: Parts) -> dict[str, Any]:
    """What the techniques ask of a DataLoader, with workers that start safely and are not waited for without end."""
    arguments = dict(parts.loader_arguments)
    if arguments.get("num_workers"):
        arguments.setdefault("timeout", WORKER_TIMEOUT_SECONDS)
        # fork is the fastest start and safe only before CUDA is initialised in this process
        arguments.setdefault("multiprocessing_context", _fork_context())
    return arguments


def _fork_context() -> BaseContext:
    """Fork; once CUDA is initialised, from a server that has imported what the workers need and no CUDA."""
    if not torch.cuda.is_initialized():
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torchvision", "workloads.steps.loader"])
    return context


def delivered(parts: Parts, batches: Iterable[Any], seen: Seen | None = None) -> Iterator[Batch]:
    """An epoch of a loader of :class:`Traced` samples, as ``parts`` bring its batches to the device."""

    def bring(batch: Any) -> Batch:
        loaded, targets, indices, processes = batch
        arrived = parts.arrive(parts, loaded)
        if seen is not None:
            seen.note(loaded, processes, arrived)
        return Batch(arrived, targets.to(parts.device, non_blocking=parts.non_blocking), indices)

    return parts.delivery(batches, bring)


def displacement(order: list[Tensor]) -> Tensor:
    """How far each sample is from its place: all zero where every sample came once, in the stated order."""
    indices = torch.cat(order)
    return indices - torch.arange(len(indices))


def loader_facts(parts: Parts, loader: DataLoader[Any]) -> dict[str, Any]:
    """What is seen of an epoch, after another: who delivered the samples, and how they came."""
    watched = [Seen(), Seen()]
    for seen in watched:
        for _ in delivered(parts, loader, seen):
            pass
    here = torch.cuda.current_stream(parts.device).stream_id if parts.device.type == "cuda" else None
    return {
        **vars(watched[1]),
        "earlier_workers": watched[0].workers,
        "this_process": os.getpid(),
        "this_stream": here,
        "loader": loader,
    }


def conforming(parts: Parts, inputs: Tensor) -> Tensor:
    """A loaded batch in the dtype and the memory order of the example batch, which techniques may have changed."""
    example = parts.inputs
    last = example.dim() == 4 and example.is_contiguous(memory_format=torch.channels_last)
    order = torch.channels_last if last else torch.contiguous_format
    return inputs.to(dtype=example.dtype, memory_format=order)


def tensors_of(loaded: Any) -> Iterator[Tensor]:
    """The tensors in a batch of any nesting."""
    if isinstance(loaded, Tensor):
        yield loaded
    else:
        for each in loaded:
            yield from tensors_of(each)
