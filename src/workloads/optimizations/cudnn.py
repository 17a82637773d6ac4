"""cuDNN's choice of algorithms: tried on the first call, or only those that give the same bits every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from workloads.workload import NotInEffect, Observation, Optimization, Tolerance, Workload


@dataclass(frozen=True)
class CudnnFlag(Optimization):
    """A switch of ``torch.backends.cudnn`` that is on while the step runs."""

    flag: ClassVar[str]
    """The attribute's name."""
    tolerance: ClassVar[Tolerance] = Tolerance(
        norm_ratio=0.05, cosine=0.98, relative_error=0.01
    )  # another algorithm rounds otherwise

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Only NVIDIA GPUs run cuDNN."""
        return None if device.type == "cuda" else f"cudnn.{self.flag} needs a CUDA GPU: cuDNN is not used on a CPU"

    @contextmanager
    def active(self) -> Iterator[None]:
        """Set the flag, and put back what it was."""
        before = getattr(torch.backends.cudnn, self.flag)
        setattr(torch.backends.cudnn, self.flag, True)
        try:
            yield
        finally:
            setattr(torch.backends.cudnn, self.flag, before)

    def proof(self, seen: Observation) -> str:
        """The flag is set while the step runs, and cuDNN is available at all."""
        if not (getattr(torch.backends.cudnn, self.flag) and torch.backends.cudnn.is_available()):
            raise NotInEffect(f"torch.backends.cudnn.{self.flag} reads back as off, or cuDNN is not available")
        return f"cudnn.{self.flag} read back as on"


@dataclass(frozen=True)
class CudnnBenchmark(CudnnFlag):
    """``torch.backends.cudnn.benchmark``: the fastest of those tried; pays where input sizes stay fixed."""

    name: ClassVar[str] = "cudnn-benchmark"
    flag: ClassVar[str] = "benchmark"
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.benchmark"


@dataclass(frozen=True)
class CudnnDeterministic(CudnnFlag):
    """``torch.backends.cudnn.deterministic``: the price of equal bits.

    Goes with :class:`CudnnBenchmark`, which then tries deterministic algorithms only.
    """

    name: ClassVar[str] = "cudnn-deterministic"
    expected: ClassVar = "slower"
    flag: ClassVar[str] = "deterministic"
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.deterministic"
