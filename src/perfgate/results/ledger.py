"""The ledger: how much each benchmark of a machine varies between processes, as ``perfgate calibrate`` found."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfgate.errors import UnreadableRun, UnsavableRun
from perfgate.results.document import loads
from perfgate.results.shape import Shape, check_shape
from perfgate.results.store import replace_file

NAME = "ledger.json"
SCHEMA = 1
ENTRY: Shape = {
    "id": str,
    "metric": str,
    "identity": str,
    "pair_deviation": float,
    "pair_degrees": int,
    "process_deviation": float,
    "process_degrees": int,
    "detectable": (float, None),
}
LEDGER: Shape = {"schema": int, "stamp": str, "soft": {"*": str}, "entries": [ENTRY]}


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
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Ledger()
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableRun(f"{file}: {error}; make a new one: perfgate calibrate") from error
    block = loads(text, str(file))
    problem = check_shape(block, LEDGER, "ledger") or _check_values(block)
    if problem:
        raise UnreadableRun(f"{file}: {problem}; make a new one: perfgate calibrate")
    known = {each.name for each in dataclasses.fields(Noise)}
    entries = [Noise(**{key: value for key, value in each.items() if key in known}) for each in block["entries"]]
    return Ledger(stamp=block["stamp"], soft=block["soft"], entries={(each.id, each.metric): each for each in entries})


def _check_values(block: Mapping[str, Any]) -> str | None:
    """What is wrong with a ledger of the right shape."""
    if block["schema"] > SCHEMA:
        return f"schema {block['schema']} was written by a newer perfgate than this (schema {SCHEMA}): update, or"
    for number, entry in enumerate(block["entries"]):
        negative = next((key for key, value in entry.items() if isinstance(value, (int, float)) and value < 0), None)
        if negative:
            return f"field ledger.entries[{number}].{negative}: no negative number expected, got {entry[negative]}"
    return None


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
