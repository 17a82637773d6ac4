"""cuDNN's choice of algorithms: tried on the first call, or only those that give the same bits every time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from workloads.apart import OwnThread
from workloads.workload import Call, NotInEffect, Observation, Optimization, Parts, Tolerance, Workload


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

    def baseline(self) -> tuple[Optimization, ...]:
        """Plans of their own on both sides."""
        return (OwnPlans(),)


@dataclass(frozen=True)
class CudnnDeterministic(CudnnFlag):
    """``torch.backends.cudnn.deterministic``: the price of equal bits.

    Goes with :class:`CudnnBenchmark`, which then tries deterministic algorithms only.
    """

    name: ClassVar[str] = "cudnn-deterministic"
    expected: ClassVar = "slower"
    flag: ClassVar[str] = "deterministic"
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/backends.html#torch.backends.cudnn.deterministic"


@dataclass(frozen=True)
class OwnPlans(Optimization):
    """Steps in a thread of their own, with backward in it: each side finds its own cuDNN plans, see ``apart.py``.

    Handing a step over costs the same on both sides.
    """

    name: ClassVar[str] = "own-plans"
    order: ClassVar[int] = 96
    expected: ClassVar = "same"
    opaque: ClassVar[bool] = True  # operators are watched per thread, too
    source: ClassVar[str] = "https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cudnn/Conv_v8.cpp"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """There are no plans without cuDNN."""
        return None if device.type == "cuda" else "cuDNN's plans need a CUDA GPU: cuDNN is not used on a CPU"

    def baseline(self) -> tuple[Optimization, ...]:
        """Only ever a twin."""
        return (self,)

    def clash(self, other: Optimization) -> str | None:
        """Other techniques have state of their own per thread."""
        if isinstance(other, CudnnFlag):
            return None
        return f"{self} is the twin of cudnn-benchmark, and not to be stacked with {other}"

    def wrap(self, parts: Parts, call: Call, optimizer: torch.optim.Optimizer | None) -> Call:
        """Hand each step over and wait until it was launched."""
        thread = OwnThread(parts.device)

        def handed_over() -> Tensor:
            parts.notes[self.name] = True
            return thread.call(call)

        return handed_over

    def proof(self, seen: Observation) -> str:
        """Steps were handed over."""
        if not seen.parts.notes.get(self.name):
            raise NotInEffect("no step ran in a thread of its own")
        return "each step ran in a thread of its own"
