"""One number per run and metric, comparable between runs: the log median, less what the canary saw of the machine."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterator, Sequence

from perfgate.results.record import Process, Record, Run
from perfgate.verdict.changepoints import change_points
from perfgate.verdict.noisy import Question, problem_with
from perfgate.verdict.verdicts import ACCEPTED

ENOUGH_RUNS = 10
NEW_LEVEL = {"faster", ACCEPTED}
"""Verdicts after which older values are another level's."""


def level(history: Sequence[tuple[Record, Run]]) -> Iterator[tuple[Record, Run]]:
    """The records of the present level, newest first: back to the last one that changed it, with one identity."""
    identity = history[0][0].identity if history else ""
    for record, run in history:
        if record.identity != identity:
            return
        yield record, run
        if record.verdict in NEW_LEVEL:
            return


def best_level(values: Sequence[float]) -> list[float]:
    """The newest level of a metric's values (newest first, above is worse) that is not a change for the worse.

    A change for the better is the new normal at once; one for the worse is not, or a regression that every single run
    was too noisy to prove would become it. Accepting does that.
    """
    series = list(values[::-1])
    points = change_points(series)
    while points:
        cut = points.pop()
        before = series[points[-1] if points else 0 : cut]
        if statistics.fmean(series[cut:]) < statistics.fmean(before):
            series = series[cut:]
            break
        series = series[:cut]
    return series[::-1]


def log_value(dated: tuple[Record, Run], question: Question, parts: frozenset[str]) -> float | None:
    """The mean over processes of the metric's log median, above 0 where worse; ``None`` where it was not measured.

    Of a time, what ``parts`` of the canary took in the same process is subtracted, so that a machine that was slow as
    a whole does not look like a regression. A speedup needs none: it is a ratio within one process.
    """
    record, run = dated
    found = record.measurement(question.metric)
    if found is None or problem_with(record, question.metric):
        return None
    sign = -1.0 if question.better == "higher" else 1.0
    medians = []
    for number, samples in enumerate(found.samples):
        if samples:
            timed = found.kind == "sampled" and bool(parts)
            speed = canary_log(run.processes[number], parts) if timed else 0.0
            medians.append(math.log(statistics.median(samples)) - speed)
    return sign * statistics.fmean(medians)


def canary_parts(runs: Sequence[Run]) -> frozenset[str]:
    """Parts of the canary that every process of every run has read; none where one has no reading at all.

    Only what all have in common can be taken off: a part more on one side would look like a change.
    """
    readings = [
        {part for part, seconds in process.canary.items() if seconds > 0} for run in runs for process in run.processes
    ]
    complete = readings and all(run.processes for run in runs)
    return frozenset(set.intersection(*readings)) if complete else frozenset()


def canary_helps(runs: Sequence[Run]) -> bool:
    """Whether runs agree better with the canary's reading taken off than as they are.

    A canary of a few hundred milliseconds has noise of its own. On some machines that is less than the machine's drift,
    on others it is more; ten runs can tell, fewer cannot, and then nothing is taken off.
    """
    parts = canary_parts(runs)
    if len(runs) < ENOUGH_RUNS or not parts:
        return False
    speeds = [statistics.fmean(canary_log(process, parts) for process in run.processes) for run in runs]
    times: dict[str, dict[int, float]] = {}
    for number, run in enumerate(runs):
        for record in run.records:
            found = record.measurement("wall_seconds")
            if found and not problem_with(record, found.metric):
                times.setdefault(record.id, {})[number] = math.log(statistics.median(found.values))
    whole = [list(each.values()) for each in times.values() if len(each) == len(runs)]
    if not whole:
        return False
    drift = [statistics.fmean(column) for column in zip(*whole, strict=True)]
    left = [time - speed for time, speed in zip(drift, speeds, strict=True)]
    return statistics.variance(left) < statistics.variance(drift)


def canary_log(process: Process, parts: Collection[str]) -> float:
    """Mean log seconds of those parts of the canary."""
    return statistics.fmean(math.log(process.canary[part]) for part in parts)
