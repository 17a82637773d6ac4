"""Unstructured pruning: single weights become zero; the tensors keep their shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.nn.utils import prune

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable, Workload

LAYERS: dict[str, tuple[type[nn.Module], ...]] = {"conv": (nn.Conv2d,), "linear": (nn.Linear,)}
LAYERS["all"] = LAYERS["conv"] + LAYERS["linear"]
NAMES = {"conv": "Conv2d", "linear": "Linear", "all": "Conv2d or Linear"}
PRUNED = frozenset({"train", "inference", "accuracy"})
"""Kinds of step that pruning can be used in."""


def check_amount(optimization: Optimization, amount: float) -> None:
    """Refuse shares outside 0 to 1.

    Raises:
        Unsuitable: naming the technique and the value.
    """
    if not 0 < amount < 1:
        raise Unsuitable(f"{optimization.name}: amount is a share between 0 and 1, got {amount}")


def convolutions(model: nn.Module) -> list[nn.Conv2d]:
    """The layers that structured pruning works on."""
    return [module for module in model.modules() if isinstance(module, nn.Conv2d)]


def no_convolutions(optimization: Optimization, workload: Workload) -> str | None:
    """Why a workload without convolutions cannot be pruned."""
    found = convolutions(workload.skeleton())
    return None if found else f"{workload.name} has no Conv2d for {optimization.name} to prune"


def keep_zero(weight: Tensor, mask: Tensor) -> None:
    """Zero ``weight`` where ``mask`` is zero, and keep it so in training."""
    weight.data.mul_(mask)
    if weight.requires_grad:
        weight.register_hook(lambda gradient: gradient * mask)


@dataclass(frozen=True)
class UnstructuredPruning(Optimization):
    """Zero a share of the weights; dense kernels compute the zeros all the same."""

    order: ClassVar[int] = 20
    expected: ClassVar = "same"
    slot: ClassVar[str] = "pruning"
    kinds: ClassVar[frozenset[str]] = PRUNED
    source: ClassVar[str] = "https://github.com/pytorch/pytorch/issues/36214: no gain on dense hardware"
    amount: float = 0.5
    scope: Literal["layer", "global"] = "layer"
    """Whether every layer loses that share, or all layers together."""
    layers: Literal["conv", "linear", "all"] = "conv"

    def __post_init__(self) -> None:
        """Refuse shares outside 0 to 1, and unknown choices."""
        check_amount(self, self.amount)
        if self.scope not in ("layer", "global") or self.layers not in LAYERS:
            raise Unsuitable(f"{self.name}: scope is layer or global, layers conv, linear or all; got {self!r}")

    def __str__(self) -> str:
        """``l1-unstructured-0.5``, and what differs from pruning each Conv2d by itself."""
        extra: list[str] = [self.scope] if self.scope == "global" else []
        extra += [self.layers] if self.layers != "conv" else []
        return "-".join([self.name, str(self.amount), *extra])

    def unsuitable(self, workload: Workload, device: object) -> str | None:
        """Needs such layers."""
        return (
            None
            if self.chosen(workload.skeleton())
            else f"{workload.name} has no {NAMES[self.layers]} for {self.name} to prune"
        )

    def chosen(self, model: nn.Module) -> list[nn.Module]:
        """The layers to prune.

        One whose weight is another module's, too, is left as it is, or the two would part; so is the last layer of
        ``nn.MultiheadAttention``, which reads its weight without calling it, past the hook that applies the mask.
        """
        owners = Counter(id(each) for module in model.modules() for each in module.parameters(recurse=False))
        layers = [module for module in model.modules() if isinstance(module, LAYERS[self.layers])]
        return [
            layer
            for layer in layers
            if owners[id(getattr(layer, "weight", None))] < 2 and not isinstance(layer, NonDynamicallyQuantizableLinear)
        ]

    def prune_layer(self, layer: nn.Module) -> None:
        """Prune one layer by its own weights."""
        raise NotImplementedError

    def prune_together(self, layers: list[tuple[nn.Module, str]]) -> None:
        """Prune all layers by one common threshold."""
        raise NotImplementedError

    def scores(self, layers: list[nn.Module]) -> list[Tensor]:
        """What each weight is worth, for the twin's own pruning: the lowest are to go."""
        raise NotImplementedError

    def apply(self, parts: Parts) -> None:
        """Prune; for inference the mask is multiplied in for good, for training it stays and costs its share."""
        layers = self.chosen(parts.model)
        if self.scope == "global":
            self.prune_together([(layer, "weight") for layer in layers])
        else:
            for layer in layers:
                self.prune_layer(layer)
        if not parts.training:
            for layer in layers:
                prune.remove(layer, "weight")

    def reference(self, parts: Parts) -> None:
        """Zero the same weights by hand: those of the lowest scores, per layer or over all."""
        layers = self.chosen(parts.model)
        scores = self.scores(layers)
        together = torch.cat([each.flatten() for each in scores]) if self.scope == "global" else None
        for layer, score in zip(layers, scores, strict=True):
            among = score.flatten() if together is None else together
            limit = among.kthvalue(max(1, round(self.amount * among.numel()))).values
            weight = layer.get_parameter("weight")
            keep_zero(weight, (score > limit).to(weight.dtype))

    def proof(self, seen: Observation) -> str:
        """Each layer's zeros, or those of all layers together, are the amount asked for."""
        shares = self._zeros(seen.parts.model)
        for weights, zeros in shares:
            if abs(zeros - self.amount * weights) > 0.5 + 1e-6 * weights:
                raise NotInEffect(f"{zeros:,} of {weights:,} weights are zero")
        where = "the weights" if self.scope == "global" else "the weights of every layer"
        return f"{self.amount:.0%} of {where} are zero"

    def _zeros(self, model: nn.Module) -> list[tuple[int, int]]:
        """Weights and zeros, per layer or in one sum."""
        found = [
            (layer.weight.numel(), int((layer.weight == 0).sum()))  # type: ignore[union-attr, operator, arg-type]
            for layer in self.chosen(model)
        ]
        return found if self.scope == "layer" else [(sum(each[0] for each in found), sum(each[1] for each in found))]


@dataclass(frozen=True)
class L1Pruning(UnstructuredPruning):
    """``prune.l1_unstructured``: the weights of least absolute value."""

    name: ClassVar[str] = "l1-unstructured"

    def prune_layer(self, layer: nn.Module) -> None:
        """With the library's own function."""
        prune.l1_unstructured(layer, "weight", amount=self.amount)  # type: ignore[no-untyped-call]

    def prune_together(self, layers: list[tuple[nn.Module, str]]) -> None:
        """With the library's own function."""
        prune.global_unstructured(layers, pruning_method=prune.L1Unstructured, amount=self.amount)  # type: ignore[no-untyped-call]

    def scores(self, layers: list[nn.Module]) -> list[Tensor]:
        """Absolute values."""
        return [layer.get_parameter("weight").data.abs() for layer in layers]


@dataclass(frozen=True)
class RandomPruning(UnstructuredPruning):
    """Weights chosen at random, seeded: the control that shows what choosing by size is worth."""

    name: ClassVar[str] = "random-unstructured"

    def prune_layer(self, layer: nn.Module) -> None:
        """By a mask of the seeded scores."""
        self._mask(layer, self._score(layer, 0))

    def prune_together(self, layers: list[tuple[nn.Module, str]]) -> None:
        """By the scores of all layers."""
        scores: Mapping[tuple[nn.Module, str], Tensor] = dict(
            zip(layers, self.scores([layer for layer, _ in layers]), strict=True)
        )
        prune.global_unstructured(
            layers, pruning_method=prune.L1Unstructured, importance_scores=scores, amount=self.amount
        )  # type: ignore[no-untyped-call]

    def _mask(self, layer: nn.Module, score: Tensor) -> None:
        keep = torch.ones_like(score)
        keep.view(-1)[score.flatten().argsort()[: round(self.amount * score.numel())]] = 0
        prune.custom_from_mask(layer, "weight", keep)  # type: ignore[no-untyped-call]

    @staticmethod
    def _score(layer: nn.Module, seed: int) -> Tensor:
        weight = layer.get_parameter("weight").data
        drawn = torch.rand(weight.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        return drawn.to(weight.device)

    def scores(self, layers: list[nn.Module]) -> list[Tensor]:
        """Uniform random numbers, the same in every process."""
        return [self._score(layer, number if self.scope == "global" else 0) for number, layer in enumerate(layers)]
