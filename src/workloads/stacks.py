"""The best stacks that are known, by workload, device and kind of step; ``python -m workloads ladder`` finds them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workloads.models import MLP, ResNet18, ResNet18Cifar, ResNet50, Transformer
from workloads.optimizations import CATALOGUE
from workloads.steps import InferenceStep, Step, TrainStep
from workloads.workload import Optimization, Unsuitable, Workload

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Techniques that were found to pay together."""

    workload: Workload
    device_type: str
    """``cpu`` or ``cuda``, where it was found."""
    kind: str
    """``train`` or ``inference``."""
    techniques: tuple[str, ...]
    """Names of the catalogue."""

    def __str__(self) -> str:
        """For example ``resnet18-cifar-tv-b32-train-cpu``."""
        return f"{self.workload}-{self.kind}-{self.device_type}"

    @property
    def optimizations(self) -> tuple[Optimization, ...]:
        """The catalogue's instances.

        Raises:
            Unsuitable: where the catalogue has one no longer.
        """
        gone = [name for name in self.techniques if name not in CATALOGUE]
        if gone:
            raise Unsuitable(f"{self}: no optimization is called {', '.join(gone)}; climb the ladder again")
        return tuple(CATALOGUE[name] for name in self.techniques)

    def step(self) -> Step:
        """The step with everything at once, for the kind of device that the stack was found on."""
        return (StackTrainStep if self.kind == "train" else StackInferenceStep)(self)

    def plain(self) -> Step:
        """The same step without."""
        return self.workload.train_step() if self.kind == "train" else self.workload.inference_step()

    def elsewhere(self, device: torch.device) -> str | None:
        """Why the stack is not for ``device``."""
        if device.type == self.device_type:
            return None
        return f"this stack is for {self.device_type}: the best one of a {device.type} device has its own benchmark"


class StackTrainStep(TrainStep):
    """A training step on the kind of device that its stack was found on."""

    def __init__(self, stack: Stack) -> None:
        """``stack`` with all of its techniques."""
        super().__init__(stack.workload, stack.optimizations)
        self._stack = stack

    def unsuitable(self, device: torch.device) -> str | None:
        """Other devices have other stacks."""
        return self._stack.elsewhere(device) or super().unsuitable(device)


class StackInferenceStep(InferenceStep):
    """A forward pass on the kind of device that its stack was found on."""

    def __init__(self, stack: Stack) -> None:
        """``stack`` with all of its techniques."""
        super().__init__(stack.workload, stack.optimizations)
        self._stack = stack

    def unsuitable(self, device: torch.device) -> str | None:
        """Other devices have other stacks."""
        return self._stack.elsewhere(device) or super().unsuitable(device)


def _found(workload: Workload, device_type: str, **stacks: str) -> list[Stack]:
    """One stack per kind, as the ladder prints them."""
    return [
        Stack(workload=workload, device_type=device_type, kind=kind, techniques=tuple(names.split(",")))
        for kind, names in stacks.items()
    ]


GPU_IMAGES = "channels-last,sgd-fused,amp-bf16,compile"
BEST: tuple[Stack, ...] = (
    # found by the ladder on 2026-11-21: AMD EPYC with avx512_bf16, 2 busy cores, torch 2.15.0, perfgate exec, 1 thread;
    # for the transformer without torch.compile, export and AOTInductor among the candidates
    *_found(MLP(), "cpu", train="amp-bf16", inference="half-bf16"),
    *_found(ResNet18(), "cpu", train="amp-bf16", inference="half-bf16,torchscript-trace"),
    *_found(Transformer(), "cpu", train="amp-bf16", inference="half-bf16,torchscript-trace"),
    # not found by the ladder yet: what is known to pay on a GPU, at batches that should keep the host from limiting it
    *_found(ResNet18Cifar(batch_size=1024), "cuda", train=GPU_IMAGES, inference="channels-last,amp-bf16,compile"),
    *_found(ResNet50(batch_size=512), "cuda", train=GPU_IMAGES, inference="channels-last,amp-bf16,compile"),
)
"""Every pinned stack."""


def best_stack(workload: Workload, device_type: str, kind: str) -> tuple[Optimization, ...]:
    """The pinned stack of a workload, whatever its batch size.

    Raises:
        Unsuitable: where none is pinned.
    """
    for each in BEST:
        alike = dataclasses.replace(each.workload, batch_size=workload.batch_size, data=workload.data)
        if (alike, each.device_type, each.kind) == (workload, device_type, kind):
            return each.optimizations
    raise Unsuitable(
        f"no stack is pinned for {kind} of {workload.name} on {device_type}: "
        f"find one with python -m workloads ladder --workload {workload.name} --kind {kind}"
    )
