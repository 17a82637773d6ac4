"""One number per run and metric, comparable between runs: the log median, less what the canary saw of the machine."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from perfgate.results.record import Process, Record, Run
from perfgate.verdict.noisy import Question, problem_with

NEW_LEVEL = {"faster", "accepted"}
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


def log_value(dated: tuple[Record, Run], question: Question) -> float | None:
    """The mean over processes of the metric's log median, above 0 where worse; ``None`` where it was not measured.

    Of a time, what the canary took in the same process is subtracted, so that a machine that was slow as a whole does
    not look like a regression. A speedup needs none: it is a ratio within one process.
    """
    record, run = dated
    found = record.measurement(question.metric)
    if found is None or problem_with(record, found):
        return None
    sign = -1.0 if question.better == "higher" else 1.0
    medians = []
    for number, samples in enumerate(found.samples):
        if samples:
            process = run.processes[number] if number < len(run.processes) else None
            speed = canary_log(process) if found.kind == "sampled" else 0.0
            medians.append(math.log(statistics.median(samples)) - speed)
    return sign * statistics.fmean(medians)


def canary_log(process: Process | None) -> float:
    """Mean log seconds of the canary's parts; 0 where there is no reading."""
    readings = [value for value in process.canary.values() if value > 0] if process else []
    return statistics.fmean(map(math.log, readings)) if readings else 0.0
