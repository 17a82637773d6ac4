"""Channels-last memory format: the layout that convolution kernels of tensor cores and oneDNN prefer."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Tolerance, Workload


@dataclass(frozen=True)
class ChannelsLast(Optimization):
    """Model and batch in NHWC order; the operators propagate it."""

    name: ClassVar[str] = "channels-last"
    order: ClassVar[int] = 40
    expected: ClassVar = "any"  # 22-31 % with AMP on a V100, about 1 in float32
    tolerance: ClassVar[Tolerance] = Tolerance(norm_ratio=0.02, cosine=0.99)
    source: ClassVar[str] = "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Only images have channels."""
        inputs, _ = workload.batch()
        return None if inputs.dim() == 4 else f"{workload.name} has no images: channels-last needs 4-dimensional input"

    def apply(self, parts: Parts) -> None:
        """Convert parameters and inputs; a loader's batches are converted on their way to the device."""
        parts.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        parts.inputs = parts.inputs.contiguous(memory_format=torch.channels_last)

    def proof(self, seen: Observation) -> str:
        """Activations of convolutions lie in channels-last order."""
        if not seen.channels_last_activations:
            raise NotInEffect("no convolution produced a channels-last activation")
        return f"{seen.channels_last_activations} activations in channels-last order"
