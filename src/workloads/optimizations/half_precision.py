"""Pure half precision: weights and activations in 16 bits, without autocast's casts in every layer."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from workloads.optimizations.amp import SHORT
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Tolerance, Unsuitable, Workload


@dataclass(frozen=True)
class PureHalf(Optimization):
    """``model.to(dtype)`` and floating-point inputs in the same type, for inference."""

    name: ClassVar[str] = "half"
    order: ClassVar[int] = 55  # after whatever reads or changes the float32 weights
    kinds: ClassVar[frozenset[str]] = frozenset({"inference"})
    # relative L2 of the outputs, measured: ResNet-18 0.8 %, MLP 0.4 %, a transformer of 8 blocks 0.8 % in bfloat16;
    # at most 0.1 % in float16
    tolerance: ClassVar[Tolerance] = Tolerance(relative_error=0.03)
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.half"
    dtype: Literal["bfloat16", "float16"] = "bfloat16"

    def __post_init__(self) -> None:
        """Refuse other types."""
        if self.dtype not in SHORT:
            raise Unsuitable(f"half: dtype must be one of {', '.join(SHORT)}, got {self.dtype!r}")

    def __str__(self) -> str:
        """``half-bf16`` or ``half-fp16``."""
        return f"{self.name}-{SHORT[self.dtype]}"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """float16 has no fast path on a CPU: measured, ResNet-18 takes over 20 times as long as in float32."""
        return "float16 needs a GPU: use half-bf16" if self.dtype == "float16" and device.type == "cpu" else None

    def clash(self, other: Optimization) -> str | None:
        """Autocast would cast what is cast already."""
        if other.name == "amp":
            return f"{self} leaves nothing in float32 for {other} to cast: choose one"
        return super().clash(other)

    def apply(self, parts: Parts) -> None:
        """Convert parameters, buffers and inputs; token numbers stay integers."""
        dtype = getattr(torch, self.dtype)
        parts.model.to(dtype)
        if parts.inputs.is_floating_point():
            parts.inputs = parts.inputs.to(dtype)

    def proof(self, seen: Observation) -> str:
        """All layers (or, where code hides them, the outputs) are of that type, and so is every parameter."""
        dtype = getattr(torch, self.dtype)
        found = seen.activation_dtypes or {None if seen.outputs is None else seen.outputs.dtype}
        if found != {dtype}:
            raise NotInEffect(f"expected {dtype} activations only, saw {', '.join(map(str, found))}")
        if left := [name for name, each in seen.parts.model.named_parameters() if each.dtype != dtype]:
            raise NotInEffect(f"{len(left)} parameters are not {dtype}, {left[0]} among them")
        return f"layers produced {dtype} only"
