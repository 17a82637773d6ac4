"""The ledger: how much each benchmark of a machine varies between processes, as ``perfgate calibrate`` found."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfgate.errors import MissingFile, NewerSchema, RepeatedBenchmark, UnreadableRun, UnsavableRun, WrongField
from perfgate.results.reader import loads, read_text
from perfgate.results.shape import AtLeast, Shape, check_shape
from perfgate.results.writer import replace_file

NAME = "ledger.json"
SCHEMA = 1
ENTRY: Shape = {
    "id": str,
    "metric": str,
    "identity": str,
    "pair_deviation": AtLeast(float, 0),
    "pair_degrees": AtLeast(int, 0),
    "process_deviation": AtLeast(float, 0),
    "process_degrees": AtLeast(int, 0),
    "detectable": (AtLeast(float, 0), None),
}
LEDGER: Shape = {"schema": AtLeast(int, 1), "stamp": str, "soft": {"*": str}, "entries": [ENTRY]}


@dataclass(frozen=True, kw_only=True)
class Noise:
    """What is known of one metric of one benchmark."""

    id: str
    metric: str
    identity: str
    """Hash of the benchmark's parameters; another one is another benchmark."""
    pair_deviation: float
    """Standard deviation of the log ratio of a pair of processes whose rounds alternate."""
    pair_degrees: int
    process_deviation: float
    """Standard deviation of a process's log median."""
    process_degrees: int
    detectable: float | None
    """Smallest change, as a fraction, that ``perfgate ab`` finds four times of five; ``None`` where it finds none."""


@dataclass(frozen=True, kw_only=True)
class Ledger:
    """A machine's noise; empty where it was not calibrated."""

    stamp: str = ""
    """UTC time of the calibration; empty where there was none."""
    soft: Mapping[str, str] = field(default_factory=dict)
    """Software it was made with."""
    entries: Mapping[tuple[str, str], Noise] = field(default_factory=dict)
    """By benchmark and metric."""


def read_ledger(machine: Path) -> Ledger:
    """The ledger in a machine's folder of results; an empty one where there is none.

    Raises:
        UnreadableRun: where the file is not a ledger, with the remedy.
    """
    file = machine / NAME
    try:
        block = loads(read_text(file), str(file))
        _check(block, str(file))
    except MissingFile:
        return Ledger()
    except UnreadableRun as error:
        raise type(error)(f"{error}; or make a new one: perfgate calibrate") from error
    known = {each.name for each in dataclasses.fields(Noise)}
    entries = [Noise(**{key: value for key, value in each.items() if key in known}) for each in block["entries"]]
    return Ledger(stamp=block["stamp"], soft=block["soft"], entries={(each.id, each.metric): each for each in entries})


def _check(block: Any, source: str) -> None:
    problem = check_shape(block, LEDGER, "ledger")
    if problem:
        raise WrongField(f"{source}: {problem}")
    if block["schema"] > SCHEMA:
        raise NewerSchema(
            f"{source}: schema {block['schema']} was written by a newer perfgate than this (schema {SCHEMA}): update"
        )
    seen: set[tuple[str, str]] = set()
    for each in block["entries"]:
        key = each["id"], each["metric"]
        if key in seen:
            raise RepeatedBenchmark(f"{source}: {key[1]} of {key[0]!r:.200} appears twice: keep one")
        seen.add(key)


def write_ledger(machine: Path, ledger: Ledger) -> Path:
    """Replace the ledger in a machine's folder, atomically.

    Raises:
        UnsavableRun: where it could not be written; the old one stays.
    """
    block: dict[str, Any] = {
        "schema": SCHEMA,
        "stamp": ledger.stamp,
        "soft": dict(ledger.soft),
        "entries": [dataclasses.asdict(each) for each in ledger.entries.values()],
    }
    try:
        content = json.dumps(block, indent=1, allow_nan=False) + "\n"
    except ValueError as error:
        raise UnsavableRun(f"a noise is no finite number ({error}): the ledger was not written") from error
    return replace_file(machine / NAME, content.encode("ascii"))
