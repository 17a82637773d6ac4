"""Real training with the same parts that are benchmarked: loader, steps, schedule, accuracy per epoch."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader

from workloads.memory import forget_peak, peak_bytes
from workloads.steps.loader import conforming, loader_arguments, samples_of
from workloads.steps.train import new_optimizer
from workloads.workload import Optimization, Parts, Unsuitable, Workload, clashes, in_order

WEIGHT_DECAY = 5e-4  # as usual for CIFAR-10 (He et al. 2015)
KINDS = frozenset({"train", "load", "epoch"})  # steps of which a real epoch consists
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
    """CUDA's peak allocation in the epoch; on a CPU the process's peak resident set, so far where not on Linux."""


def train(
    workload: Workload,
    optimizations: tuple[Optimization, ...],
    *,
    device: torch.device,
    epochs: int,
    learning_rate: float,
    progress: Progress,
) -> Iterator[Epoch]:
    """Train with a one-cycle schedule, yielding after every epoch.

    Raises:
        Unsuitable: where an optimization cannot be used for this workload on this device, or the loss is not finite.
    """
    parts = prepare(workload, optimizations, device=device)
    with ExitStack() as stack:
        for each in optimizations:
            stack.enter_context(each.active())
        yield from fit(workload, parts, epochs=epochs, learning_rate=learning_rate, progress=progress)


def refusal(workload: Workload, optimizations: Iterable[Optimization], device: torch.device) -> str | None:
    """Why these cannot be used in real training; ``None`` if they can."""
    stack = tuple(optimizations)
    for each in stack:
        if not each.kinds & KINDS:
            return f"{each} is for {' and '.join(sorted(each.kinds))} steps, not for training"
        if type(each).wrap is not Optimization.wrap:
            return f"{each} replaces the whole step on one batch, so that a loader's batches would not be seen"
        reason = each.unsuitable(workload, device)
        if reason:
            return f"{each}: {reason}"
    return clashes(stack)


def prepare(
    workload: Workload,
    optimizations: tuple[Optimization, ...],
    *,
    device: torch.device,
    weights: Mapping[str, Tensor] | None = None,
) -> Parts:
    """Parts to train, with the optimizations applied; to a model with these ``weights`` where given.

    Raises:
        Unsuitable: where an optimization cannot be used for this workload on this device.
    """
    reason = refusal(workload, optimizations, device)
    if reason:
        raise Unsuitable(reason)
    parts = workload.parts(device, training=True)
    if weights is not None:
        parts.model.load_state_dict(weights)
    for each in in_order(optimizations):
        each.apply(parts)
    return parts


def fit(workload: Workload, parts: Parts, *, epochs: int, learning_rate: float, progress: Progress) -> Iterator[Epoch]:
    """Train ``parts``: SGD with momentum where no technique chose another optimizer; yields after every epoch.

    Raises:
        Unsuitable: where there are fewer samples than a batch has, or the loss is not finite.
    """
    loader = _loader(workload, parts, train=True)
    if not len(loader):
        samples = len(workload.samples(train=True))  # type: ignore[arg-type]
        raise Unsuitable(f"a batch of {workload.batch_size} is more than the {samples} training samples: take less")
    settings = {"lr": learning_rate, "weight_decay": WEIGHT_DECAY}
    momentum = {"momentum": 0.9} if parts.optimizer is torch.optim.SGD else {}
    optimizer = new_optimizer(parts, {parts.optimizer.__name__: {**settings, **momentum}})
    schedule = OneCycleLR(optimizer, max_lr=learning_rate, total_steps=max(1, epochs * len(loader)))
    for number in range(1, epochs + 1):
        yield _epoch(number, workload, parts, loader, optimizer, schedule, progress)


def _loader(workload: Workload, parts: Parts, *, train: bool) -> DataLoader[tuple[Tensor, Tensor]]:
    arguments = {**loader_arguments(parts), "batch_size": workload.batch_size}
    generator = torch.Generator().manual_seed(workload.seed)
    return DataLoader(samples_of(parts, train=train), shuffle=train, drop_last=train, generator=generator, **arguments)


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
    forget_peak(parts.device)
    total = torch.zeros((), device=parts.device)
    start = time.perf_counter()
    batches = progress(loader, len(loader), f"epoch {number}")
    for inputs, targets in parts.delivery(batches, functools.partial(_bring, parts)):
        total += _step(parts, inputs, targets, optimizer)
        schedule.step()
    loss = float(total) / len(loader)  # waits for the device, so that the time is of work done
    seconds, peak = time.perf_counter() - start, peak_bytes(parts.device)
    if not loss < float("inf"):
        raise Unsuitable(f"the loss is {loss} in epoch {number}: lower --learning-rate, or leave out an optimization")
    return Epoch(
        number=number,
        loss=loss,
        accuracy=accuracy(workload, parts),
        seconds=seconds,
        samples_per_second=len(loader) * workload.batch_size / seconds,
        peak_bytes=peak,
    )


def _step(parts: Parts, inputs: Tensor, targets: Tensor, optimizer: torch.optim.Optimizer) -> Tensor:
    parts.inputs, parts.targets = conforming(parts, inputs), targets
    optimizer.zero_grad(set_to_none=True)
    loss, _ = parts.gradients(parts)
    parts.update(optimizer)
    return loss.float()


def _bring(parts: Parts, batch: Any) -> tuple[Tensor, Tensor]:
    """A loaded batch on the device."""
    loaded, targets = batch
    return parts.arrive(parts, loaded), targets.to(parts.device, non_blocking=parts.non_blocking)


@torch.no_grad()
def accuracy(workload: Workload, parts: Parts) -> float:
    """Share of the test samples that are right."""
    parts.model.eval()
    loader = _loader(workload, parts, train=False)
    right = count = 0
    for inputs, targets in parts.delivery(loader, functools.partial(_bring, parts)):
        right += workload.correct(parts.forward(conforming(parts, inputs)), targets)
        count += len(targets)
    return right / count
