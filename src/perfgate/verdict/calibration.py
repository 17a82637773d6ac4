"""A/A pairs of one program with itself: how much each benchmark varies, and what a gate can see with that."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from perfgate.results.ledger import Noise
from perfgate.results.record import Record
from perfgate.settings import Settings
from perfgate.verdict.noisy import Question
from perfgate.verdict.paired import Pair, series_of
from perfgate.verdict.rules import detectable

UNFIT = 2.0
"""A benchmark whose smallest detectable change is more than this many times its threshold cannot gate by time."""


@dataclass(frozen=True, kw_only=True)
class Calibrated:
    """One metric of one benchmark."""

    noise: Noise
    threshold: float

    @property
    def fit(self) -> bool:
        """Whether it can gate by time."""
        return self.noise.detectable is not None and self.noise.detectable <= UNFIT * self.threshold


def calibrate(pairs: Sequence[Pair], settings: Settings, *, first: int, fresh: int) -> list[Calibrated]:
    """The noise of each metric, from pairs of identical sides, and what stages of so many pairs would detect.

    The truth is known to be 0, so the deviation of a pair is taken about 0, and a side that is different by being first
    counts as noise.
    """
    series, _ = series_of(pairs)
    result = []
    for each in series.values():
        question, values = each.question, each.values
        threshold = settings.threshold_of(question.metric, question.group, question.id)
        deviation = math.sqrt(statistics.fmean(value**2 for value in values))
        stages = [(deviation / math.sqrt(count), float(len(values))) for count in (first, fresh)]
        alpha = settings.alpha_of(question.group, question.id)
        visible = detectable(stages[0], stages[1], threshold, alpha, 1)
        process, degrees = between_processes(pairs, question)
        noise = Noise(
            id=question.id,
            metric=question.metric,
            identity=question.identity,
            pair_deviation=deviation,
            pair_degrees=len(values),
            process_deviation=process,
            process_degrees=degrees,
            detectable=visible if math.isfinite(visible) else None,
        )
        result.append(Calibrated(noise=noise, threshold=threshold))
    return result


def bias(pairs: Sequence[Pair]) -> tuple[float, float]:
    """Mean of all log ratios, and the mean by which the side that started first was worse; both 0 in truth."""
    everything: list[float] = []
    first_minus_second: list[float] = []
    for number, pair in enumerate(pairs):
        series, _ = series_of([pair])
        values = [value for each in series.values() for value in each.values]
        everything += values
        first_minus_second += [-value if number % 2 == 0 else value for value in values]  # base was first in even pairs
    if not everything:
        return 0.0, 0.0
    return statistics.fmean(everything), statistics.fmean(first_minus_second)


def between_processes(pairs: Sequence[Pair], question: Question, *, canary: bool = False) -> tuple[float, int]:
    """Standard deviation of a process's log median and its degrees of freedom; with ``canary``, of a time less that."""
    squares, degrees = 0.0, 0
    off = canary and all("base" in pair.canaries and "head" in pair.canaries for pair in pairs)
    for side in ("base", "head"):
        records: list[tuple[Record, float]] = [
            (getattr(pair, side)[question.id], pair.canaries[side] if off else 0.0)
            for pair in pairs
            if question.id in getattr(pair, side)
        ]
        values = []
        for record, reading in records:
            found = record.measurement(question.metric)
            if found:
                speed = reading if found.kind == "sampled" else 0.0
                values.append(math.log(statistics.median(found.values)) - speed)
        if len(values) > 1:
            squares += statistics.variance(values) * (len(values) - 1)
            degrees += len(values) - 1
    return (math.sqrt(squares / degrees), degrees) if degrees else (0.0, 0)
