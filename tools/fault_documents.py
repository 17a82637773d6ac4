"""A run of 60 benchmarks as it is saved, for the tools that break saving: about as large as a real one."""

from __future__ import annotations

import random
import statistics
from typing import Any

from perfgate.results.record import Machine, Measurement, Process, Record, Run
from perfgate.results.thinning import stock_statistics

BENCHMARKS = 60
ROUNDS = 11  # of each, which makes about 94 KB
SEED = 7


def example(label: str = "") -> tuple[Run, dict[str, Any]]:
    """A run, and pytest-benchmark's document of the same benchmarks with all raw data."""
    generator = random.Random(SEED)  # noqa: S311 - times, not secrets
    names = [f"benches/test_evidence.py::test_step[case-{number}]" for number in range(BENCHMARKS)]
    times = {name: [generator.lognormvariate(-4.6, 0.02) for _ in range(ROUNDS)] for name in names}
    run = Run(
        machine=Machine(slug="evidence-2c", hard={"cpu": "evidence", "cores": "2"}, soft={"python": "3"}),
        commit={"id": "a" * 40, "branch": "main", "dirty": "no"},
        stamp="20260101T000000000Z",
        status="complete",
        scope={"args": [], "deselected": 0, "full": True},
        processes=(Process(started="", threads=1, canary={}, tunables={}, subject={}, readings={}),),
        records=tuple(_record(name, values) for name, values in times.items()),
        label=label,
    )
    benchmarks = [_benchmark(name, values) for name, values in times.items()]
    return run, {"machine_info": {}, "commit_info": {}, "benchmarks": benchmarks, "datetime": "", "version": "5"}


def _record(name: str, values: list[float]) -> Record:
    wall = Measurement(metric="wall_seconds", unit="s", better="lower", kind="sampled", samples=(tuple(values),))
    counts = [
        Measurement(metric=metric, unit="count", better="lower", kind="counted", samples=((3,),))
        for metric in ("operators", "scalar_reads", "allocations")
    ]
    return Record(id=name, group="evidence", identity="0" * 12, step=name, measurements=(wall, *counts))


def _benchmark(name: str, values: list[float]) -> dict[str, Any]:
    ends = {"min": min(values), "max": max(values), "median": statistics.median(values)}
    stats = {**stock_statistics(values), **ends, "data": values, "iterations": 1}
    return {"group": "evidence", "name": name, "fullname": name, "params": None, "extra_info": {}, "stats": stats}
