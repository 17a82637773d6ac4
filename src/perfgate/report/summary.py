"""One benchmark in a line, and in a handful of figures."""

from __future__ import annotations

import statistics

from perfgate.report import numbers
from perfgate.results.record import Record
from perfgate.verdict.expectation import speedup_of


def one_line(record: Record, *, smoke: bool) -> str:
    """What ``pytest -v`` shows instead of PASSED."""
    if smoke:
        return "CHECKED"
    speedup, time = speedup_of(record), record.measurement("wall_seconds")
    median = numbers.seconds(statistics.median(time.values)) if time else numbers.UNKNOWN
    return f"{numbers.factor(speedup)} {median}" if speedup else median


def figures(record: Record) -> dict[str, float]:
    """For pytest-benchmark's ``extra_info``: throughput, speedup, peak memory."""
    result: dict[str, float] = {}
    time, peak, speedup = record.measurement("wall_seconds"), record.measurement("peak_bytes"), speedup_of(record)
    if time:
        result["samples_per_second"] = record.samples_per_round / statistics.median(time.values)
    if speedup:
        result["speedup"] = speedup.value
    if peak:
        result["peak_bytes"] = peak.values[0]
    return result
