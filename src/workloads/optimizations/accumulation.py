"""Gradient accumulation: a large batch in several small ones, for less memory."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable, Workload, gradients_of


@dataclass(frozen=True)
class GradientAccumulation(Optimization):
    """The batch in ``steps`` equal parts, whose gradients add up before the one update."""

    name: ClassVar[str] = "accumulate"
    order: ClassVar[int] = 70
    expected: ClassVar = "any"  # less memory; the time per sample is about equal where small batches are efficient
    slot: ClassVar[str] = "splitting of the batch"
    splits_batch: ClassVar[bool] = True
    kinds: ClassVar[frozenset[str]] = frozenset({"train"})
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation"
    steps: int = 4

    def __post_init__(self) -> None:
        """Refuse fewer than two steps: one is the plain step."""
        if self.steps < 2:
            raise Unsuitable(f"accumulate: steps must be at least 2, got {self.steps}; the plain step has one")

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Parts of unequal size would weigh their samples unequally."""
        if workload.batch_size % self.steps == 0:
            return None
        return f"a batch of {workload.batch_size} is not divisible into {self.steps} equal parts"

    def apply(self, parts: Parts) -> None:
        """Go through the batch part by part."""
        parts.gradients = self._accumulate

    def _accumulate(self, parts: Parts) -> tuple[Tensor, Tensor]:
        """The loss of the whole batch and the outputs of its last part."""
        pieces = zip(parts.inputs.chunk(self.steps), parts.targets.chunk(self.steps), strict=True)
        losses = []
        for inputs, targets in pieces:
            loss, outputs = gradients_of(parts, inputs, targets, share=1 / self.steps)
            losses.append(loss)
        return torch.stack(losses).sum(), outputs

    def proof(self, seen: Observation) -> str:
        """The last outputs are of one part."""
        size = 0 if seen.outputs is None else len(seen.outputs)
        if size * self.steps != len(seen.parts.inputs):
            raise NotInEffect(f"the last outputs are of {size} samples")
        return f"{self.steps} parts of {size} samples"
