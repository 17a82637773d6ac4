"""The terminal report: what each optimization does on this machine, why anything is not fine, one verdict line.

Fits 80 columns, works in 40, and is plain ASCII, so that logs and narrow terminals show it as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import RenderableType

from perfgate.launch import COMMAND
from perfgate.report import numbers, text
from perfgate.report.advice import advice
from perfgate.report.comparison import seen
from perfgate.report.page import page
from perfgate.report.reasons import reasons
from perfgate.report.table import split_name, tables
from perfgate.results.baseline import Baseline
from perfgate.results.record import Record, Run
from perfgate.verdict.expectation import against_expectation, speedup_of
from perfgate.verdict.verdicts import Verdict, is_failure, tally


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything there is to tell."""

    run: Run | None
    """``None`` where nothing was measured."""
    baseline: Baseline
    verdicts: Sequence[Verdict]
    compared: bool
    """Whether a comparison was asked for."""
    strict: bool
    smoke: bool
    saved: str
    """The file this run was saved as; empty where it was not."""
    remarks: Sequence[str] = ()
    """What else happened."""

    @property
    def records(self) -> Sequence[Record]:
        """The benchmarks measured."""
        return self.run.records if self.run else ()


def render(report: Report, *, columns: int, colour: bool) -> str:
    """The report as text for a terminal of so many columns."""
    return page(_blocks(report, columns), columns=columns, colour=colour)


def _blocks(report: Report, columns: int) -> Iterator[RenderableType]:
    verdicts = {verdict.id: verdict for verdict in reversed(report.verdicts)}
    yield from tables(report.records, report.baseline.records, verdicts, smoke=report.smoke, columns=columns)
    yield ""
    yield from reasons(report.verdicts)
    yield from seen(report.verdicts)
    if not report.smoke:
        yield from _remarks(report.records)
    yield from (text.sentence(each) for each in report.remarks)
    if report.baseline.runs:
        base = report.baseline.runs[0].commit["id"][:12]
        yield from (text.sentence(each) for each in advice(report.verdicts, base))
    yield from _surroundings(report)
    yield verdict_line(report)


def _remarks(records: Sequence[Record]) -> Iterator[str]:
    """Techniques that go against their documentation, and measurements that were disturbed."""
    for record in records:
        contradiction = against_expectation(record)
        if contradiction:
            name = text.name(" ".join(split_name(record)).strip())
            why = f"{numbers.factor(speedup_of(record))}, {contradiction}"
            yield f"* against expectation: {name}: {text.sentence(why)}"
        for flag in record.flags:
            yield f"[yellow]flagged[/] {text.name(record.id)}: {text.sentence(flag)}"
    noted = Counter(record.evidence["machine"] for record in records if "machine" in record.evidence)
    for note, count in noted.items():
        yield f"noted for {count} benchmark{'' if count == 1 else 's'}: {text.sentence(note)}"


def _surroundings(report: Report) -> Iterator[str]:
    """What else differs from the baseline, what would make times steadier, and where the run went."""
    run = report.run
    if run and report.baseline.runs:
        changes = list(also_changed(run, report.baseline.runs[0]))
        if changes:
            yield f"also changed since the baseline: {text.sentence('; '.join(changes))}"
    if run and run.processes[0].tunables.get("huge_pages") == "off" and "gpu" not in run.machine.hard:
        yield f"huge pages: off; for steadier times start with: {COMMAND}"
    if report.saved:
        yield f"saved as {text.sentence(report.saved)}"
    if report.smoke:
        yield "smoke run: one round each, nothing saved, no times shown"


def also_changed(run: Run, base: Run) -> Iterator[str]:
    """Soft fields and tunables that differ between two runs, as ``torch 2.14.0 -> 2.15.0``."""
    now, before = _soft_fields(run), _soft_fields(base)
    for key in sorted({*now, *before}):
        if now.get(key) != before.get(key):
            yield f"{key} {before.get(key, 'unset')} -> {now.get(key, 'unset')}"


def _soft_fields(run: Run) -> Mapping[str, str]:
    each = [{**process.tunables, "threads": str(process.threads)} for process in run.processes]
    common = {key: value for key, value in each[0].items() if all(other.get(key) == value for other in each)}
    return {**run.machine.soft, **common}


def verdict_line(report: Report) -> str:
    """The one line that answers."""
    counts = ", ".join(f"{count} {word}" for word, count in tally(report.verdicts).items())
    if any(is_failure(each, strict=report.strict) for each in report.verdicts):
        return f"[bold red]FAIL[/] {counts}"
    if not report.records:
        return f"[bold yellow]NOTHING MEASURED[/] {counts}"
    measured = f"{len(report.records)} measured{', ' if counts else ''}{counts}"
    if report.run and report.run.status == "interrupted":
        return f"[bold yellow]INTERRUPTED[/] {measured}; never a baseline"
    return _unregressed(report, counts, measured)


def _unregressed(report: Report, counts: str, measured: str) -> str:
    """Of a session that ran to its end and in which nothing failed."""
    if report.smoke:
        return f"[bold green]PASS[/] {measured}"
    if not report.compared:
        return f"[bold]NOT COMPARED[/] {measured}; add --benchmark-compare to compare with saved runs"
    if not report.baseline.runs:
        return f"[bold yellow]NOT JUDGED[/] {counts}{'; this run is the baseline of the next' if report.saved else ''}"
    return f"[bold green]PASS[/] {counts}"
