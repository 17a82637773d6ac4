"""Throughput and peak memory over batch sizes, and the size from which more samples hardly pay."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from workloads.capacity import within_memory
from workloads.memory import forget_peak, peak_bytes
from workloads.steps import Step
from workloads.timing import median_seconds
from workloads.workload import Unsuitable

if TYPE_CHECKING:
    import torch

GPU_SIZES = (16, 32, 64, 128, 256, 512)  # of the classic course experiment
CPU_SIZES = (8, 16, 32, 64, 128)  # a CPU is busy with few samples
ENOUGH = 0.95
"""Share of the best throughput at the knee: beyond it memory grows with the batch, for at most 5 % more speed."""
COLUMNS = ("batch_size", "step_seconds", "samples_per_second", "peak_bytes", "knee")


@dataclass(frozen=True, kw_only=True)
class Point:
    """One batch size."""

    batch_size: int
    step_seconds: float
    """Median of the rounds."""
    peak_bytes: int
    """CUDA's peak allocation; on a CPU the peak resident set of the process."""

    @property
    def samples_per_second(self) -> float:
        """Throughput."""
        return self.batch_size / self.step_seconds


def measure_point(step: Step, device: torch.device, budget_seconds: float) -> Point:
    """Build ``step``, time it, read its peak memory, and drop it."""
    try:
        step.build(device)
        forget_peak(device)
        seconds = median_seconds(step, device, budget_seconds)
        return Point(batch_size=step.samples, step_seconds=seconds, peak_bytes=peak_bytes(device))
    finally:
        step.release()


def sweep(
    step_of: Callable[[int], Step],
    sizes: Sequence[int],
    device: torch.device,
    *,
    budget_seconds: float = 2.0,
    progress: Callable[[Sequence[int]], Iterable[int]] = iter,
) -> list[Point]:
    """Points of the sizes in rising order, up to the first that does not fit into memory.

    Raises:
        Unsuitable: where none fits, or the step cannot be used on the device.
    """
    points: list[Point] = []
    for size in progress(sorted(set(sizes))):
        step = step_of(size)
        reason = step.unsuitable(device)
        if reason:
            raise Unsuitable(reason)
        point = within_memory(partial(measure_point, step, device, budget_seconds), device)
        if point is None:
            break
        points.append(point)
    if not points:
        raise Unsuitable(f"no batch of {min(sizes)} samples fits into the memory of the {device.type}: sweep less")
    return points


def best_batch(points: Sequence[Point]) -> Point:
    """The smallest batch that reaches 95 % of the best throughput."""
    enough = ENOUGH * max(point.samples_per_second for point in points)
    return min((each for each in points if each.samples_per_second >= enough), key=lambda each: each.batch_size)


def knee(points: Sequence[Point]) -> Point | None:
    """The best batch; ``None`` where it is the largest that was measured: throughput may still rise beyond it."""
    chosen = best_batch(points)
    return None if chosen is max(points, key=lambda each: each.batch_size) else chosen


def knee_or_not(points: Sequence[Point]) -> str:
    """What to say of it: ``knee at 64``, or ``still rising at 512``."""
    chosen = knee(points)
    if len(points) == 1:
        return "one size alone tells no knee"
    return f"knee at {chosen.batch_size}" if chosen else f"still rising at {best_batch(points).batch_size}"


def write_csv(points: Sequence[Point], file: Path) -> None:
    """One line per batch size, the knee, if there is one, marked with 1."""
    chosen = knee(points)
    with file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        for each in points:
            seconds, rate = f"{each.step_seconds:.6g}", f"{each.samples_per_second:.6g}"
            writer.writerow([each.batch_size, seconds, rate, each.peak_bytes, int(each is chosen)])
