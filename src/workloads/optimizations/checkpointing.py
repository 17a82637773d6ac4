"""Activation checkpointing: blocks forget what they computed, and compute it again in the backward pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Workload

ORIGINALS = "forwards before checkpointing"


@dataclass(frozen=True)
class Checkpointing(Optimization):
    """``torch.utils.checkpoint`` around every block of the model."""

    name: ClassVar[str] = "checkpoint"
    order: ClassVar[int] = 45
    expected: ClassVar = "slower"  # by about a third: one more forward; memory is what it saves
    kinds: ClassVar[frozenset[str]] = frozenset({"train"})
    source: ClassVar[str] = "Chen et al. 2016, arXiv:1604.06174: a third more time for the memory of one block"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Needs blocks."""
        blocks = workload.blocks(workload.skeleton())
        return None if blocks else f"{workload.name} has no blocks to checkpoint: override blocks() to name them"

    def apply(self, parts: Parts) -> None:
        """Wrap each block's forward."""
        parts.notes[ORIGINALS] = {block: block.forward for block in parts.blocks}
        for block, forward in parts.notes[ORIGINALS].items():
            block.forward = _forgetting(forward)

    def proof(self, seen: Observation) -> str:
        """Fewer bytes are saved for the backward pass than without; where the peak is known, it is lower, too."""
        saved = saved_bytes(seen.parts)
        with _remembering(seen.parts.notes[ORIGINALS]):
            plain = saved_bytes(seen.parts)
        if saved >= plain:
            raise NotInEffect(f"{saved:,} bytes are saved for the backward pass, {plain:,} without checkpoints")
        peak, plain_peak = seen.counts.get("peak_bytes", 0), seen.counts.get("plain_peak_bytes", 1)
        if peak >= plain_peak:
            raise NotInEffect(f"the peak is {peak:,} bytes, that of the plain step {plain_peak:,}")
        return f"{saved:,} bytes saved for the backward pass, {plain:,} without checkpoints"


def _forgetting(forward: Callable[..., Any]) -> Callable[..., Any]:
    def recomputed(*arguments: Any, **named: Any) -> Any:
        return checkpoint(forward, *arguments, use_reentrant=False, **named)

    return recomputed


@contextmanager
def _remembering(originals: dict[nn.Module, Callable[..., Any]]) -> Iterator[None]:
    """The blocks as they were."""
    wrapped = {block: block.forward for block in originals}
    try:
        for block, forward in originals.items():
            block.forward = forward
        yield
    finally:
        for block, forward in wrapped.items():
            block.forward = forward


def saved_bytes(parts: Parts) -> int:
    """Bytes that one forward pass keeps for the backward pass, each storage once, parameters and batch left out."""
    known = {each.untyped_storage().data_ptr() for each in [*parts.model.parameters(), parts.inputs]}
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.compiler.set_stance("force_eager"), torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
        outputs = parts.forward(parts.inputs)  # kept alive, so that no storage is used twice
    del outputs
    return sum(saved.values())
