"""TensorFloat-32: float32 matrix products and convolutions whose factors are rounded to 10 bits of mantissa."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from workloads.workload import NotInEffect, Observation, Optimization, Tolerance, Unsuitable, Workload

PRECISIONS = ("tf32", "ieee")
AMPERE = (8, 0)  # the first compute capability with TensorFloat-32 units


@dataclass(frozen=True)
class Float32Precision(Optimization):
    """``fp32_precision`` of cuBLAS products and cuDNN convolutions while the step runs.

    Plain torch is neither: its convolutions use TensorFloat-32 and its products do not. So the twin is ``ieee``. The
    older ``allow_tf32`` flags are left alone, since torch refuses to answer where both interfaces were used.
    """

    name: ClassVar[str] = "float32"
    tolerance: ClassVar[Tolerance] = Tolerance(norm_ratio=0.05, cosine=0.98, relative_error=0.01)  # 10 bits of mantissa
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere"
    precision: Literal["tf32", "ieee"] = "tf32"

    def __post_init__(self) -> None:
        """Refuse other precisions."""
        if self.precision not in PRECISIONS:
            raise Unsuitable(f"float32: precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}")

    def baseline(self) -> tuple[Optimization, ...]:
        """Full float32."""
        return (Float32Precision("ieee"),)

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Only NVIDIA GPUs since Ampere have the units."""
        if device.type != "cuda":
            return "TensorFloat-32 needs a CUDA GPU: these flags change nothing on a CPU"
        major, minor = torch.cuda.get_device_capability(device)
        if (major, minor) < AMPERE:
            return f"TensorFloat-32 needs compute capability 8.0, this GPU has {major}.{minor}"
        return None

    def clash(self, other: Optimization) -> str | None:
        """Inductor's templates read the older flags."""
        if "max-autotune" in str(other):
            return f"{other} reads the older allow_tf32 flags, which torch refuses after the newer: use compile"
        return super().clash(other)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Set both flags, and put back what they were."""
        before = _read()
        _write((self.precision, self.precision))
        try:
            yield
        finally:
            _write(before)

    def proof(self, seen: Observation) -> str:
        """Both flags are set while the step runs."""
        found = _read()
        if found != (self.precision, self.precision):
            raise NotInEffect(f"fp32_precision reads back as {found[0]} for products and {found[1]} for convolutions")
        return f"fp32_precision of products and convolutions read back as {self.precision}"


def _read() -> tuple[str, str]:
    """The precision of matrix products and of convolutions."""
    return torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision  # type: ignore[attr-defined]


def _write(precisions: tuple[str, str]) -> None:
    torch.backends.cuda.matmul.fp32_precision, torch.backends.cudnn.conv.fp32_precision = precisions  # type: ignore[attr-defined]
