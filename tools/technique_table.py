"""What every technique does on a machine, as a Markdown table of one saved run.

    python tools/technique_table.py results/<machine>/<run>.json

One row per benchmark that has a twin: speedup with its 95 % interval, samples per second, peak memory, on a GPU energy
per sample, what was counted otherwise than in the twin, and how far the results are apart. A star marks a direction
that nobody expected.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from perfgate.report import numbers
from perfgate.results.record import Record
from perfgate.results.store import read
from perfgate.verdict.expectation import against_expectation, speedup_of

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


def middle(record: Record, metric: str) -> float | None:
    """The median of a metric's values."""
    found = record.measurement(metric)
    return statistics.median(found.values) if found and found.values else None


def throughput(record: Record) -> str:
    """The variant's, from its median round, and by the speedup its twin's."""
    seconds, ratio = middle(record, "wall_seconds"), speedup_of(record)
    if not seconds or not ratio:
        return numbers.UNKNOWN
    ours = record.samples_per_round / seconds
    return f"{ours / ratio.value:,.0f} -> {ours:,.0f}"


def energy(record: Record) -> str:
    """The twin's and the variant's; empty without a GPU that counts it."""
    values = [middle(record, f"{side}energy_joules_per_sample") for side in ("plain_", "")]
    return " -> ".join(f"{numbers.significant(each * 1e3)} mJ" for each in values if each is not None)


def speedup(record: Record) -> str:
    """With its interval, and a star where nobody expected that direction."""
    return numbers.factor(speedup_of(record)) + ("*" if against_expectation(record) else "")


COLUMNS: dict[str, Callable[[Record], str]] = {
    "technique": lambda record: record.step.replace("/", " "),
    "speedup [95 %]": speedup,
    "samples/s": throughput,
    "peak memory": memory,
    "energy per sample": energy,
    "counted, against its twin": lambda record: "; ".join(changes(record)) or "nothing",
    "same result": lambda record: record.evidence.get("same result", numbers.UNKNOWN),
}


def table(records: Sequence[Record]) -> Iterator[str]:
    """The lines; a column without any value is left out."""
    rows = [[cell(record) for cell in COLUMNS.values()] for record in records]
    used = [number for number in range(len(COLUMNS)) if any(row[number] for row in rows)]
    for row in (list(COLUMNS), ["---"] * len(COLUMNS), *rows):
        yield f"| {' | '.join(row[number] for number in used)} |"


def main(file: Path) -> None:
    """Print the table, group by group."""
    run = read(file)
    print(", ".join([*run.machine.hard.values(), *(f"{name} {value}" for name, value in run.machine.soft.items())]))
    for group in dict.fromkeys(each.group for each in run.records):
        records = [each for each in run.records if each.group == group and speedup_of(each)]
        if records:
            print("", f"**{group}**", "", *table(records), sep="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
