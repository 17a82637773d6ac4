"""The classic course experiment: from one CPU thread to a GPU with AMP at its best batch, in five steps.

| | setup |
|---|---|
| 1 | CPU, one thread |
| 2 | CPU, all threads, loader workers |
| 3 | GPU, float32 |
| 4 | GPU, AMP, over batch sizes |
| 5 | GPU, AMP, at the best of them |
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from workloads.capacity import within_memory
from workloads.cores import usable_cores
from workloads.optimizations.amp import AMP
from workloads.optimizations.dataloading import NonBlocking, PersistentWorkers, PinMemory, Workers
from workloads.optimizations.threads import Threads
from workloads.sweep import Point, best_batch, knee_or_not
from workloads.training import Epoch
from workloads.workload import Optimization, Unsuitable, Workload

MOST_WORKERS = 4  # more have hardly anything to do for images that lie in memory
PRECISION = AMP("float16")  # with a GradScaler, as in the course
NO_GPU = "no GPU"
GPU_SETUPS = ("GPU, float32", "GPU, AMP, batch sizes", "GPU, AMP, best batch")  # experiments 3, 4 and 5

Train = Callable[[Workload, tuple[Optimization, ...], torch.device, str], Epoch]
"""Trains and gives the last epoch; the text describes it to whoever watches."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One row of the table; ``None`` is what the experiment does not tell."""

    experiment: int
    setup: str
    batch_size: int | None = None
    epoch_seconds: float | None = None
    """Training part of the last epoch."""
    samples_per_second: float | None = None
    accuracy: float | None = None
    """Share of the test samples that are right after the last epoch."""
    peak_bytes: int | None = None
    """CUDA's peak allocation; on a CPU the peak resident set of the process."""
    speedup: float | None = None
    """Throughput over that of the first experiment."""
    note: str = ""
    """Why there are no figures, or what they are of."""


def cpu_experiments(workload: Workload, train: Train) -> list[Result]:
    """Experiments 1 and 2."""
    cores = usable_cores()
    workers = min(MOST_WORKERS, cores)
    device = torch.device("cpu")
    loaders = (Workers(workers), PersistentWorkers())
    setups = {
        "CPU, 1 thread": (Threads(1),),
        f"CPU, {cores} threads, {workers} workers": (Threads(cores), *loaders),
    }
    return [
        trained(number, setup, workload, stack, device, train)
        for number, (setup, stack) in enumerate(setups.items(), start=1)
    ]


def gpu_experiments(
    workload: Workload, train: Train, swept: Callable[[tuple[Optimization, ...]], Sequence[Point]]
) -> tuple[list[Result], Sequence[Point]]:
    """Experiments 3, 4 and 5, and the points of the fourth. ``swept`` measures the steps of a stack."""
    device = torch.device("cuda")
    loaders = (Workers(min(MOST_WORKERS, usable_cores())), PersistentWorkers(), PinMemory(), NonBlocking())
    plain = trained(3, GPU_SETUPS[0], workload, loaders, device, train)
    try:
        points = swept((PRECISION,))
    except Unsuitable as error:
        return [plain, *without_gpu(str(error))[1:]], []
    best = dataclasses.replace(workload, batch_size=best_batch(points).batch_size)
    return [
        plain,
        of_sweep(4, GPU_SETUPS[1], points),
        trained(5, GPU_SETUPS[2], best, (*loaders, PRECISION), device, train),
    ], points


def without_gpu(note: str = NO_GPU) -> list[Result]:
    """Experiments 3, 4 and 5 where they cannot be made."""
    return [Result(experiment=number, setup=setup, note=note) for number, setup in enumerate(GPU_SETUPS, start=3)]


def trained(
    experiment: int,
    setup: str,
    workload: Workload,
    optimizations: tuple[Optimization, ...],
    device: torch.device,
    train: Train,
) -> Result:
    """A real training; one that is impossible, or does not fit into memory, is a row that says so."""
    row = Result(experiment=experiment, setup=setup, batch_size=workload.batch_size)
    try:
        epoch = within_memory(lambda: train(workload, optimizations, device, setup), device)
    except Unsuitable as error:
        return dataclasses.replace(row, note=str(error))
    if epoch is None:
        return dataclasses.replace(row, note="out of memory")
    return dataclasses.replace(
        row,
        epoch_seconds=epoch.seconds,
        samples_per_second=epoch.samples_per_second,
        accuracy=epoch.accuracy,
        peak_bytes=epoch.peak_bytes,
    )


def of_sweep(experiment: int, setup: str, points: Sequence[Point]) -> Result:
    """The best batch of a sweep as a row; its figures are of training steps without a loader."""
    chosen = best_batch(points)
    return Result(
        experiment=experiment,
        setup=setup,
        batch_size=chosen.batch_size,
        samples_per_second=chosen.samples_per_second,
        peak_bytes=chosen.peak_bytes,
        note=f"{knee_or_not(points)}, of {points[0].batch_size} to {points[-1].batch_size}; steps without loader",
    )


def with_speedups(results: Sequence[Result]) -> list[Result]:
    """The same with each throughput over that of the first."""
    base = results[0].samples_per_second
    return [
        dataclasses.replace(each, speedup=each.samples_per_second / base if each.samples_per_second and base else None)
        for each in results
    ]


def write_csv(results: Sequence[Result], file: Path) -> None:
    """One line per experiment; what is not known is empty."""
    columns = [each.name for each in dataclasses.fields(Result)]
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(columns)
        for each in results:
            values = (getattr(each, column) for column in columns)
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in values])
