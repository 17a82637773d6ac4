"""How long one batch takes from the samples to the device."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from workloads.steps.loader import delivered, new_loader, whole_batches
from workloads.timing import synchronize
from workloads.workload import Optimization, Parts, Unsuitable, Workload

if TYPE_CHECKING:
    import torch
    from torch.utils.data import DataLoader

BATCHES = 8  # of one pass over the loader, or fewer where there are fewer
ROUNDS = 3


def seconds_per_batch(
    workload: Workload, optimizations: tuple[Optimization, ...], device: torch.device
) -> tuple[float, ...]:
    """Seconds per batch of a few passes through a loader, the first batch of each not counted.

    The first batch starts the workers. A loader without workers makes batches only when asked; one with workers
    delivers them in bursts, so that only the mean over a pass says how fast they come.

    Raises:
        Unsuitable: where a technique cannot be used for loading, or the workload has no batch of samples.
    """
    step = workload.loading_step(*optimizations)
    reason = step.unsuitable(device)
    if reason:
        raise Unsuitable(f"{step}: {reason}")
    parts = step.new_parts(device)
    loader = new_loader(workload, parts, batches=min(BATCHES, whole_batches(workload)))
    return tuple(_pass(parts, loader) for _ in range(ROUNDS))


def _pass(parts: Parts, loader: DataLoader[Any]) -> float:
    """Mean seconds of the batches after the first; of the first where there is only one."""
    started = time.perf_counter()
    batches = delivered(parts, loader)
    next(batches)
    synchronize(parts.device)
    first = time.perf_counter() - started
    started = time.perf_counter()
    count = sum(1 for _ in batches)
    synchronize(parts.device)
    return (time.perf_counter() - started) / count if count else first
