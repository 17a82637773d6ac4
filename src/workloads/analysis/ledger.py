"""Which tensors are alive when a step holds most memory, and what each of them is there for."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

TEMPORARY = "temporary"


@dataclass
class Block:
    """One storage that was seen."""

    size_bytes: int
    purpose: str
    alive: Any = None
    """A weak reference, whose end is the storage's."""


class Ledger(TorchDispatchMode):
    """Follows every storage from the operator that makes it to its end; remembers who was alive at the peak.

    Memory that an operator takes and gives back inside itself is not seen.
    """

    def __init__(self, device: torch.device) -> None:
        """Only storages on ``device`` are followed."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._device = device
        self._live: dict[int, Block] = {}
        self._level_bytes = 0
        self.peak_bytes = 0
        self.at_peak: list[Block] = []
        self.saved: list[Block] = []
        """What autograd kept for backward, each storage once."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and enter what it made."""
        result = func(*args, **(kwargs or {}))
        for each in tree_leaves(result):
            if isinstance(each, Tensor):
                self.enter(each)
        if self._level_bytes > self.peak_bytes:
            self.peak_bytes, self.at_peak = self._level_bytes, list(self._live.values())
        return result

    def enter(self, tensor: Tensor, purpose: str | None = None) -> Block:
        """The block of ``tensor``'s storage, new or known; ``purpose`` replaces the one it had."""
        if tensor.device.type != self._device.type:
            return Block(0, TEMPORARY)
        storage = tensor.untyped_storage()
        key = id(storage)  # stays the same while the storage lives, as torch keeps its Python object with it
        block = self._live.get(key)
        if block is None:
            block = self._live[key] = Block(storage.nbytes(), TEMPORARY)
            block.alive = weakref.ref(storage, lambda _: self._end(key))
            self._level_bytes += block.size_bytes
        block.purpose = purpose or block.purpose
        return block

    def enter_all(self, tensors: Iterable[Tensor], purpose: str) -> None:
        """Enter what is alive before the step; what is known keeps its purpose."""
        for each in tensors:
            if self.enter(each).purpose == TEMPORARY:
                self.enter(each, purpose)

    def _end(self, key: int) -> None:
        block = self._live.pop(key, None)
        if block is not None:
            self._level_bytes -= block.size_bytes

    @contextmanager
    def following(self, model: nn.Module) -> Iterator[None]:
        """Tell activations (kept by autograd for backward) and gradients from what is temporary."""
        with ExitStack() as stack:
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(self._save, lambda kept: kept))
            for each in model.parameters():
                if each.requires_grad and each.is_leaf:
                    stack.callback(each.register_post_accumulate_grad_hook(self._accumulated).remove)
            stack.enter_context(self)
            yield

    def _save(self, tensor: Tensor) -> Tensor:
        block = self.enter(tensor)
        if block.purpose == TEMPORARY:
            block.purpose = "activations"
            self.saved.append(block)
        return tensor

    def _accumulated(self, parameter: Tensor) -> None:
        if parameter.grad is not None:
            self.enter(parameter.grad, "gradients")
