"""Habits that cost: each is written down so that the good step can be measured against it."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from workloads.workload import Call, NotInEffect, Observation, Optimization, Parts, Workload

TIPS = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"


@dataclass(frozen=True)
class ReadLoss(Optimization):
    """``loss.item()`` in every step: the host waits for the device before it can queue the next step."""

    name: ClassVar[str] = "item"
    order: ClassVar[int] = 95
    expected: ClassVar = "slower"
    kinds: ClassVar[frozenset[str]] = frozenset({"train"})
    source: ClassVar[str] = TIPS

    def wrap(self, parts: Parts, call: Call, optimizer: torch.optim.Optimizer | None) -> Call:
        """Read the loss after the step."""

        def reading() -> Tensor:
            loss = call()
            parts.notes[self.name] = loss.item()
            return loss

        return reading

    def proof(self, seen: Observation) -> str:
        """The loss is a Python number, and an operator that reads one was dispatched where that can be seen."""
        read = not seen.operators or "aten::_local_scalar_dense" in seen.operators
        if not read or not isinstance(seen.parts.notes.get(self.name), float):
            raise NotInEffect("the loss was not read")
        return "the loss was read as a number"


@dataclass(frozen=True)
class PerSample(Optimization):
    """One forward pass and one loss per sample instead of one for the batch."""

    name: ClassVar[str] = "per-sample"
    order: ClassVar[int] = 70
    expected: ClassVar = "slower"
    slot: ClassVar[str] = "splitting of the batch"
    splits_batch: ClassVar[bool] = True
    kinds: ClassVar[frozenset[str]] = frozenset({"train"})
    source: ClassVar[str] = TIPS

    def apply(self, parts: Parts) -> None:
        """Go through the batch sample by sample; the mean of the losses is that of the batch."""
        parts.gradients = self._one_by_one

    @staticmethod
    def _one_by_one(parts: Parts) -> tuple[Tensor, Tensor]:
        outputs = [parts.forward(each) for each in parts.inputs.split(1)]
        losses = [parts.loss(output, target) for output, target in zip(outputs, parts.targets.split(1), strict=True)]
        loss = torch.stack(losses).mean()
        parts.backward(loss)
        return loss.detach(), outputs[-1]

    def proof(self, seen: Observation) -> str:
        """The last outputs are of one sample."""
        size = 0 if seen.outputs is None else len(seen.outputs)
        if size != 1:
            raise NotInEffect(f"the last outputs are of {size} samples")
        return "one forward pass per sample"


@dataclass(frozen=True)
class EmptyCache(Optimization):
    """``torch.cuda.empty_cache()`` in every step: the allocator asks the driver for its memory again and again."""

    name: ClassVar[str] = "empty-cache"
    order: ClassVar[int] = 95
    expected: ClassVar = "slower"
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Only CUDA's allocator has such a cache."""
        return None if device.type == "cuda" else "empty_cache() needs a CUDA GPU: there is no such cache on a CPU"

    def wrap(self, parts: Parts, call: Call, optimizer: torch.optim.Optimizer | None) -> Call:
        """Empty it after the step."""

        def emptying() -> Tensor:
            result = call()
            torch.cuda.empty_cache()
            parts.notes[self.name] = True
            return result

        return emptying

    def proof(self, seen: Observation) -> str:
        """It was called."""
        if not seen.parts.notes.get(self.name):
            raise NotInEffect("empty_cache() was not called")
        return "empty_cache() called in every step"


@dataclass(frozen=True)
class CopyEachStep(Optimization):
    """The batch is made on the host and copied in every step, instead of being made on the device."""

    name: ClassVar[str] = "copy"
    order: ClassVar[int] = 96
    expected: ClassVar = "slower"
    source: ClassVar[str] = TIPS

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """On a CPU there is nowhere to copy to."""
        return None if device.type == "cuda" else "copying to the device needs a CUDA GPU"

    def clash(self, other: Optimization) -> str | None:
        """A captured graph reads the batch where it lay."""
        if other.name == "cuda-graph":
            return "a CUDA graph reads the batch from where it lay when it was captured: leave out copy"
        return super().clash(other)

    def wrap(self, parts: Parts, call: Call, optimizer: torch.optim.Optimizer | None) -> Call:
        """Copy inputs and targets before the step."""
        inputs, targets = parts.inputs.cpu(), parts.targets.cpu()

        def copying() -> Tensor:
            parts.inputs, parts.targets = inputs.to(parts.device), targets.to(parts.device)
            parts.notes[self.name] = True
            return call()

        return copying

    def proof(self, seen: Observation) -> str:
        """Two copies to the device where they are counted."""
        copies = seen.counts.get("copies_to_device", 2)
        if copies < 2 or not seen.parts.notes.get(self.name):
            raise NotInEffect(f"{copies} copies to the device in a step")
        return "inputs and targets copied in every step"
