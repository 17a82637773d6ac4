"""Unstructured pruning: the smallest weights become zero, one by one; the tensors keep their shapes."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn
from torch.nn.utils import prune

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable, Workload


def check_amount(optimization: Optimization, amount: float) -> None:
    """Refuse shares outside 0 to 1.

    Raises:
        Unsuitable: naming the technique and the value.
    """
    if not 0 < amount < 1:
        raise Unsuitable(f"{optimization.name}: amount is a share between 0 and 1, got {amount}")


def convolutions(model: nn.Module) -> list[nn.Conv2d]:
    """The layers that pruning works on."""
    return [module for module in model.modules() if isinstance(module, nn.Conv2d)]


def no_convolutions(optimization: Optimization, workload: Workload) -> str | None:
    """Why a workload without convolutions cannot be pruned."""
    return None if convolutions(workload.model()) else f"{workload.name} has no Conv2d for {optimization.name} to prune"


def keep_zero(weight: Tensor, mask: Tensor) -> None:
    """Zero ``weight`` where ``mask`` is zero, and keep it so in training."""
    weight.data.mul_(mask)
    if weight.requires_grad:
        weight.register_hook(lambda gradient: gradient * mask)


@dataclass(frozen=True)
class L1Pruning(Optimization):
    """``prune.l1_unstructured`` on every Conv2d: dense kernels compute the zeros all the same."""

    name: ClassVar[str] = "l1-unstructured"
    order: ClassVar[int] = 20
    expected: ClassVar = "same"
    source: ClassVar[str] = "https://github.com/pytorch/pytorch/issues/36214: no gain on dense hardware"
    amount: float = 0.5

    def __post_init__(self) -> None:
        """Refuse shares outside 0 to 1."""
        check_amount(self, self.amount)

    def unsuitable(self, workload: Workload, device: object) -> str | None:
        """Needs convolutions."""
        return no_convolutions(self, workload)

    def apply(self, parts: Parts) -> None:
        """Prune; for inference the mask is multiplied in for good, for training it stays and costs its share."""
        for layer in convolutions(parts.model):
            prune.l1_unstructured(layer, "weight", amount=self.amount)
            if not parts.training:
                prune.remove(layer, "weight")

    def reference(self, parts: Parts) -> None:
        """Zero the same weights by hand: the smallest ``amount`` of each layer by absolute value."""
        for layer in convolutions(parts.model):
            magnitudes = layer.weight.data.abs()
            limit = magnitudes.flatten().kthvalue(max(1, round(self.amount * magnitudes.numel()))).values
            keep_zero(layer.weight, (magnitudes > limit).to(magnitudes.dtype))

    def proof(self, seen: Observation) -> str:
        """Each layer's zeros are the amount asked for."""
        for layer in convolutions(seen.parts.model):
            share = float((layer.weight == 0).float().mean())
            if abs(share - self.amount) > 0.5 / layer.weight.numel() + 1e-6:
                raise NotInEffect(f"a layer of {layer.weight.numel()} weights has {share:.1%} zeros")
        return f"{self.amount:.0%} of the weights of every Conv2d are zero"
