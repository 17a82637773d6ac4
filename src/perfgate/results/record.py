"""Measurements, the record of one benchmark, and the run they belong to; to and from the JSON of a results file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA = 1
"""Version of the ``perfgate`` block of a results file."""

MACHINE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}", re.ASCII)
"""How a machine's slug is written: it names a folder."""

Better = Literal["lower", "higher", "neither"]
Kind = Literal["sampled", "paired", "counted"]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One metric of one benchmark."""

    metric: str
    """Name with its unit in it, such as ``wall_seconds`` or ``peak_bytes``."""
    unit: str
    """SI unit or ``B``, ``1`` (a ratio), ``count``, ``FLOP``."""
    better: Better
    """Which way is better; ``neither`` is shown and never judged."""
    kind: Kind
    """Sampled values are noisy, paired ones are ratios of neighbouring rounds, counted ones are exact."""
    samples: tuple[tuple[float, ...], ...] = ()
    """All raw values, one inner tuple per measuring process; empty where unknown."""
    table: Mapping[str, int] = field(default_factory=dict)
    """What a counted value is made of, by key (operator and dtypes, for instance)."""
    note: str | None = None
    """Why the value is unknown or what to know about it; ``None`` where there is nothing to say."""

    @property
    def values(self) -> tuple[float, ...]:
        """The samples of all processes, one after the other."""
        return tuple(value for process in self.samples for value in process)


@dataclass(frozen=True, kw_only=True)
class Record:
    """Everything measured about one benchmark."""

    id: str
    """pytest's node id."""
    group: str
    """The technique, as grouped in reports."""
    identity: str
    """Hash of the parameters that make this benchmark this one; compared only where equal."""
    step: str
    """Readable slug of workload, step and optimizations; the node id where there is none."""
    measurements: tuple[Measurement, ...]
    samples_per_round: int = 1
    """Images or sequences that one round works through."""
    expected: str = "any"
    """Direction in which the technique is expected to change time: faster, same, slower or any."""
    evidence: Mapping[str, str] = field(default_factory=dict)
    """Proof of each technique and figures of the same-result check."""
    flags: tuple[str, ...] = ()
    """What disturbed or limits the measurement, as sentences."""
    verdict: str = ""
    """The word of the comparison that was made when it was saved, ``accepted`` where a regression was; empty where none
    was made."""
    seconds: float = 0.0
    """What measuring this benchmark took, for estimates of the next run."""

    def measurement(self, metric: str) -> Measurement | None:
        """The measurement of that name, if there is one with a value."""
        found = (each for each in self.measurements if each.metric == metric and each.samples)
        return next(found, None)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a run was made: the hard fields decide whether runs may be compared, the soft ones are only reported."""

    slug: str
    """Readable name of the hard fields; the folder of this machine's runs."""
    hard: Mapping[str, str]
    """GPU model, memory, MIG, count; CPU model, usable cores, architecture."""
    soft: Mapping[str, str]
    """Driver, CUDA, cuDNN, torch, Python, kernel."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One measuring process of a run."""

    started: str
    """UTC time, ISO 8601."""
    threads: int
    """torch's intra-op threads; 0 where torch was not used."""
    canary: Mapping[str, float]
    """Seconds of a fixed matrix product and a fixed copy, to compare the machine's speed between processes."""
    tunables: Mapping[str, str]
    """Settings that change timing: huge pages, OpenMP waiting, affinity, governor, garbage collection."""
    subject: Mapping[str, str]
    """Imported path, relative to the project, and tree hash of the code under test."""
    readings: Mapping[str, str]
    """Load, clocks, temperature, power, throttling and other processes, or "unknown"."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One results file."""

    machine: Machine
    commit: Mapping[str, str]
    """``id`` (40 hex digits or "unknown"), ``branch``, and ``dirty`` as "yes", "no" or "unknown"."""
    stamp: str
    """UTC time of the start, as in the file's name."""
    status: Literal["complete", "interrupted"]
    scope: Mapping[str, Any]
    """``args`` given to pytest and the number ``deselected``; ``full`` tells whether the whole suite ran."""
    processes: tuple[Process, ...]
    records: tuple[Record, ...]
    label: str = ""
    """What ``--benchmark-save=LABEL`` said."""
    source: str = ""
    """File this run was read from; empty for the run of this session."""
    digest: str = ""
    """SHA-256 of that file; empty for the run of this session."""


def identity_hash(identity: Mapping[str, Any]) -> str:
    """Twelve hex digits that stand for ``identity``."""
    canonical = json.dumps(identity, sort_keys=True, default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]
