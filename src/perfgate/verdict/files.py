"""Saved runs against saved runs, of one machine or of an unknown one."""

from __future__ import annotations

from collections.abc import Sequence

from perfgate.results.baseline import Baseline
from perfgate.results.ledger import Ledger
from perfgate.results.record import Run
from perfgate.settings import Settings
from perfgate.verdict.compare import compare
from perfgate.verdict.verdicts import Verdict, gone, unjudged


def compare_files(
    bases: Sequence[Run], heads: Sequence[Run], settings: Settings, ledger: Ledger
) -> tuple[list[Verdict], list[str]]:
    """A verdict per benchmark, and what to know about the comparison."""
    ordered = sorted(bases, key=lambda run: run.stamp, reverse=True)
    notes = [*_notes(ordered, heads)]
    other = _other_machine(ordered, heads)
    if other:
        names = dict.fromkeys(record.id for run in heads for record in run.records)
        return [unjudged(name, "other-machine", other) for name in names], notes
    baseline = Baseline(runs=tuple(ordered), renamed=settings.renamed, explicit=True)
    verdicts = compare(heads, baseline, settings, ledger).verdicts()
    present = {record.id for run in heads for record in run.records}
    missing = baseline.expected - present
    if missing and not all(run.scope.get("full", True) for run in heads):
        notes.append(f"head ran a part of the suite: {len(missing)} of base's benchmarks are not in it")
        missing = set()
    return [*verdicts, *gone(missing)], notes


def _other_machine(bases: Sequence[Run], heads: Sequence[Run]) -> str:
    """How the machines differ, as a reason; empty where they do not, as far as is known."""
    machines = [run.machine for run in (*bases, *heads)]
    known = [each for each in machines if each.hard]
    if len(known) not in (0, len(machines)):
        return "one side's machine is unknown (a file of plain pytest-benchmark), the other's is not"
    for each in known:
        differing = [key for key in {**known[0].hard, **each.hard} if known[0].hard.get(key) != each.hard.get(key)]
        if differing:
            return f"made on other machines: {known[0].slug} and {each.slug} (differs: {', '.join(differing)})"
    return ""


def _notes(bases: Sequence[Run], heads: Sequence[Run]) -> list[str]:
    runs = [*bases, *heads]
    notes = []
    if any(not run.machine.hard for run in runs):
        notes.append("plain pytest-benchmark files: only times are compared, and nobody knows whether on one machine")
    if any(run.status == "interrupted" for run in runs):
        notes.append("some runs were interrupted and have only part of the benchmarks")
    if any(
        measurement.note
        for run in runs
        for record in run.records
        for measurement in record.measurements
        if measurement.metric == "wall_seconds"
    ):
        notes.append("some files hold no raw samples (--benchmark-save-data): their five-number summaries are used")
    return notes
