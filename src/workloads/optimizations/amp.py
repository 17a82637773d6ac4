"""Automatic mixed precision: convolutions and matrix products in half precision, the rest in float32."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Tolerance, Unsuitable, Workload

COUNTED_STEPS = 20  # after a build: enough to calibrate the scale, and the same however many steps are measured
SCALE = "scale of the loss"
SHORT = {"bfloat16": "bf16", "float16": "fp16"}


@dataclass(frozen=True)
class AMP(Optimization):
    """``torch.autocast``, for float16 with a ``GradScaler`` so that small gradients do not vanish."""

    name: ClassVar[str] = "amp"
    order: ClassVar[int] = 60
    tolerance: ClassVar[Tolerance] = Tolerance(norm_ratio=0.05, cosine=0.9, relative_error=0.05)
    source: ClassVar[str] = "Micikevicius et al. 2018, arXiv:1710.03740; ResNet-50 A100 TF32 938 -> 2470 img/s (NVIDIA)"
    dtype: Literal["bfloat16", "float16"] = "bfloat16"

    def __post_init__(self) -> None:
        """Refuse other types."""
        if self.dtype not in SHORT:
            raise Unsuitable(f"amp: dtype must be one of {', '.join(SHORT)}, got {self.dtype!r}")

    def __str__(self) -> str:
        """``amp-bf16`` or ``amp-fp16``."""
        return f"{self.name}-{SHORT[self.dtype]}"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """float16 has no fast path on a CPU."""
        return (
            "float16 autocast needs a GPU: use amp-bf16" if self.dtype == "float16" and device.type == "cpu" else None
        )

    def apply(self, parts: Parts) -> None:
        """Wrap forward and loss in autocast, and the update in a GradScaler for float16."""
        dtype = getattr(torch, self.dtype)
        forward, loss = parts.forward, parts.loss

        def autocast_forward(inputs: Tensor) -> Tensor:
            with torch.autocast(parts.device.type, dtype):
                return forward(inputs)

        def autocast_loss(outputs: Tensor, targets: Tensor) -> Tensor:
            with torch.autocast(parts.device.type, dtype):
                return loss(outputs, targets)

        parts.forward, parts.loss = autocast_forward, autocast_loss
        if self.dtype == "float16" and parts.training:
            self._scale(parts)

    def _scale(self, parts: Parts) -> None:
        backward, scaler = parts.backward, torch.amp.GradScaler(parts.device.type)
        attempted = performed = 0
        hooked: set[int] = set()

        def count(*_: object) -> None:
            nonlocal performed
            performed += attempted <= COUNTED_STEPS

        def scaled_update(optimizer: torch.optim.Optimizer) -> None:
            nonlocal attempted
            if id(optimizer) not in hooked:  # the scaler calls the optimizer's step only where no gradient overflowed
                optimizer.register_step_post_hook(count)
                hooked.add(id(optimizer))
            attempted += 1
            parts.notes[SCALE] = scaler.get_scale
            scaler.step(optimizer)
            scaler.update()

        parts.backward = lambda value: backward(scaler.scale(value))
        parts.update = scaled_update
        parts.counters["skipped_scaler_steps"] = lambda: min(attempted, COUNTED_STEPS) - performed

    def proof(self, seen: Observation) -> str:
        """The layers (or, under a compiler that hides them, the outputs) are of the reduced type."""
        dtype = getattr(torch, self.dtype)
        found = seen.activation_dtypes or {None if seen.outputs is None else seen.outputs.dtype}
        if dtype not in found:
            raise NotInEffect(f"expected {dtype} activations, saw {', '.join(map(str, found))}")
        if self.dtype == "float16" and seen.parts.training:
            scale = seen.parts.notes.get(SCALE, lambda: 1.0)()
            if scale == 1.0:
                raise NotInEffect("no GradScaler scaled the loss, and small float16 gradients vanish")
            return f"layers produced {dtype}, the loss was scaled by {scale:g}"
        return f"layers produced {dtype}"
