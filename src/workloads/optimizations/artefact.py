"""What is captured, saved and loaded: inference runs the loaded artefact instead of the model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Tolerance

Artefact = Callable[[Tensor], Tensor]


class Whole(nn.Module):
    """All that a forward pass does as one module, with what other techniques put around the model."""

    def __init__(self, parts: Parts) -> None:
        """Holds the model, so that its weights are found."""
        super().__init__()
        self.model = parts.model
        self.call = parts.forward

    def forward(self, inputs: Tensor) -> Tensor:
        """What ``parts.forward`` was when this was made."""
        return self.call(inputs)


@dataclass(frozen=True)
class Captured(Optimization):
    """A technique whose forward pass is an artefact of the model.

    It is made in the first call, whose time says what it costs. The eager model stays in ``parts.model`` for whoever
    looks at its layers; the artefact has weights of its own.
    """

    order: ClassVar[int] = 90
    expected: ClassVar = "any"
    kinds: ClassVar[frozenset[str]] = frozenset({"inference"})
    slot: ClassVar[str] = "compilation"
    tolerance: ClassVar[Tolerance] = Tolerance(relative_error=0.01)
    keeps_gradients: ClassVar[bool] = False
    """Whether outputs of the artefact can be differentiated."""

    def clash(self, other: Optimization) -> str | None:
        """Its layers cannot be watched, and most artefacts cannot be differentiated."""
        if other.name == "channels-last":
            return f"the layers of {self} cannot be watched, so channels-last could not be proven: use compile"
        if str(other) == "grad-mode-grad" and not self.keeps_gradients:
            return f"{self} gives outputs without gradients"
        return super().clash(other)

    def apply(self, parts: Parts) -> None:
        """Put the artefact in the model's place."""
        whole, made = Whole(parts).eval(), list[Artefact]()

        def forward(inputs: Tensor) -> Tensor:
            if not made:
                with torch.inference_mode(mode=False), torch.no_grad():  # weights must not become inference tensors
                    made.append(self.make(whole, inputs, parts))
            return made[0](inputs)

        if self.compiled or self.opaque:
            parts.uncompiled = parts.forward
        parts.forward = forward

    def make(self, whole: Whole, inputs: Tensor, parts: Parts) -> Artefact:
        """Capture, save, load; leaves the saved bytes' number in ``parts.notes["artefact_bytes"]``."""
        raise NotImplementedError

    def proof(self, seen: Observation) -> str:
        """There is a loaded artefact, and no layer of the model ran."""
        saved = seen.parts.notes.get("artefact_bytes")
        if not saved:
            raise NotInEffect("no artefact was saved and loaded")
        if seen.activation_dtypes:
            raise NotInEffect("layers of the eager model ran beside the artefact")
        return f"an artefact of {saved:,} bytes was saved, loaded and run; no layer of the model was"
