"""Parameters and FLOPs of a training step, by the model's top-level modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.flop_counter import (
    FlopCounterMode,
    flop_registry,
    register_flop_formula,
    sdpa_backward_flop,
    sdpa_flop,
)

from workloads.analysis.clock import watched
from workloads.analysis.counting import counted_run
from workloads.steps import TrainStep

if TYPE_CHECKING:
    from torch import nn

ATTENTION_ON_A_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001
ITS_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward  # noqa: SLF001
if ATTENTION_ON_A_CPU not in flop_registry:  # torch 2.11
    register_flop_formula(ATTENTION_ON_A_CPU, get_raw=True)(sdpa_flop)
    register_flop_formula(ITS_BACKWARD, get_raw=True)(sdpa_backward_flop)
WHOLE = "Global"  # FlopCounterMode's name for everything


@dataclass(frozen=True, kw_only=True)
class ModuleSize:
    """One top-level module of a model."""

    name: str
    parameters: int
    """Elements; those it shares with an earlier module are counted there."""
    parameter_bytes: int
    forward_flops: int
    """Of one batch; a multiply-add is two."""
    train_flops: int
    """Of one training step: forward, backward, and what is computed again."""


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """A model as a whole, and its parts."""

    modules: tuple[ModuleSize, ...]
    parameters: int
    parameter_bytes: int
    forward_flops: int
    train_flops: int


def size_of(step: TrainStep) -> ModelSize:
    """Parameters and FLOPs of a built step's model, from one eager run of it.

    FLOPs are those that ``torch.utils.flop_counter`` has formulas for: products, convolutions and attention.
    """
    forward, train = _flops(step)
    model = step.parts.model
    parameters = _parameters(model)
    prefix = type(model).__name__
    modules = tuple(
        ModuleSize(
            name=name,
            parameters=parameters[name][0],
            parameter_bytes=parameters[name][1],
            forward_flops=forward.get(f"{prefix}.{name}", 0),
            # an Identity has its neighbour's tensors, and would be given its neighbour's backward
            train_flops=train.get(f"{prefix}.{name}", 0) if forward.get(f"{prefix}.{name}") else 0,
        )
        for name, _ in model.named_children()
    )
    return ModelSize(
        modules=modules,
        parameters=sum(count for count, _ in parameters.values()),
        parameter_bytes=sum(size for _, size in parameters.values()),
        forward_flops=forward.get(WHOLE, 0),
        train_flops=train.get(WHOLE, 0),
    )


def _parameters(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Elements and bytes by top-level module; the model's own parameters are under an empty name."""
    found = {"": (0, 0), **{name: (0, 0) for name, _ in model.named_children()}}
    for name, each in model.named_parameters():  # each once, also where two modules share it
        module = name.partition(".")[0] if "." in name else ""
        count, size = found[module]
        found[module] = (count + each.numel(), size + each.numel() * each.element_size())
    return found


def _flops(step: TrainStep) -> tuple[dict[str, int], dict[str, int]]:
    """FLOPs by module name, of all forward passes and of the whole step."""
    counter = FlopCounterMode(display=False)
    forward: dict[str, int] = {}

    @contextmanager
    def around(phase: str) -> Iterator[None]:
        before = _by_module(counter)
        yield
        if phase == "forward":
            for name, flops in _by_module(counter).items():
                forward[name] = forward.get(name, 0) + flops - before.get(name, 0)

    with watched(step.parts, around), counter:
        counted_run(step)
    return forward, _by_module(counter)


def _by_module(counter: FlopCounterMode) -> dict[str, int]:
    counts: Mapping[str, Mapping[Any, int]] = counter.get_flop_counts()
    return {name: sum(flops.values()) for name, flops in counts.items()}
