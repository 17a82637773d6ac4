"""Measure candidates again, in fresh processes, before they are called slower."""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from perfgate.pairs.schedule import take_turns
from perfgate.pairs.side import Launch, Side
from perfgate.results.record import Measurement, Process, Record, Run
from perfgate.shares import VARIABLE, WORKERS, Share

FRESH_PROCESSES = 5
"""One process is one draw of the noise between processes; five alarm less and find more than three.

See ``python -m perfgate.verdict.power``.
"""
LIMIT_SECONDS = 900.0  # for one benchmark: longer than any compiles
STOCK_OPTIONS = ("min_time", "max_time", "min_rounds", "calibration_precision", "warmup", "warmup_iterations")
KNOWN_FAMILIES = ("--benchmark-", "--perfgate-", "--junit", "--cov", "--html")
KNOWN_OPTIONS = [
    "--basetemp",
    "--cache-clear",
    "--cache-show",
    "--capture",
    "--co",
    "--code-highlight",
    "--collect-only",
    "--collectonly",
    "--color",
    "--debug",
    "--deselect",
    "--disable-warnings",
    "--disable-pytest-warnings",
    "--dist",
    "--durations",
    "--durations-min",
    "--exitfirst",
    "--failed-first",
    "--ff",
    "--fixtures",
    "--full-trace",
    "--ignore",
    "--ignore-glob",
    "--last-failed",
    "--lf",
    "--maxfail",
    "--maxprocesses",
    "--new-first",
    "--nf",
    "--no-header",
    "--no-summary",
    "--numprocesses",
    "--override-ini",
    "--pdb",
    "--pdbcls",
    "--quiet",
    "--report-log",
    "--rootdir",
    "--setup-show",
    "--show-capture",
    "--showlocals",
    "--stepwise",
    "--sw",
    "--tb",
    "--trace",
    "--tx",
    "--verbose",
    "--verbosity",
]
"""Options that are passed on by themselves, or change nothing that is measured."""
UNWANTED_VARIABLES = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")  # the session's options are passed on by name


def command(option: Any, root: Path, files: Collection[str], given: Sequence[str] = ()) -> list[str]:
    """A pytest on ``files`` with those of the session's options that decide what a benchmark measures.

    ``option`` holds the parsed ones, ``given`` the words of the command line, for options that only the project knows.
    """
    words = [sys.executable, "-m", "pytest", *sorted(files), "-q", f"--rootdir={root}", "-p", "no:cacheprovider"]
    words += ["--perfgate-describe", "--continue-on-collection-errors", f"--perfgate-device={option.perfgate_device}"]
    if option.inifilename:
        words += ["-c", str(Path(option.inifilename).absolute())]
    if option.perfgate_data:
        words.append(f"--perfgate-data={option.perfgate_data.absolute()}")
    words += _stock_options(option)
    if getattr(option, "numprocesses", None) is not None:
        words.append("-n0")  # also where the project's own options distribute
    for plugin in option.plugins:
        words += ["-p", plugin]
    for override in option.override_ini or ():
        words += ["-o", override]
    return [*words, *_of_the_project(given, getattr(option, "file_or_dir", None) or [])]


def _of_the_project(given: Sequence[str], paths: Sequence[str]) -> Iterator[str]:
    """Words of the command line that are neither paths nor options of pytest, pytest-benchmark or this plugin."""
    passing = False
    for word in given:
        if word.startswith("-"):
            name = word.partition("=")[0]
            passing = name.startswith("--") and name not in KNOWN_OPTIONS and not name.startswith(KNOWN_FAMILIES)
        elif word in paths:
            continue
        if passing:
            yield word


def _stock_options(option: Any) -> Iterator[str]:
    """Those that decide how pytest-benchmark's own fixture measures."""
    for name in STOCK_OPTIONS:
        value = getattr(option, f"benchmark_{name}", None)
        if value is not None:
            text = "on" if value is True else "off" if value is False else getattr(value, "as_string", value)
            yield f"--benchmark-{name.replace('_', '-')}={text}"
    if getattr(option, "benchmark_disable_gc", False):
        yield "--benchmark-disable-gc"


def measure_again(
    words: Sequence[str],
    root: Path,
    names: Collection[str],
    run: Run,
    say: Callable[[str], None],
    share: Share | None = None,
) -> tuple[list[Run], list[str]]:
    """``names`` measured in fresh processes: a run for each, with their records only; and what went wrong.

    ``words`` is the command, ``run`` the run that is checked, ``say`` shows progress. ``share`` is the part of the
    machine that each worker of that run had: then as many processes measure side by side again, or what was measured
    beside others would be compared with what was measured alone.
    """
    together = share.count if share else 1
    rounds = -(-FRESH_PROCESSES // together)
    runs: list[Run] = []
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="perfgate-") as folder, ThreadPoolExecutor(together) as pool:
        for number in range(1, rounds + 1):
            what = "a fresh process" if together == 1 else f"{together} fresh processes side by side"
            say(f"measuring {len(names)} again in {what} ({number} of {rounds})")
            launches = [
                Launch(
                    name="the fresh process",
                    command=words,
                    folder=root,
                    environment=_environment(Share(place, together)),
                    log=Path(folder) / f"{number}-{place}.log",
                    limit_seconds=LIMIT_SECONDS,
                )
                for place in range(together)
            ]
            for side in pool.map(lambda launch: _measure(launch, names), launches):
                problems += _problems(side)
                if side.records and side.about:
                    process = Process(**side.about["process"])
                    runs.append(dataclasses.replace(run, processes=(process,), records=tuple(side.records.values())))
    return runs, list(dict.fromkeys(problems))


def _environment(share: Share) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key not in UNWANTED_VARIABLES}
    return environment | ({VARIABLE: str(share), WORKERS: str(share.count)} if share.count > 1 else {})


def _measure(launch: Launch, names: Collection[str]) -> Side:
    with Side(launch) as side:
        if not side.death:
            take_turns([side], sorted(names), lambda _: None)
    return side


def _problems(side: Side) -> Iterator[str]:
    """What went wrong in a process."""
    if side.death:
        yield side.death.reason
    yield from (f"{name}: {each['reason']}" for name, each in side.outcomes.items() if each["word"] != "skipped")
    if side.records and not side.about:
        yield "a fresh process did not tell about itself"


def with_fresh(run: Run, fresh: Sequence[Run]) -> Run:
    """The run with the fresh processes' samples beside its own: one tuple per process, empty where not measured."""
    again = [{record.id: record for record in each.records} for each in fresh]
    if not any(again):
        return run
    records = tuple(_merged(record, [each.get(record.id) for each in again]) for record in run.records)
    processes = (*run.processes, *(process for each in fresh for process in each.processes))
    return dataclasses.replace(run, records=records, processes=processes)


def _merged(record: Record, again: Sequence[Record | None]) -> Record:
    if not any(again):
        return record
    measurements = tuple(_with_samples(each, again) for each in record.measurements)
    return dataclasses.replace(record, measurements=measurements)


def _with_samples(measurement: Measurement, again: Sequence[Record | None]) -> Measurement:
    if measurement.kind == "counted" or not measurement.samples:
        return measurement
    found = [each.measurement(measurement.metric) if each else None for each in again]
    return dataclasses.replace(
        measurement, samples=(*measurement.samples, *(each.samples[0] if each else () for each in found))
    )
