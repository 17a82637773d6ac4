"""Structured pruning: whole channels, removed for real (Torch-Pruning) or, as the contrast, only zeroed."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.utils import prune

from workloads.optimizations.unstructured_pruning import (
    PRUNED,
    check_amount,
    convolutions,
    keep_zero,
    no_convolutions,
)
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Tolerance, Workload


@dataclass(frozen=True)
class ChannelPruning(Optimization):
    """Remove the channels of least L2 norm together with everything that depends on them."""

    name: ClassVar[str] = "channel-pruning"
    order: ClassVar[int] = 20
    keeps_shapes: ClassVar[bool] = False
    slot: ClassVar[str] = "pruning"
    kinds: ClassVar[frozenset[str]] = PRUNED
    tolerance: ClassVar[Tolerance] = Tolerance(relative_error=1e-3)
    source: ClassVar[str] = "Fang et al. 2023, arXiv:2301.12900; ResNet-50 at 0.5: MACs / 3.85, latency / 2.19"
    amount: float = 0.5

    def __post_init__(self) -> None:
        """Refuse shares outside 0 to 1."""
        check_amount(self, self.amount)

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Needs convolutions."""
        if importlib.util.find_spec("torch_pruning") is None:
            return f"{self} needs torch-pruning, which follows a channel through the layers: pip install torch-pruning"
        return no_convolutions(self, workload)

    def apply(self, parts: Parts) -> None:
        """Remove the channels."""
        before = sum(each.numel() for each in parts.model.parameters())
        for group in self._groups(parts):
            group.prune()
        parts.counters["parameters_before_pruning"] = lambda: before

    def reference(self, parts: Parts) -> None:
        """Zero the same channels in every layer that depends on them: the same function, at the old size."""
        masks: dict[torch.Tensor, torch.Tensor] = {}
        for group in list(self._groups(parts)):
            for dependency, indices in group:
                for parameter, axis in _channel_axes(dependency):
                    mask = masks.setdefault(parameter, torch.ones_like(parameter))
                    mask.index_fill_(axis, torch.tensor(indices, device=mask.device), 0)
        for parameter, mask in masks.items():
            keep_zero(parameter, mask)

    def _groups(self, parts: Parts) -> Iterator[Any]:
        """The groups of coupled channels to remove; classifier outputs stay."""
        import torch_pruning

        outputs = [module for module in parts.model.modules() if isinstance(module, nn.Linear)][-1:]
        training = parts.model.training
        pruner = torch_pruning.pruner.BasePruner(
            parts.model.eval(),
            parts.inputs,
            importance=torch_pruning.importance.GroupMagnitudeImportance(p=2),
            pruning_ratio=self.amount,
            ignored_layers=outputs,
        )
        yield from pruner.step(interactive=True)
        parts.model.train(training)

    def proof(self, seen: Observation) -> str:
        """Fewer parameters, by the square of the kept channels where both ends are pruned."""
        before = seen.parts.counters["parameters_before_pruning"]()
        after = sum(each.numel() for each in seen.parts.model.parameters())
        if after > before * (1 - self.amount / 2):
            raise NotInEffect(f"{after:,} of {before:,} parameters are left")
        return f"parameters {before:,} -> {after:,}"


def _channel_axes(dependency: Any) -> Iterator[tuple[torch.Tensor, int]]:
    """The parameters of one dependency, with the axis along which its channels lie."""
    layer, handler = dependency.target.module, dependency.handler.__name__
    if isinstance(layer, nn.BatchNorm2d):
        yield layer.weight, 0
        yield layer.bias, 0
    elif isinstance(layer, (nn.Conv2d, nn.Linear)):
        yield layer.weight, 1 if handler == "prune_in_channels" else 0
        if layer.bias is not None and handler != "prune_in_channels":
            yield layer.bias, 0


@dataclass(frozen=True)
class ChannelMasks(Optimization):
    """``prune.ln_structured``: channels zeroed in place. Computes as much as before."""

    name: ClassVar[str] = "channel-masks"
    order: ClassVar[int] = 20
    expected: ClassVar = "same"
    slot: ClassVar[str] = "pruning"
    kinds: ClassVar[frozenset[str]] = PRUNED
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.prune.ln_structured.html"
    amount: float = 0.5

    def __post_init__(self) -> None:
        """Refuse shares outside 0 to 1."""
        check_amount(self, self.amount)

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Needs convolutions."""
        return no_convolutions(self, workload)

    def apply(self, parts: Parts) -> None:
        """Zero the output channels of least L2 norm in every Conv2d."""
        for layer in convolutions(parts.model):
            prune.ln_structured(layer, "weight", amount=self.amount, n=2, dim=0)
            if not parts.training:
                prune.remove(layer, "weight")

    def reference(self, parts: Parts) -> None:
        """Zero the same channels by hand."""
        for layer in convolutions(parts.model):
            norms = layer.weight.data.flatten(1).norm(dim=1)
            mask = torch.ones_like(layer.weight)
            mask[norms.topk(round(self.amount * len(norms)), largest=False).indices] = 0
            keep_zero(layer.weight, mask)

    def proof(self, seen: Observation) -> str:
        """Each layer has that share of channels without any weight."""
        for layer in convolutions(seen.parts.model):
            empty = int((layer.weight.flatten(1) == 0).all(dim=1).sum())
            if empty != round(self.amount * layer.out_channels):
                raise NotInEffect(f"a layer of {layer.out_channels} channels has {empty} zeroed")
        return f"{self.amount:.0%} of the channels of every Conv2d are zero"
