"""A run as the JSON document of a results file: pytest-benchmark's own, plus one ``perfgate`` block."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from perfgate.errors import NotARun, WrongField
from perfgate.results.consistency import check_processes, check_stock, check_unique
from perfgate.results.migrations import migrated
from perfgate.results.reader import loads
from perfgate.results.record import MACHINE_NAME, SCHEMA, Machine, Measurement, Process, Record, Run
from perfgate.results.shape import Above, AtLeast, Shape, Written, check_shape

T = TypeVar("T")

TEXTS: Shape = {"*": str}
STAMP = Written(re.compile(r"\d{8}T\d{9}Z", re.ASCII), "UTC time such as 20260101T000000000Z")
COMMIT = Written(re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}|unknown"), "40 or 64 hex digits or unknown")
MEASUREMENT: Shape = {
    "metric": str,
    "unit": str,
    "better": ("lower", "higher", "neither"),
    "kind": ("sampled", "paired", "counted"),
    "samples": [[float]],
    "table": {"*": AtLeast(int, 0)},
    "note": (str, None),
}
RECORD: Shape = {
    "id": str,
    "group": str,
    "identity": str,
    "step": str,
    "measurements": [MEASUREMENT],
    "samples_per_round": AtLeast(int, 1),
    "expected": ("faster", "same", "slower", "any"),
    "evidence": TEXTS,
    "flags": [str],
    "verdict": str,
    "seconds": AtLeast(float, 0),
}
BLOCK: Shape = {
    "schema": int,
    "machine": {
        "slug": Written(MACHINE_NAME, "a machine's name of letters, digits, '.', '_', '-'"),
        "hard": TEXTS,
        "soft": TEXTS,
    },
    "commit": {"id": COMMIT, "branch": str, "dirty": ("yes", "no", "unknown")},
    "stamp": STAMP,
    "status": ("complete", "interrupted"),
    "scope": {"args": [str], "deselected": AtLeast(int, 0), "full": bool},
    "processes": [
        {
            "started": str,
            "threads": AtLeast(int, 0),
            "canary": {"*": AtLeast(float, 0)},
            "tunables": TEXTS,
            "subject": TEXTS,
            "readings": TEXTS,
        }
    ],
    "records": [RECORD],
    "label": str,
}
DIFFERENCES = {"compile_seconds"}  # the first call less a steady round, which noise may take below 0
ABOVE_ZERO, NOT_NEGATIVE = [[Above(float, 0)]], [[AtLeast(float, 0)]]


def to_document(run: Run, stock: Mapping[str, Any]) -> dict[str, Any]:
    """``stock`` (pytest-benchmark's document) with the run as its ``perfgate`` block."""
    block = {"schema": SCHEMA, **dataclasses.asdict(run)}
    del block["source"], block["digest"]
    return {**stock, "perfgate": block}


def dumps(document: Mapping[str, Any]) -> bytes:
    """ASCII JSON that ends in a newline.

    Raises:
        ValueError: for NaN and infinities, which JSON does not have.
    """
    return (json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=str) + "\n").encode(
        "ascii"
    )


def parse(text: str, source: str) -> Run:
    """The run in a results file's text.

    Raises:
        UnreadableRun: one of the kinds below it, naming the field that is wrong, where anything at all is.
    """
    return run_of(loads(text, source), source)


def run_of(document: Any, source: str) -> Run:
    """The run in a results file's document, as :func:`~perfgate.results.reader.loads` gives it.

    Raises:
        UnreadableRun: one of the kinds below it, naming the field that is wrong, where anything at all is.
    """
    if not isinstance(document, dict) or not isinstance(document.get("perfgate"), dict):
        raise NotARun(f"{source}: no 'perfgate' block: not a run that perfgate saved; move it out of this folder")
    block = migrated(document["perfgate"], source)
    _refuse(check_shape(block, BLOCK, "perfgate"), source)
    for number, record in enumerate(block["records"]):
        _refuse(_check_values(record, f"perfgate.records[{number}]"), source)
    check_unique([record["id"] for record in block["records"]], "perfgate.records", source)
    check_processes(block, source)
    check_stock(document.get("benchmarks"), source)
    return _to_run(block, source)


def parse_record(block: Any, source: str) -> Record:
    """One record, as a measuring process sends it.

    Raises:
        WrongField: naming the field that is wrong.
    """
    _refuse(check_shape(block, RECORD, "record") or _check_values(block, "record"), source)
    return _to_record(block)


def _refuse(problem: str | None, source: str) -> None:
    if problem:
        raise WrongField(f"{source}: {problem}; restore the file from git, or measure again")


def _check_values(record: Mapping[str, Any], where: str) -> str | None:
    """What is wrong with the samples of a record of the right shape: their ranges follow from what they are of."""
    for number, each in enumerate(record["measurements"]):
        place = f"{where}.measurements[{number}].samples"
        if each["kind"] == "counted":
            problem = check_shape(each["samples"], NOT_NEGATIVE, place)
        elif each["kind"] == "paired" or each["better"] != "neither" or _is_time(each):
            problem = check_shape(each["samples"], ABOVE_ZERO, place)  # their logs are compared
        else:
            problem = None
        if problem:
            return f"{problem} ({each['metric']} of {record['id']!r:.200})"
    return None


def _is_time(measurement: Mapping[str, Any]) -> bool:
    return measurement["unit"] == "s" and measurement["metric"] not in DIFFERENCES


def _to_run(block: dict[str, Any], source: str) -> Run:
    return Run(
        machine=_make(Machine, block["machine"]),
        commit=block["commit"],
        stamp=block["stamp"],
        status=block["status"],
        scope=block["scope"],
        processes=tuple(_make(Process, each) for each in block["processes"]),
        records=tuple(_to_record(each) for each in block["records"]),
        label=block["label"],
        source=source,
    )


def _to_record(block: dict[str, Any]) -> Record:
    measurements = tuple(
        _make(Measurement, {**each, "samples": tuple(tuple(process) for process in each["samples"])})
        for each in block["measurements"]
    )
    return _make(Record, {**block, "measurements": measurements, "flags": tuple(block["flags"])})


def _make(cls: type[T], block: dict[str, Any]) -> T:
    """An instance from the fields it knows; fields of a later minor version are ignored."""
    known = {each.name for each in dataclasses.fields(cls)}  # type: ignore[arg-type]
    return cls(**{key: value for key, value in block.items() if key in known})
