"""The memory of a training step: what it is for, and whether the parts add up to the peak that was measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from workloads.analysis.counting import counted_run
from workloads.analysis.ledger import TEMPORARY, Block, Ledger
from workloads.steps import TrainStep
from workloads.timing import synchronize

PURPOSES = ("parameters", "gradients", "optimizer state", "batch", "activations", TEMPORARY)


@dataclass(frozen=True, kw_only=True)
class MemoryShare:
    """One purpose."""

    purpose: str
    whole_bytes: int | None
    """All of it that a step ever holds; ``None`` for temporary tensors, which come and go."""
    at_peak_bytes: int
    """What of it is alive when most memory is held."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The split, beside the peak that the allocator reports."""

    shares: tuple[MemoryShare, ...]
    measured_peak_bytes: int

    @property
    def seen_peak_bytes(self) -> int:
        """The sum of the shares at the peak."""
        return sum(each.at_peak_bytes for each in self.shares)

    @property
    def workspace_bytes(self) -> int:
        """What operators take inside themselves: the measured peak less the sum. Negative where the sum is too high."""
        return self.measured_peak_bytes - self.seen_peak_bytes

    @property
    def agreement(self) -> float:
        """The sum as a share of the measured peak."""
        return self.seen_peak_bytes / self.measured_peak_bytes

    def __getitem__(self, purpose: str) -> MemoryShare:
        """The share of one purpose."""
        return next(each for each in self.shares if each.purpose == purpose)


def resident_bytes(step: TrainStep) -> int:
    """Bytes of the distinct storages that stay between steps, on the step's device."""
    kind = step.parts.device.type
    storages = [each.untyped_storage() for each in step.resident_tensors() if each.device.type == kind]
    return sum({each.data_ptr(): each.nbytes() for each in storages}.values())


def cuda_peak_bytes(step: TrainStep) -> int:
    """Resident tensors, and what the caching allocator adds to them in one run."""
    device = step.parts.device
    resident = resident_bytes(step)
    synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    step.run()
    synchronize(device)
    return resident + torch.cuda.max_memory_allocated(device) - before


def memory_of(step: TrainStep, measured_peak_bytes: int) -> Memory:
    """Follow one eager run of a built and warm step."""
    parts = step.parts
    ledger = Ledger(parts.device)
    resident = list(step.resident_tensors())
    parameters = [*parts.model.parameters(), *parts.model.buffers()]
    gradients = [each.grad for each in parameters if each.grad is not None]
    batch = [parts.inputs, parts.targets]
    ledger.enter_all(parameters, "parameters")
    ledger.enter_all(gradients, "gradients")
    ledger.enter_all(batch, "batch")
    ledger.enter_all(resident, "optimizer state")
    del gradients
    state = [each for each in resident if ledger.enter(each).purpose == "optimizer state"]
    wholes = {"parameters": parameters, "batch": batch, "optimizer state": state}
    whole = {purpose: _bytes(ledger.enter(each) for each in tensors) for purpose, tensors in wholes.items()}
    del resident, wholes, state  # a gradient that is held here could not be freed
    with ledger.following(parts.model):
        counted_run(step)
    whole["gradients"] = _bytes(ledger.enter(each) for each in _gradients(parameters))
    whole["activations"] = _bytes(ledger.saved)
    shares = (
        MemoryShare(
            purpose=purpose,
            whole_bytes=whole.get(purpose),
            at_peak_bytes=_bytes(each for each in ledger.at_peak if each.purpose == purpose),
        )
        for purpose in PURPOSES
    )
    return Memory(shares=tuple(shares), measured_peak_bytes=measured_peak_bytes)


def _gradients(parameters: Iterable[Tensor]) -> Iterable[Tensor]:
    return (each.grad for each in parameters if each.grad is not None)


def _bytes(blocks: Iterable[Block]) -> int:
    """Each block once."""
    return sum({id(each): each.size_bytes for each in blocks}.values())
