"""The data-loading step: one epoch through a DataLoader, each batch copied to the device."""

from __future__ import annotations

import multiprocessing
import os
import zlib
from collections.abc import Iterable
from multiprocessing.context import BaseContext
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from workloads.steps.step import Outcome, Step
from workloads.workload import Optimization, Parts, Workload

WORKER_TIMEOUT_SECONDS = 60  # a hung worker raises instead of waiting for ever


class Traced(Dataset[tuple[Tensor, Tensor, int, int]]):
    """Samples with their index and the process that made them, as evidence of who worked and in which order."""

    def __init__(self, samples: Dataset[Any]) -> None:
        """Wraps any map-style dataset."""
        self.samples = samples

    def __len__(self) -> int:
        """As many as in the wrapped dataset."""
        return len(self.samples)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, int, int]:
        """Input, target, index, process id."""
        return (*self.samples[index], index, os.getpid())


def _fork_context() -> BaseContext:
    """Fork; once CUDA is initialised, from a server that has imported what the workers need and no CUDA."""
    if not torch.cuda.is_initialized():
        return multiprocessing.get_context("fork")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch", "torchvision", "workloads.steps.loading"])
    return context


class LoadingStep(Step):
    """One epoch: every sample decoded, batched, and copied to the device, in the stated order."""

    kind = "load"

    @property
    def samples(self) -> int:
        """All samples of the epoch that fill whole batches."""
        return self._batches() * self.workload.batch_size

    @property
    def repeatable(self) -> bool:
        """With worker processes, how many batches wait in memory is a matter of timing."""
        return not any("workers" in each.name for each in self.optimizations)

    def _batches(self) -> int:
        return len(self.workload.dataset(train=True)) // self.workload.batch_size  # type: ignore[arg-type]

    def __init__(self, workload: Workload, optimizations: tuple[Optimization, ...] = ()) -> None:
        """Nothing is started before :meth:`build`."""
        super().__init__(workload, optimizations)
        self._loader: DataLoader[Any] | None = None
        self._seen: dict[str, Any] = {}

    def build(self, device: torch.device) -> None:
        """A loader over the workload's training samples; workers start with the first epoch."""
        super().build(device)
        self._loader = self._new_loader(self.parts)

    def plain_parts(self, device: torch.device) -> Parts:
        """Parts with an empty model: loading needs none."""
        nothing = torch.empty(0)
        return Parts(
            model=torch.nn.Identity(),
            inputs=nothing,
            targets=nothing,
            loss=self.workload.loss,
            device=device,
            training=False,
            forward=torch.nn.Identity(),
        )

    def _new_loader(self, parts: Parts) -> DataLoader[Any]:
        arguments = dict(parts.loader_arguments)
        if arguments.get("num_workers"):
            arguments.setdefault("timeout", WORKER_TIMEOUT_SECONDS)
            # fork is the fastest start and safe only before CUDA is initialised in this process
            arguments.setdefault("multiprocessing_context", _fork_context())
        return DataLoader(
            Traced(self.workload.dataset(train=True)),
            batch_size=self.workload.batch_size,
            drop_last=True,
            **arguments,
        )

    def release(self) -> None:
        """Drop the loader, which ends its workers."""
        super().release()
        self._loader = None
        self._seen = {}

    def run(self) -> None:
        """One epoch: the iterator is made, drained and ended here, so that no worker runs on afterwards."""
        self._epoch(keep=False)

    def _epoch(self, *, keep: bool) -> tuple[list[Tensor], list[int]]:
        """Copies every batch to the device; the batches' indices and checksums where ``keep``."""
        parts, loader = self.parts, self._loader
        if loader is None:
            raise RuntimeError(f"{self} is not built: call build(device) first")
        order: list[Tensor] = []
        checksums: list[int] = []
        workers: set[int] = set()
        pinned = True
        for inputs, targets, indices, processes in loader:
            on_device = inputs.to(parts.device, non_blocking=parts.non_blocking)
            targets.to(parts.device, non_blocking=parts.non_blocking)
            self._last = on_device
            if keep:
                order.append(indices)
                checksums.append(zlib.crc32(on_device.cpu().contiguous().numpy().tobytes()))
                workers.update(processes.tolist())
                pinned = pinned and inputs.is_pinned()
        if keep:
            self._seen = {"workers": workers, "pinned": pinned, "loader": loader}
        return order, checksums

    def outcome(self) -> Outcome:
        """The sample indices in order and a checksum of each batch: the same samples, once each."""
        order, checksums = self._epoch(keep=True)
        return Outcome("identical", {"order": torch.cat(order), "checksums": torch.tensor(checksums)})

    def reference_outcome(self, variant: Step) -> Outcome:
        """The same of this step itself: loading options change nothing in the samples."""
        return self.outcome()

    def resident_tensors(self) -> Iterable[Tensor]:
        """None: an epoch leaves nothing behind."""
        return ()

    def facts(self) -> dict[str, Any]:
        """Who delivered the samples of an epoch, in two epochs one after the other."""
        self._epoch(keep=True)
        first = self._seen["workers"]
        self._epoch(keep=True)
        return {**self._seen, "workers": self._seen["workers"], "earlier_workers": first, "this_process": os.getpid()}
