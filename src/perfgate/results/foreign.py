"""Result files of plain pytest-benchmark, without perfgate's block: times only, of an unknown machine."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfgate.errors import NotARun
from perfgate.results.consistency import check_stock
from perfgate.results.document import COMMIT, run_of
from perfgate.results.reader import decode, loads, read_bytes
from perfgate.results.record import Machine, Measurement, Record, Run, identity_hash
from perfgate.results.shape import check_shape

UNKNOWN = "unknown"
SUMMARY_ONLY = "five-number summary: the raw samples were not saved (--benchmark-save-data)"


def read_any(file: Path) -> Run:
    """The run in a results file of perfgate or of plain pytest-benchmark.

    Raises:
        UnreadableRun: one of the kinds below it, where it is neither.
    """
    content = read_bytes(file)
    document = loads(decode(content, str(file)), str(file))
    if isinstance(document, dict) and "perfgate" in document:
        run = run_of(document, str(file))
    elif isinstance(document, dict) and isinstance(document.get("benchmarks"), list):
        run = _foreign_run(document, str(file))
    else:
        raise NotARun(f"{file}: neither a run of perfgate nor of pytest-benchmark: name a file that one of them saved")
    return dataclasses.replace(run, digest=hashlib.sha256(content).hexdigest())


def _foreign_run(document: Mapping[str, Any], source: str) -> Run:
    check_stock(document["benchmarks"], source, with_data=False)
    commit = document.get("commit_info")
    claimed = commit.get("id") if isinstance(commit, dict) else None
    identifier = UNKNOWN if check_shape(claimed, COMMIT, "id") else str(claimed)
    return Run(
        machine=Machine(slug=UNKNOWN, hard={}, soft={}),
        commit={"id": identifier, "branch": UNKNOWN, "dirty": UNKNOWN},
        stamp=str(document.get("datetime", "")),
        status="complete",
        scope={},
        processes=(),
        records=tuple(_record(each) for each in document["benchmarks"]),
        source=source,
    )


def _record(benchmark: Mapping[str, Any]) -> Record:
    stats = benchmark["stats"]
    samples = stats.get("data") or [stats[key] for key in ("min", "q1", "median", "q3", "max")]
    wall = Measurement(
        metric="wall_seconds",
        unit="s",
        better="lower",
        kind="sampled",
        samples=(tuple(float(each) for each in samples),),
        note=None if stats.get("data") else SUMMARY_ONLY,
    )
    name: str = benchmark["fullname"]
    return Record(
        id=name,
        group=str(benchmark.get("group") or ""),
        identity=identity_hash({}),
        step=name,
        measurements=(wall,),
    )
