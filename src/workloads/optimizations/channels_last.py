"""Channels-last memory format: the layout that convolution kernels of tensor cores and oneDNN prefer."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

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
        """Activations of convolutions lie in that order; where compiled code hides them, all that goes in does."""
        if not seen.activation_dtypes:
            return self._inputs_and_weights(seen.parts)
        if not seen.channels_last_activations:
            raise NotInEffect("no convolution produced a channels-last activation")
        return f"{seen.channels_last_activations} activations in channels-last order"

    @staticmethod
    def _inputs_and_weights(parts: Parts) -> str:
        weights = [module.weight for module in parts.model.modules() if isinstance(module, nn.Conv2d)]
        order = torch.channels_last
        if not weights or not all(each.is_contiguous(memory_format=order) for each in (parts.inputs, *weights)):
            raise NotInEffect("inputs or weights of the compiled model are not in channels-last order")
        return f"inputs and the weights of {len(weights)} convolutions in channels-last order"
