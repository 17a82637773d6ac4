"""How a step grows with the batch and with the model's width."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from workloads.analysis.clock import rounds_of
from workloads.analysis.counting import prepare
from workloads.analysis.traffic import work_of
from workloads.steps import TrainStep
from workloads.workload import Optimization, Unsuitable, Workload

if TYPE_CHECKING:
    import torch

FACTORS = (0.5, 2.0)
"""Beside the size itself: what is doubled and halved shows whether time follows the work."""
FIELDS = ("batch_size", "width")


@dataclass(frozen=True, kw_only=True)
class ScalePoint:
    """One size of a workload."""

    field: str
    """The field of the workload that was changed."""
    value: int
    flops: int
    """Of a training step."""
    seconds: tuple[float, ...]
    """Of each round; empty where this size could not run."""
    samples: int
    reason: str | None = None
    """Why it could not run."""

    @property
    def samples_per_second(self) -> float | None:
        """At the median round; ``None`` where it could not run."""
        return self.samples / median(self.seconds) if self.seconds else None


def scales_by(workload: Workload) -> tuple[str, ...]:
    """Fields by which the workload can be scaled."""
    known = {each.name for each in dataclasses.fields(workload)}
    return tuple(each for each in FIELDS if each in known)


def scaled(
    workload: Workload,
    optimizations: tuple[Optimization, ...],
    device: torch.device,
    *,
    rounds: int,
    factors: Iterable[float] = FACTORS,
) -> Iterator[ScalePoint]:
    """The step at so many times each of its sizes, one after another."""
    for field in scales_by(workload):
        for factor in factors:
            value = int(getattr(workload, field) * factor)
            if value >= 1:
                yield _point(workload, optimizations, device, field, value, rounds)


def _point(
    workload: Workload,
    optimizations: tuple[Optimization, ...],
    device: torch.device,
    field: str,
    value: int,
    rounds: int,
) -> ScalePoint:
    flops, reason = 0, None
    seconds: tuple[float, ...] = ()
    change: dict[str, Any] = {field: value}
    try:
        step = TrainStep(dataclasses.replace(workload, **change), optimizations)
        try:
            prepare(step, device)
            with step.active():
                flops = work_of(step).total_flops
                seconds = rounds_of(step.run, device, rounds)
        finally:
            step.release()
    except Unsuitable as error:
        reason = str(error)
    samples = value if field == "batch_size" else workload.batch_size
    return ScalePoint(field=field, value=value, flops=flops, seconds=seconds, samples=samples, reason=reason)
