"""A run as the JSON document of a results file: pytest-benchmark's own, plus one ``perfgate`` block."""

from __future__ import annotations

import dataclasses
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from perfgate.errors import UnreadableRun
from perfgate.results.record import SCHEMA, Machine, Measurement, Process, Record, Run
from perfgate.results.shape import Shape, check_shape

T = TypeVar("T")

STATISTICS_TOLERANCE = 1e-6  # relative; stock statistics are computed from the same floats

TEXTS: Shape = {"*": str}
MEASUREMENT: Shape = {
    "metric": str,
    "unit": str,
    "better": ("lower", "higher", "neither"),
    "kind": ("sampled", "paired", "counted"),
    "samples": [[float]],
    "table": {"*": int},
    "note": (str, None),
}
RECORD: Shape = {
    "id": str,
    "group": str,
    "identity": str,
    "step": str,
    "measurements": [MEASUREMENT],
    "samples_per_round": int,
    "expected": ("faster", "same", "slower", "any"),
    "evidence": TEXTS,
    "flags": [str],
    "verdict": str,
    "seconds": float,
}
BLOCK: Shape = {
    "schema": int,
    "machine": {"slug": str, "hard": TEXTS, "soft": TEXTS},
    "commit": TEXTS,
    "stamp": str,
    "status": ("complete", "interrupted"),
    "scope": {"args": [str], "deselected": int, "full": bool},
    "processes": [
        {
            "started": str,
            "threads": int,
            "canary": {"*": float},
            "tunables": TEXTS,
            "subject": TEXTS,
            "readings": TEXTS,
        }
    ],
    "records": [RECORD],
    "label": str,
}


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
        UnreadableRun: naming the field that is wrong, where anything at all is.
    """
    document = loads(text, source)
    if not isinstance(document, dict) or not isinstance(document.get("perfgate"), dict):
        raise UnreadableRun(f"{source}: no 'perfgate' block: not a run that perfgate saved")
    block = document["perfgate"]
    if isinstance(block.get("schema"), int) and block["schema"] > SCHEMA:
        raise UnreadableRun(
            f"{source}: schema {block['schema']} was written by a newer perfgate than this (schema {SCHEMA}): update"
        )
    problem = check_shape(block, BLOCK, "perfgate")
    if problem:
        raise UnreadableRun(f"{source}: {problem}")
    _check_unique((record["id"] for record in block["records"]), source)
    _check_processes(block, source)
    check_stock(document.get("benchmarks"), source)
    return _to_run(block, source)


def parse_record(block: Any, source: str) -> Record:
    """One record, as a measuring process sends it.

    Raises:
        UnreadableRun: naming the field that is wrong.
    """
    problem = check_shape(block, RECORD, "record")
    if problem:
        raise UnreadableRun(f"{source}: {problem}")
    return _to_record(block)


def loads(text: str, source: str) -> Any:
    """Strict JSON: no duplicate keys, no NaN, no infinities.

    Raises:
        UnreadableRun: for anything else.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
            raise ValueError(f"the key {twice!r} appears twice in one object")
        return result

    def refuse(word: str) -> float:
        raise ValueError(f"{word} is not a number that JSON has")

    if text.startswith(("<<<<<<<", "version https://git-lfs")) or "\n<<<<<<< " in text:
        remedy = "run git lfs pull" if "git-lfs" in text[:40] else "resolve the merge"
        raise UnreadableRun(f"{source}: not JSON but what git left there: {remedy}")
    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_float=_finite)
    except RecursionError as error:
        raise UnreadableRun(f"{source}: nested too deeply") from error
    except ValueError as error:
        raise UnreadableRun(f"{source}: not valid JSON: {error}") from error


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits} is not finite")
    return value


def _check_processes(block: Mapping[str, Any], source: str) -> None:
    """Samples come from processes that the run tells about."""
    known = len(block["processes"])
    for record in block["records"]:
        for each in record["measurements"]:
            if len(each["samples"]) > known:
                raise UnreadableRun(
                    f"{source}: {each['metric']} of {record['id']!r} has samples of {len(each['samples'])} processes, "
                    f"and the run had {known}"
                )


def _check_unique(names: Iterable[str], source: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UnreadableRun(f"{source}: the benchmark {name!r} appears twice")
        seen.add(name)


def check_stock(benchmarks: Any, source: str, *, with_data: bool = True) -> None:
    """Refuse stock statistics that disagree with the raw samples beside them; without data, that are no times.

    Raises:
        UnreadableRun: naming the field that is wrong.
    """
    if not isinstance(benchmarks, list):
        raise UnreadableRun(f"{source}: benchmarks: list expected")
    for number, each in enumerate(benchmarks):
        stats = each.get("stats") if isinstance(each, dict) else None
        where = f"{source}: benchmarks[{number}].stats"
        data = with_data or (isinstance(stats, dict) and "data" in stats)
        wanted: dict[str, Shape] = {"min": float, "max": float, "median": float}
        wanted |= {"data": [float]} if data else {"q1": float, "q3": float}
        problem = check_shape(stats, wanted, where) or check_shape(
            each, {"fullname": str}, where.removesuffix(".stats")
        )
        if problem:
            raise UnreadableRun(problem)
        assert isinstance(stats, dict)
        if data:
            _check_statistics(stats, stats["data"], where)
        elif not 0 < stats["min"] <= stats["median"] <= stats["max"]:
            raise UnreadableRun(f"{where}: 0 < min <= median <= max does not hold")
    _check_unique((each.get("fullname", "") for each in benchmarks), source)


def _check_statistics(stats: Mapping[str, float], data: Sequence[float], where: str) -> None:
    if not data or min(data) <= 0:
        raise UnreadableRun(f"{where}.data: times must be more than 0, and there must be one")
    recomputed = {"min": min(data), "max": max(data), "median": statistics.median(data)}
    for name, value in recomputed.items():
        if not math.isclose(stats[name], value, rel_tol=STATISTICS_TOLERANCE):
            raise UnreadableRun(f"{where}.{name} is {stats[name]}, but the raw samples give {value}")


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
