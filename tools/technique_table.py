"""What every technique does on a machine, as a Markdown table of one saved run.

    python tools/technique_table.py results/<machine>/<run>.json

One row per benchmark that has a twin: speedup with its 95 % interval, peak memory, what was counted otherwise than in
the twin, and how far the results are apart. A star marks a direction that nobody expected.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from perfgate.report import numbers
from perfgate.results.record import Record
from perfgate.results.store import read
from perfgate.verdict.expectation import against_expectation, speedup_of

HEADER = "| technique | speedup [95 %] | peak memory | counted, against its twin | same result |\n|---|---|---|---|---|"
COUNTS = ("flops", "float32_flops", "operators", "parameters", "zeros", "scalar_reads", "kernel_launches")


def count(record: Record, metric: str) -> float | None:
    """The one value of a counted metric."""
    found = record.measurement(metric)
    return found.values[0] if found else None


def changes(record: Record) -> Iterator[str]:
    """Every count that differs from the twin's."""
    operators = record.measurement("operators")
    # those of compiled code and captured graphs are counted by a profiler, which names no types, and not comparable
    watched = operators is not None and any("(" in name for name in operators.table)
    for metric in COUNTS:
        ours, theirs = count(record, metric), count(record, f"plain_{metric}")
        comparable = watched or metric != "operators"
        if ours is not None and theirs is not None and ours != theirs and comparable:
            yield f"{metric} {short(theirs)} -> {short(ours)}"


def short(value: float) -> str:
    """A count with three digits: ``2.37 G``."""
    for factor, unit in ((1e9, " G"), (1e6, " M")):
        if value >= factor:
            return numbers.significant(value / factor) + unit
    return f"{value:,.0f}"


def memory(record: Record) -> str:
    """The twin's peak and the variant's."""
    ours, theirs = count(record, "peak_bytes"), count(record, "plain_peak_bytes")
    return numbers.UNKNOWN if ours is None or theirs is None else f"{numbers.size(theirs)} -> {numbers.size(ours)}"


def row(record: Record) -> str:
    """One line."""
    star = "*" if against_expectation(record) else ""
    cells = [
        record.step.replace("/", " "),
        numbers.factor(speedup_of(record)) + star,
        memory(record),
        "; ".join(changes(record)) or "nothing",
        record.evidence.get("same result", numbers.UNKNOWN),
    ]
    return f"| {' | '.join(cells)} |"


def main(file: Path) -> None:
    """Print the table, group by group."""
    run = read(file)
    print(", ".join([*run.machine.hard.values(), *(f"{name} {value}" for name, value in run.machine.soft.items())]))
    for group in dict.fromkeys(each.group for each in run.records):
        rows = [row(each) for each in run.records if each.group == group and speedup_of(each)]
        if rows:
            print("", f"**{group}**", "", HEADER, *rows, sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
