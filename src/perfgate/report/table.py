"""The table of benchmarks: grouped by technique, then by workload and step; rows name what differs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from perfgate.report import numbers, text
from perfgate.results.record import Record
from perfgate.verdict.expectation import against_expectation, speedup_of
from perfgate.verdict.verdicts import Verdict

STYLES = {
    "slower": "red",
    "failed": "red",
    "faster": "green",
    "unjudged": "yellow",
    "unsure": "yellow",
    "gone": "yellow",
}
WIDTHS = {"speedup [95 %]": 18, "time": 7, "change": 7, "memory": 8, "verdict": 9}
NARROW_COLUMNS = 76  # below, every benchmark takes lines of its own instead of a row
BAR_COLUMNS = 100  # from here there is room for a bar
BAR_LENGTH = 16  # characters for a factor of four
BAR_FACTOR = 4.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One benchmark's cells."""

    name: str
    speedup: str
    bar: str
    time: str
    change: str
    memory: str
    verdict: str

    @property
    def cells(self) -> tuple[str, ...]:
        """Speedup, time, change, memory, verdict."""
        return self.speedup, self.time, self.change, self.memory, self.verdict


def tables(
    records: Sequence[Record], old: Mapping[str, Record], verdicts: Mapping[str, Verdict], *, smoke: bool, columns: int
) -> Iterator[Table | str]:
    """For each technique a heading and its table, or plain lines where the terminal is narrow."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for record in records:
        heading, name = split_name(record)
        row = make_row(name, record, old.get(record.id), verdicts.get(record.id), smoke=smoke)
        groups.setdefault(record.group, {}).setdefault(heading, []).append(row)
    for group, sections in groups.items():
        yield f"\n[bold]{text.name(group or 'benchmarks')}[/bold]"
        if columns < NARROW_COLUMNS:
            yield from _lines(sections)
        else:
            yield from _tables(sections, with_bar=columns >= BAR_COLUMNS)


def split_name(record: Record) -> tuple[str, str]:
    """``mlp-b128/train/amp-bf16`` as ``("mlp-b128 train", "amp-bf16")``; a node id as it is, without a heading."""
    parts = record.step.split("/")
    if len(parts) != 3 or "::" in record.step:
        return "", record.step
    return f"{parts[0]} {parts[1]}", parts[2].replace("+", " + ")


def make_row(name: str, record: Record, old: Record | None, verdict: Verdict | None, *, smoke: bool) -> Row:
    """The cells of one benchmark; a smoke run has no times."""
    time, peak = record.measurement("wall_seconds"), record.measurement("peak_bytes")
    speedup = None if smoke else speedup_of(record)
    comparable = old if old is not None and old.identity == record.identity and not smoke else None
    before = comparable.measurement("wall_seconds") if comparable else None
    word = verdict.word if verdict else "measured"
    styled = f"[{STYLES[word]}]{word}[/]" if word in STYLES else word
    now = statistics.median(time.values) if time and not smoke else None
    return Row(
        name=text.name(name),
        speedup=escape(numbers.factor(speedup)),
        bar=bar(speedup.value) if speedup else "",
        time=numbers.seconds(now),
        change=numbers.change(now / statistics.median(before.values) if now and before else None),
        memory=numbers.size(peak.values[0] if peak else None),
        verdict=styled + ("*" if not smoke and against_expectation(record) else ""),
    )


def bar(speedup: float) -> str:
    """``>>>`` for faster and ``<<<`` for slower, on a logarithmic scale."""
    length = min(BAR_LENGTH, round(BAR_LENGTH * abs(math.log(speedup, BAR_FACTOR))))
    return (">" if speedup > 1 else "<") * length


def _tables(sections: Mapping[str, Sequence[Row]], *, with_bar: bool) -> Iterator[Table | str]:
    """One table per section, all with the same columns; the titles stand over the first."""
    for number, (heading, rows) in enumerate(sections.items()):
        if heading:
            yield text.name(heading)
        yield _table(rows, with_bar=with_bar, with_titles=number == 0)


def _table(rows: Sequence[Row], *, with_bar: bool, with_titles: bool) -> Table:
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, header_style="dim", show_header=with_titles
    )
    table.add_column("", ratio=1, overflow="fold")
    for title, width in WIDTHS.items():
        justify = "left" if title == "verdict" else "right"
        table.add_column(title, justify=justify, no_wrap=True, width=width)  # type: ignore[arg-type]
        if with_bar and title.startswith("speedup"):
            table.add_column("", width=BAR_LENGTH)
    for row in rows:
        speedup, *others = row.cells
        table.add_row(Padding(row.name, (0, 0, 0, 2)), speedup, *([row.bar] if with_bar else []), *others)
    return table


def _lines(sections: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    for heading, rows in sections.items():
        if heading:
            yield text.name(heading)
        for row in rows:
            yield f"  {row.name}: {row.verdict}"
            figures = (figure for figure in row.cells[:-1] if figure != numbers.UNKNOWN)
            yield "    " + "  ".join(figures)
