"""Do saved runs survive what happens to them? The same disturbances for perfgate and for stock pytest-benchmark.

(a) processes that save at once, under names that pytest-benchmark makes up (autosave) and under one name; (b) saves
killed at random moments; (c) saves on a disk that is full half-way, stood in for by a limit on the size of a file;
(d) a session's start beside many saved runs. Both save the same 60 benchmarks with raw samples. Everything that is
printed was measured in that run.

    python tools/fault_evidence.py                       all; about 5 minutes and 1 GB of disk for a while
    python tools/fault_evidence.py --only a,b,c          seconds
    python tools/fault_evidence.py --only d --runs 200
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from perfgate.report import numbers

WIDTHS = (46, 24, 24)
Row = tuple[str, str, str]


def rows_of_crowd(arguments: argparse.Namespace) -> Iterator[Row]:
    """(a) Attempted, found, refused, lost, unreadable; under names made up and under one name."""
    from fault_saves import crowd, ways

    attempted = arguments.writers * arguments.saves
    for option, label in (("--benchmark-autosave", ""), ("--benchmark-save=main", "main")):
        ours, stock = (crowd(way, arguments.writers, arguments.saves) for way in ways(label))
        yield f"(a) {arguments.writers} x {arguments.saves} saves, {option}", *_attempts(attempted)
        yield "    found whole afterwards", str(ours[0].whole), str(stock[0].whole)
        yield "    refused with an error", str(ours[1]), str(stock[1])
        lost = [attempted - found.whole - found.broken - refused for found, refused in (ours, stock)]
        yield "    gone without a word (overwritten)", str(lost[0]), str(lost[1])
        yield "    unreadable", str(ours[0].broken), str(stock[0].broken)


def rows_of_kills(arguments: argparse.Namespace) -> Iterator[Row]:
    """(b) Killed, whole, corrupt, left over."""
    from fault_saves import kills, ways

    ours, stock = (kills(way, arguments.kills) for way in ways())
    yield f"(b) {arguments.kills} saves, SIGKILL at a random moment", *_attempts(arguments.kills)
    yield "    killed before they were done", str(ours[1]), str(stock[1])
    yield "    whole files", str(ours[0].whole), str(stock[0].whole)
    yield "    corrupt files with a run's name", str(ours[0].broken), str(stock[0].broken)
    yield "    temporary files (perfgate clean)", str(ours[0].temporary), str(stock[0].temporary)


def rows_of_full_disk(_: argparse.Namespace) -> Iterator[Row]:
    """(c) The error, the old file, the new one."""
    from fault_saves import full_disk, ways

    results = [full_disk(way) for way in ways()]
    yield "(c) no room for the second half of a file", "", ""
    yield "    an error says so", *_cells("yes" if raised else "no" for _, raised, _ in results)
    yield "    old file as it was", *_cells("yes" if same else "no" for _, _, same in results)
    yield "    truncated files left", *_cells(str(found.broken) for found, _, _ in results)


def rows_of_scale(arguments: argparse.Namespace) -> Iterator[Row]:
    """(d) Seconds and peak memory with one run and with many."""
    from fault_scale import BENCHMARKS, REPETITIONS, start_up

    costs, size = start_up(arguments.runs)
    title = f"(d) {BENCHMARKS} benchmarks, {numbers.size(size)} a run; median of {REPETITIONS}"
    yield title, "beside 1 run", f"beside {arguments.runs:,} runs"
    for program, by_runs in costs.items():
        cells = (f"{each.seconds:.2f} s  {numbers.size(each.peak_bytes)}" for each in by_runs.values())
        yield f"    {program}", *_cells(cells)


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "d": rows_of_scale,  # first, while this process is small: its peak memory is where its children's begins
    "a": rows_of_crowd,
    "b": rows_of_kills,
    "c": rows_of_full_disk,
}


def _attempts(number: int) -> tuple[str, str]:
    return str(number), str(number)


def _cells(words: Iterator[str]) -> tuple[str, str]:
    one, two = words
    return one, two


def surroundings() -> str:
    """Which machine, which versions, and how busy it is with other things."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
    versions = ", ".join(f"{name} {version(name)}" for name in ("perfgate", "pytest-benchmark", "pytest"))
    return (
        f"{model}, {os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}\n"
        f"{versions}; load {os.getloadavg()[0]:.1f} at the start"
    )


def show(row: Row) -> None:
    """One line of the table."""
    title, *cells = row
    print(f"{title:<{WIDTHS[0]}}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS[1:], strict=True)))


def main() -> None:
    """Disturb and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=10_000, help="saved runs of (d)")
    parser.add_argument("--writers", type=int, default=6, help="processes of (a)")
    parser.add_argument("--saves", type=int, default=20, help="of each of those")
    parser.add_argument("--kills", type=int, default=60, help="of (b)")
    parser.add_argument("--only", default="a,b,c,d", help="parts, such as a,c")
    arguments = parser.parse_args()
    started = time.perf_counter()
    print(surroundings(), flush=True)
    wanted = arguments.only.split(",")
    rows = {part: list(make(arguments)) for part, make in PARTS.items() if part in wanted}
    show(("", "perfgate", "stock"))
    for part in sorted(rows):
        for row in rows[part]:
            show(row)
    print(f"{time.perf_counter() - started:.0f} s in all")


if __name__ == "__main__":
    main()
