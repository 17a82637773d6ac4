"""cudnn.benchmark: try cuDNN's convolution algorithms on the first call and keep the fastest."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from workloads.workload import NotInEffect, Observation, Optimization, Tolerance, Workload


@dataclass(frozen=True)
class CudnnBenchmark(Optimization):
    """``torch.backends.cudnn.benchmark`` while the step runs; pays where input sizes stay fixed."""

    name: ClassVar[str] = "cudnn-benchmark"
    tolerance: ClassVar[Tolerance] = Tolerance(
        norm_ratio=0.05, cosine=0.98, relative_error=0.01
    )  # another algorithm rounds otherwise
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.benchmark"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Only NVIDIA GPUs run cuDNN."""
        return None if device.type == "cuda" else "cudnn.benchmark needs a CUDA GPU: cuDNN is not used on a CPU"

    @contextmanager
    def active(self) -> Iterator[None]:
        """Set the flag, and put back what it was."""
        before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = True
        try:
            yield
        finally:
            torch.backends.cudnn.benchmark = before

    def proof(self, seen: Observation) -> str:
        """The flag is set while the step runs, and cuDNN is available at all."""
        if not (torch.backends.cudnn.benchmark and torch.backends.cudnn.is_available()):
            raise NotInEffect("torch.backends.cudnn.benchmark reads back as off, or cuDNN is not available")
        return "cudnn.benchmark read back as on"
