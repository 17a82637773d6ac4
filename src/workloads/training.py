"""Real training with the same parts that are benchmarked: loader, steps, schedule, accuracy per epoch."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader

from workloads.workload import Optimization, Parts, Unsuitable, Workload, in_order

WEIGHT_DECAY = 5e-4  # as usual for CIFAR-10 (He et al. 2015)
Progress = Callable[[Iterable[Any], int, str], Iterable[Any]]
"""Wraps an iterable of a known length, with a description, and shows how far it is."""


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """What one epoch achieved."""

    number: int
    loss: float
    """Mean training loss per sample."""
    accuracy: float
    """Share of the test samples that are right."""
    seconds: float
    """Of the training part."""
    samples_per_second: float
    peak_bytes: int
    """CUDA's peak allocation; on a CPU the process's peak resident set so far."""


def train(
    workload: Workload,
    optimizations: tuple[Optimization, ...],
    *,
    device: torch.device,
    epochs: int,
    learning_rate: float,
    progress: Progress,
) -> Iterator[Epoch]:
    """Train with SGD, momentum and a one-cycle schedule, yielding after every epoch.

    Raises:
        Unsuitable: where an optimization cannot be used for this workload on this device, or the loss is not finite.
    """
    for each in optimizations:
        reason = each.unsuitable(workload, device)
        if reason:
            raise Unsuitable(f"{each}: {reason}")
    parts = workload.parts(device, training=True)
    for each in in_order(optimizations):
        each.apply(parts)
    loader = _loader(workload, parts, train=True)
    optimizer = torch.optim.SGD(
        parts.model.parameters(), lr=learning_rate, momentum=0.9, weight_decay=WEIGHT_DECAY, **parts.optimizer_arguments
    )
    schedule = OneCycleLR(optimizer, max_lr=learning_rate, total_steps=max(1, epochs * len(loader)))
    with ExitStack() as stack:
        for each in optimizations:
            stack.enter_context(each.active())
        for number in range(1, epochs + 1):
            yield _epoch(number, workload, parts, loader, optimizer, schedule, progress)


def _loader(workload: Workload, parts: Parts, *, train: bool) -> DataLoader[tuple[Tensor, Tensor]]:
    arguments = {**parts.loader_arguments, "batch_size": workload.batch_size}
    dataset = workload.dataset(train=train)
    generator = torch.Generator().manual_seed(workload.seed)
    return DataLoader(dataset, shuffle=train, drop_last=train, generator=generator, **arguments)


def _epoch(
    number: int,
    workload: Workload,
    parts: Parts,
    loader: DataLoader[tuple[Tensor, Tensor]],
    optimizer: torch.optim.Optimizer,
    schedule: OneCycleLR,
    progress: Progress,
) -> Epoch:
    parts.model.train()
    if parts.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(parts.device)
    total = torch.zeros((), device=parts.device)
    start = time.perf_counter()
    for inputs, targets in progress(loader, len(loader), f"epoch {number}"):
        total += _step(parts, inputs, targets, optimizer)
        schedule.step()
    loss = float(total) / len(loader)  # waits for the device, so that the time is of work done
    seconds = time.perf_counter() - start
    if not loss < float("inf"):
        raise Unsuitable(f"the loss is {loss} in epoch {number}: lower --learning-rate, or leave out an optimization")
    return Epoch(
        number=number,
        loss=loss,
        accuracy=_accuracy(workload, parts),
        seconds=seconds,
        samples_per_second=len(loader) * workload.batch_size / seconds,
        peak_bytes=_peak_bytes(parts.device),
    )


def _step(parts: Parts, inputs: Tensor, targets: Tensor, optimizer: torch.optim.Optimizer) -> Tensor:
    inputs, targets = _on_device(parts, inputs), targets.to(parts.device, non_blocking=parts.non_blocking)
    optimizer.zero_grad(set_to_none=True)
    loss = parts.loss(parts.forward(inputs), targets)
    parts.backward(loss)
    parts.update(optimizer)
    return loss.detach().float()


def _on_device(parts: Parts, inputs: Tensor) -> Tensor:
    """The batch on the device, in the memory order of the benchmarked batch."""
    channels_last = parts.inputs.dim() == 4 and parts.inputs.is_contiguous(memory_format=torch.channels_last)
    order = torch.channels_last if channels_last else torch.contiguous_format
    return inputs.to(parts.device, non_blocking=parts.non_blocking, memory_format=order)


@torch.no_grad()
def _accuracy(workload: Workload, parts: Parts) -> float:
    parts.model.eval()
    loader = _loader(workload, parts, train=False)
    right = count = 0
    for inputs, targets in loader:
        right += workload.correct(parts.forward(_on_device(parts, inputs)), targets.to(parts.device))
        count += len(targets)
    return right / count


def _peak_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024  # getrusage(2): kilobytes, but bytes on macOS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
