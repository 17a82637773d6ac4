"""Grad mode of inference: whether autograd records the forward pass, skips it, or is told that it never will."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable

MODES = {"grad": torch.enable_grad, "no-grad": torch.no_grad, "inference": torch.inference_mode}


@dataclass(frozen=True)
class GradMode(Optimization):
    """``enable_grad``, ``no_grad`` (what a plain inference step uses) or ``inference_mode`` around the forward pass."""

    name: ClassVar[str] = "grad-mode"
    order: ClassVar[int] = 30
    kinds: ClassVar[frozenset[str]] = frozenset({"inference"})
    source: ClassVar[str] = (
        "https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation"
    )
    mode: Literal["grad", "no-grad", "inference"] = "inference"

    def __post_init__(self) -> None:
        """Refuse other modes."""
        if self.mode not in MODES:
            raise Unsuitable(f"grad-mode: mode must be one of {', '.join(MODES)}, got {self.mode!r}")

    def baseline(self) -> tuple[Optimization, ...]:
        """inference_mode is held against no_grad, and that against a recorded pass, whose activations stay alive."""
        return (GradMode("no-grad" if self.mode == "inference" else "grad"),)

    def apply(self, parts: Parts) -> None:
        """Choose the mode."""
        parts.grad_mode = MODES[self.mode]

    def proof(self, seen: Observation) -> str:
        """The outputs say in which mode they were made."""
        if seen.outputs is None:
            raise NotInEffect("the step kept no outputs")
        found = "inference" if seen.outputs.is_inference() else "grad" if seen.outputs.requires_grad else "no-grad"
        if found != self.mode:
            raise NotInEffect(f"the outputs were made in mode {found}")
        return f"outputs made in mode {found}"
