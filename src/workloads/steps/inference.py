"""The inference step: one forward pass in evaluation mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workloads.steps.step import Outcome, Step, kept
from workloads.workload import Parts

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class InferenceStep(Step):
    """One forward pass in evaluation mode, without gradients unless a technique asks for them."""

    kind = "inference"

    def build(self, device: torch.device) -> None:
        """Parts in evaluation mode."""
        super().build(device)
        self.take(lambda: self._step(self.parts))

    def run(self) -> None:
        """One forward pass."""
        self._last = self._outputs = self.called()

    @staticmethod
    def _step(parts: Parts) -> Tensor:
        with parts.grad_mode():
            return parts.forward(parts.inputs)

    def outcome(self) -> Outcome:
        """The outputs."""
        return self._outcome_of(self.parts)

    def reference_outcome(self, variant: Step) -> Outcome:
        """The outputs of a fresh plain twin."""
        return self._outcome_of(self.reference_parts(self.parts.device, variant))

    def _outcome_of(self, parts: Parts) -> Outcome:
        with self.active():
            outputs = self.wrapped(parts, lambda: self._step(parts))()
        return Outcome("outputs", {"outputs": kept(outputs.detach())})
