"""In-place activations: the result overwrites the argument, so one tensor less lives at a time."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Workload

OPERATORS = {
    nn.ReLU: "relu",
    nn.ReLU6: "hardtanh",
    nn.SiLU: "silu",
    nn.Hardswish: "hardswish",
    nn.LeakyReLU: "leaky_relu",
}
"""Modules with the switch and the operator that they call, whose in-place form ends in an underscore."""


@dataclass(frozen=True)
class InPlace(Optimization):
    """``inplace=True`` on every module that has the switch, such as ReLU and Dropout.

    Autograd refuses where a value that backward needs would be overwritten (SiLU in training, for instance). The twin
    is :class:`OutOfPlace`, since torchvision's ResNets are in place as they come.
    """

    name: ClassVar[str] = "in-place"
    order: ClassVar[int] = 35
    slot: ClassVar[str] = "place of activations"
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd"
    in_place: ClassVar[bool] = True

    def baseline(self) -> tuple[Optimization, ...]:
        """The same activations out of place."""
        return (OutOfPlace(),)

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Needs modules with the switch; functions called in ``forward`` have none."""
        if switched(workload.skeleton()):
            return None
        return f"{workload.name} has no module with an inplace switch, such as nn.ReLU"

    def apply(self, parts: Parts) -> None:
        """Set the switch."""
        for module in switched(parts.model):
            module.inplace = self.in_place  # type: ignore[assignment]

    def explain(self, error: RuntimeError) -> str | None:
        """Autograd refuses where it needs what is overwritten."""
        if "modified by an inplace operation" not in str(error):
            return None
        return "an activation overwrites what the gradient of the operation before it needs"

    def proof(self, seen: Observation) -> str:
        """The switches are set, and eager activations dispatched operators of the right form."""
        modules = switched(seen.parts.model)
        wrong = sum(bool(module.inplace) != self.in_place for module in modules)
        if wrong or not modules:
            raise NotInEffect(f"{wrong} of {len(modules)} modules have the other setting")
        used = {OPERATORS[type(module)] for module in modules if type(module) in OPERATORS}
        missing = {f"aten::{each}{'_' if self.in_place else ''}" for each in used} - seen.operators
        if seen.operators and missing:
            raise NotInEffect(f"{min(missing)} was not dispatched")
        return f"{len(modules)} modules {'in' if self.in_place else 'out of'} place"


@dataclass(frozen=True)
class OutOfPlace(InPlace):
    """The same modules with ``inplace=False``: every activation has memory of its own."""

    name: ClassVar[str] = "out-of-place"
    expected: ClassVar = "slower"
    in_place: ClassVar[bool] = False


def switched(model: nn.Module) -> list[nn.Module]:
    """The modules of ``model`` that can work in place."""
    return [module for module in model.modules() if isinstance(getattr(module, "inplace", None), bool)]
