"""The data-loading step: one epoch through a DataLoader, each batch copied to the device."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from workloads.steps.loader import (
    WORKER_TIMEOUT_SECONDS,
    Traced,
    delivered,
    displacement,
    loader_facts,
    new_loader,
    nothing_to_load,
    whole_batches,
)
from workloads.steps.step import Outcome, Step
from workloads.workload import Optimization, Parts, Workload

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

__all__ = ["WORKER_TIMEOUT_SECONDS", "LoaderStep", "LoadingStep", "Traced"]


class LoaderStep(Step):
    """What every step with a loader has."""

    def __init__(self, workload: Workload, optimizations: tuple[Optimization, ...] = ()) -> None:
        """Nothing is started before :meth:`build`."""
        super().__init__(workload, optimizations)
        self._loader: DataLoader[Any] | None = None

    @property
    def batches(self) -> int:
        """Of one epoch."""
        return whole_batches(self.workload)

    @property
    def samples(self) -> int:
        """All samples of the epoch that fill whole batches."""
        return self.batches * self.workload.batch_size

    @property
    def repeatable(self) -> bool:
        """With worker processes, how many batches wait in memory is a matter of timing."""
        return not any("workers" in each.name for each in self.optimizations)

    @property
    def loader(self) -> DataLoader[Any]:
        """The live loader.

        Raises:
            RuntimeError: before :meth:`build`.
        """
        if self._loader is None:
            raise RuntimeError(f"{self} is not built: call build(device) first")
        return self._loader

    def unsuitable(self, device: torch.device) -> str | None:
        """Also where the workload gives a batch and no samples, or too few of them."""
        return nothing_to_load(self.workload, self.batches) or super().unsuitable(device)

    def build(self, device: torch.device) -> None:
        """A loader over the workload's training samples; workers start with the first epoch."""
        super().build(device)
        self._loader = new_loader(self.workload, self.parts, batches=self.batches)

    def release(self) -> None:
        """Drop the loader, too, which ends its workers."""
        super().release()
        self._loader = None

    def facts(self) -> dict[str, Any]:
        """Who delivered the samples of an epoch, in two epochs one after the other, and how they came."""
        return loader_facts(self.parts, self.loader)


class LoadingStep(LoaderStep):
    """One epoch: every sample decoded, batched, and copied to the device, in the stated order."""

    kind = "load"

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
            dataset=self.workload.samples,
        )

    def run(self) -> None:
        """One epoch: the iterator is made, drained and ended here, so that no worker runs on afterwards."""
        for batch in delivered(self.parts, self.loader):
            self._last = batch.inputs

    def outcome(self) -> Outcome:
        """The sample indices in order and what each batch held: the same samples, once each."""
        return self._outcome_of(self)

    def reference_outcome(self, variant: Step) -> Outcome:
        """The same of this step itself: loading techniques change nothing in the samples but, at most, last bits."""
        return self._outcome_of(variant)

    def _outcome_of(self, variant: Step) -> Outcome:
        """Checksums of whole batches, or a projection of each sample where the variant keeps not every bit."""
        exact = all(each.keeps_samples for each in variant.optimizations)
        order: list[Tensor] = []
        contents: list[Tensor] = []
        for batch in delivered(self.parts, self.loader):
            order.append(batch.indices)
            contents.append(_checksum(batch.inputs) if exact else _projection(batch.inputs))
        if exact:
            return Outcome("identical", {"order": torch.cat(order), "checksums": torch.stack(contents)})
        return Outcome("outputs", {"displacement": displacement(order), "projections": torch.cat(contents)})

    def resident_tensors(self) -> Iterable[Tensor]:
        """None: an epoch leaves nothing behind."""
        return ()


def _checksum(inputs: Tensor) -> Tensor:
    return torch.tensor(zlib.crc32(inputs.cpu().contiguous().numpy().tobytes()))


def _projection(inputs: Tensor) -> Tensor:
    """Each sample projected on one random direction: as far off as the sample is, and a single number."""
    samples = inputs.flatten(1).double()
    direction = torch.randn(samples.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return samples @ direction.to(samples.device)
