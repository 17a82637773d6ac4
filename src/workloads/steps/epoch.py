"""The epoch step: training from a loader, every batch loaded, copied, and worked through."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from workloads.steps.loader import Batch, Waiting, conforming, delivered, displacement, new_loader, whole_batches
from workloads.steps.loading import LoaderStep
from workloads.steps.step import Figure, Outcome, Step, applied, copied
from workloads.steps.train import TrainStep
from workloads.workload import Optimization, Parts, Unsuitable, Workload

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.utils.data import DataLoader

CHECKED_BATCHES = 2  # the second shows that batches change; each costs a step and a copy of the parameters
ON_CPU = "of the epoch's wall time; a faster step waits for a larger share"
ON_CUDA = "of the host's time until the last step is queued: the GPU waits for data at most so much of the epoch"


class EpochStep(LoaderStep, TrainStep):
    """One epoch: for every batch of the loader forward, loss, backward and update.

    Techniques of loading and of training can be stacked in it; see :meth:`unfit`.
    """

    kind = "epoch"

    def __init__(
        self, workload: Workload, optimizations: tuple[Optimization, ...] = (), *, batches: int | None = None
    ) -> None:
        """``batches`` ends the epoch after so many; ``None``: all.

        Raises:
            Unsuitable: for less than one batch.
        """
        if batches is not None and batches < 1:
            raise Unsuitable(f"an epoch step needs at least 1 batch, got batches={batches}")
        super().__init__(workload, optimizations)
        self._limit = batches
        self._starved: list[float] = []

    def __str__(self) -> str:
        """With the number of batches where it is limited: ``resnet18-cifar-tv-b8/epoch-of-4/plain``."""
        name = super().__str__()
        return name if self._limit is None else name.replace("/epoch/", f"/epoch-of-{self._limit}/")

    @property
    def identity(self) -> dict[str, Any]:
        """Also the number of batches where it is limited."""
        return super().identity if self._limit is None else {**super().identity, "batches": self._limit}

    @property
    def batches(self) -> int:
        """Of one epoch."""
        return whole_batches(self.workload) if self._limit is None else self._limit

    def unfit(self, optimization: Optimization) -> str | None:
        """Takes techniques of epochs, and those of a training step that leave the step as a whole alone.

        What replaces the whole step (a captured graph of it) has taken in its batch, and a loader brings another.
        """
        if "train" in optimization.kinds and type(optimization).wrap is not Optimization.wrap:
            return f"{optimization} replaces the whole training step with its batch, and an epoch brings new batches"
        return None if "train" in optimization.kinds else super().unfit(optimization)

    def new_parts(self, device: torch.device) -> Parts:
        """Seeded parts, whose example batch says in which dtype and memory order batches are wanted.

        Raises:
            Unsuitable: where a technique gave that batch another shape, for a loader's batches have the old one.
        """
        parts = self.plain_parts(device)
        shape = parts.inputs.shape
        for each in self.optimizations:
            applied(each, parts)
            if parts.inputs.shape != shape:
                raise Unsuitable(f"{each} changes the shape of the batch, and an epoch's come as the loader has them")
        return parts

    def release(self) -> None:
        """Forget earlier rounds, too."""
        super().release()
        self._starved = []

    def run(self) -> None:
        """One epoch: the iterator is made, drained and ended here, so that no worker runs on afterwards."""
        parts, waiting = self.parts, Waiting()
        example = parts.inputs, parts.targets
        start = time.perf_counter()
        try:
            for batch in delivered(parts, waiting(self.loader)):
                _take(parts, batch)
                self._last = self.called()
        finally:
            parts.inputs, parts.targets = example
        self._starved.append(waiting.seconds / (time.perf_counter() - start))

    def outcome(self) -> Outcome:
        """The parameters' movement by each of the first batches, and the order of all samples.

        Each moves from the initial state, since rounding grows from step to step.
        """
        return self._epoch_outcome(self.parts, self.loader, self._initial, self)

    def reference_outcome(self, variant: Step) -> Outcome:
        """The same of a fresh plain twin."""
        parts = self.reference_parts(self.parts.device, variant)
        return self._epoch_outcome(
            parts, new_loader(self.workload, parts, batches=self.batches), copied(parts.model), variant
        )

    def _epoch_outcome(
        self, parts: Parts, loader: DataLoader[Any], initial: Mapping[str, Tensor], variant: Step
    ) -> Outcome:
        example = parts.inputs, parts.targets
        found: list[Outcome] = []
        order = []
        for batch in delivered(parts, loader):
            order.append(batch.indices)
            if len(found) < CHECKED_BATCHES:
                _take(parts, batch)
                found.append(self._outcome_of(parts, initial, variant))
        parts.inputs, parts.targets = example
        tensors = {f"{n}.{name}": each for n, one in enumerate(found) for name, each in one.tensors.items()}
        return Outcome(found[0].kind, {**tensors, "displacement": displacement(order)})

    def figures(self) -> Iterable[Figure]:
        """The share of each round in which the host waited for data, without the first call, which starts workers.

        Not judged: it rises when the step becomes faster, too. On CUDA the host runs ahead, see ``ON_CUDA``.
        """
        note = ON_CUDA if self.parts.device.type == "cuda" else ON_CPU
        yield Figure(name="starvation_share", unit="1", values=tuple(self._starved[1:]), note=note)


def _take(parts: Parts, batch: Batch) -> None:
    parts.inputs, parts.targets = conforming(parts, batch.inputs), batch.targets
