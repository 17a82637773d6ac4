"""Result files of plain pytest-benchmark, without perfgate's block: times only, of an unknown machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfgate.errors import UnreadableRun
from perfgate.results.document import check_stock, loads, parse
from perfgate.results.record import Machine, Measurement, Record, Run, identity_hash
from perfgate.results.store import read_text

UNKNOWN = "unknown"
SUMMARY_ONLY = "five-number summary: the raw samples were not saved (--benchmark-save-data)"


def read_any(file: Path) -> Run:
    """The run in a results file of perfgate or of plain pytest-benchmark.

    Raises:
        UnreadableRun: where it is neither.
    """
    text = read_text(file)
    document = loads(text, str(file))
    if isinstance(document, dict) and "perfgate" in document:
        return parse(text, str(file))
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        raise UnreadableRun(f"{file}: neither a run of perfgate nor of pytest-benchmark")
    return _foreign_run(document, str(file), hashlib.sha256(text.encode()).hexdigest())


def _foreign_run(document: Mapping[str, Any], source: str, digest: str) -> Run:
    check_stock(document["benchmarks"], source, with_data=False)
    commit = document.get("commit_info")
    identifier = str(commit.get("id", UNKNOWN)) if isinstance(commit, dict) else UNKNOWN
    return Run(
        machine=Machine(slug=UNKNOWN, hard={}, soft={}),
        commit={"id": identifier, "branch": UNKNOWN, "dirty": UNKNOWN},
        stamp=str(document.get("datetime", "")),
        status="complete",
        scope={},
        processes=(),
        records=tuple(_record(each) for each in document["benchmarks"]),
        source=source,
        digest=digest,
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
