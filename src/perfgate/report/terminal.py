"""The terminal report: one verdict line, what each optimization does on this machine, and what to do next.

Fits 80 columns, wraps below, and is plain ASCII, so that logs and narrow terminals show it as it is.
"""

from __future__ import annotations

import io
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.table import Table, box

from perfgate.report import numbers
from perfgate.results.baseline import Baseline
from perfgate.results.record import Record, Run
from perfgate.verdict.expectation import against_expectation, speedup_of
from perfgate.verdict.verdicts import SEVERITY, Verdict, is_failure, tally

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
STYLES = {"slower": "red", "failed": "red", "faster": "green", "unjudged": "yellow", "unsure": "yellow", "gone": "yellow"}
LONGEST_NAME = 120
NARROW_COLUMNS = 70  # below, every benchmark takes lines of its own instead of a row


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything there is to tell."""

    run: Run | None
    baseline: Baseline
    verdicts: Sequence[Verdict]
    compared: bool
    """Whether a comparison was asked for."""
    strict: bool
    smoke: bool
    saved: str
    """The file this run was saved as; empty where it was not."""


def safe(text: str) -> str:
    """``text`` for a terminal: no control or bidi characters, no markup, of bounded length, never empty."""
    clean = CONTROL.sub("", text) or "(empty)"
    return escape(clean if len(clean) <= LONGEST_NAME else clean[: LONGEST_NAME - 3] + "...")


def render(report: Report, *, columns: int, colour: bool) -> str:
    """The report as text for a terminal of so many columns."""
    console = Console(
        file=io.StringIO(), width=columns, color_system="standard" if colour else None, force_terminal=colour, no_color=not colour
    )
    for block in _blocks(report, columns):
        console.print(block, highlight=False, soft_wrap=False)
    return console.file.getvalue()  # type: ignore[attr-defined]


def _blocks(report: Report, columns: int) -> Iterator[object]:
    by_id: dict[str, list[Verdict]] = {}
    for verdict in report.verdicts:
        by_id.setdefault(verdict.id, []).append(verdict)
    if report.run:
        for group, records in _grouped(report.run.records).items():
            yield f"\n[bold]{safe(group or 'benchmarks')}[/bold]"
            old = report.baseline.records
            if columns < NARROW_COLUMNS:
                yield from (_lines(record, by_id, report) for record in records)
            else:
                yield _table([_row(record, old.get(record.id), by_id, report) for record in records])
    yield ""
    yield from _reasons(report)
    yield from _surroundings(report)
    yield verdict_line(report)


def _grouped(records: Sequence[Record]) -> Mapping[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record.group, []).append(record)
    return groups


def _table(rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.ASCII2 if False else None, pad_edge=False, padding=(0, 1), expand=True)
    table.add_column("benchmark", ratio=1, overflow="fold")
    for title in ("speedup [95 %]", "time", "change", "memory", "verdict"):
        table.add_column(title, justify="left" if title == "verdict" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _row(record: Record, old: Record | None, by_id: Mapping[str, list[Verdict]], report: Report) -> tuple[str, ...]:
    time, peak = record.measurement("wall_seconds"), record.measurement("peak_bytes")
    median = statistics.median(time.values) if time else None
    return (
        safe(short_name(record)),
        numbers.factor(speedup_of(record)) if not report.smoke else numbers.UNKNOWN,
        numbers.seconds(median) if not report.smoke else numbers.UNKNOWN,
        _time_change(record, old) if not report.smoke else numbers.UNKNOWN,
        numbers.size(peak.values[0]) if peak else numbers.UNKNOWN,
        _verdict_word(record, by_id, report),
    )


def _lines(record: Record, by_id: Mapping[str, list[Verdict]], report: Report) -> str:
    """A benchmark on a narrow terminal: its name, then its figures."""
    name, *figures = _row(record, report.baseline.records.get(record.id), by_id, report)
    titles = ("speedup", "time", "change", "memory", "verdict")
    shown = (f"{title} {figure}" for title, figure in zip(titles, figures, strict=True) if figure != numbers.UNKNOWN)
    return f"{name}\n  " + "\n  ".join(shown)


def short_name(record: Record) -> str:
    """The step's slug without what the group says already."""
    return record.step


def _time_change(record: Record, old: Record | None) -> str:
    now, before = record.measurement("wall_seconds"), old.measurement("wall_seconds") if old else None
    if now is None or before is None or old is None or old.identity != record.identity:
        return numbers.UNKNOWN
    return numbers.change(statistics.median(now.values) / statistics.median(before.values))


def _verdict_word(record: Record, by_id: Mapping[str, list[Verdict]], report: Report) -> str:
    verdicts = by_id.get(record.id)
    word = verdicts[0].word if verdicts else "measured"
    styled = f"[{STYLES[word]}]{word}[/]" if word in STYLES else word
    return styled + ("*" if not report.smoke and against_expectation(record) else "")


def _reasons(report: Report) -> Iterator[str]:
    """Why, for every verdict that is not plainly fine; equal reasons together."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for verdict in report.verdicts:
        if verdict.word not in {"same", "new"}:
            reasons.setdefault((verdict.word, verdict.reason), []).append(verdict.id)
    for (word, reason), names in sorted(reasons.items(), key=lambda each: SEVERITY.index(each[0][0])):  # type: ignore[arg-type]
        where = safe(names[0]) if len(names) == 1 else f"{len(names)} benchmarks"
        style = STYLES.get(word, "default")
        yield f"[{style}]{word}[/] {where}: {safe_reason(reason)}" if names != [""] else f"[{style}]{word}[/]: {safe_reason(reason)}"
    for record in report.run.records if report.run and not report.smoke else ():
        contradiction = against_expectation(record)
        if contradiction:
            yield f"* against expectation: {safe(record.step)}: {numbers.factor(speedup_of(record))}, {contradiction}"
        for flag in record.flags:
            yield f"[yellow]flagged[/] {safe(record.id)}: {safe_reason(flag)}"


def safe_reason(text: str) -> str:
    """A sentence for a terminal; longer than a name may be."""
    return escape(CONTROL.sub("", text)[:500])


def _surroundings(report: Report) -> Iterator[str]:
    """What else differs from the baseline, and where the run went."""
    run = report.run
    if run and report.baseline.runs:
        changes = list(also_changed(run, report.baseline.runs[0]))
        if changes:
            yield f"also changed since the baseline: {safe_reason('; '.join(changes))}"
    if run and run.processes[0].tunables.get("huge_pages") == "off" and "gpu" not in run.machine.hard:
        yield escape("huge pages: off. For steadier times on a CPU: perfgate exec pytest benches/ --benchmark-compare")
    if report.saved:
        yield f"saved as {safe_reason(report.saved)}"
    elif report.smoke:
        yield "smoke run: one round each, nothing saved, times are not shown"


def also_changed(run: Run, base: Run) -> Iterator[str]:
    """Soft fields and tunables that differ between two runs, as ``torch 2.14.0 -> 2.15.0``."""
    ours, theirs = run.processes[0], base.processes[0]
    now = {**run.machine.soft, **ours.tunables, "threads": str(ours.threads)}
    before = {**base.machine.soft, **theirs.tunables, "threads": str(theirs.threads)}
    for key in sorted({*now, *before}):
        if now.get(key) != before.get(key):
            yield f"{key} {before.get(key, 'unset')} -> {now.get(key, 'unset')}"


def verdict_line(report: Report) -> str:
    """The one line that answers."""
    verdicts = report.verdicts
    failing = [each for each in verdicts if is_failure(each, strict=report.strict)]
    counts = ", ".join(f"{count} {word}" for word, count in tally(verdicts).items())
    measured = len(report.run.records) if report.run else 0
    if failing:
        return f"[bold red]FAIL[/] {counts}"
    if not measured:
        return f"[bold yellow]NOTHING MEASURED[/] {counts}"
    if not report.compared:
        return f"[bold]{measured} measured[/]{', ' + counts if counts else ''}; compare the next run with --benchmark-compare"
    if not report.baseline.runs:
        return f"[bold yellow]NOT JUDGED[/] {counts}; this run is the baseline of the next" if report.saved else f"[bold yellow]NOT JUDGED[/] {counts}"
    return f"[bold green]PASS[/] {counts}"
