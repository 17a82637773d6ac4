"""What is saved, what thinning and cleaning would do: plain text for a terminal of any width, and for logs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.report import numbers, text

UNFINISHED = "unfinished: go on with pytest --perfgate-resume, or perfgate recover"
LONGEST_PROBLEM = 200  # characters
CONTINUED = 2  # spaces more
NARROWEST = 20  # columns; a terminal may say 0


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    """One file."""

    name: str
    size_bytes: int | None
    """``None`` where it is gone by now."""
    commit: str
    """Twelve digits, as in the name."""
    facts: tuple[str, ...] = ()
    """Branch, number of benchmarks, status and label; none where the file was not opened."""
    problem: str = ""
    """Why it cannot be read; empty where it can, or where it was not opened."""


@dataclass(frozen=True, kw_only=True)
class SavedRuns:
    """A machine's folder."""

    machine: str
    count: int
    """Runs by name, opened or not."""
    runs: Iterable[SavedRun]
    """Those to show, newest first."""
    journals: Sequence[tuple[str, int]] = ()
    """Names and bytes of journals: runs that were not finished."""


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """What thinning does to a folder of runs."""

    kept: int
    """Newest runs that nobody looks into."""
    files: Sequence[Path]
    """Files to thin."""
    unchanged: int
    """Old files that thinning would not make smaller."""
    before_bytes: int
    """Of the files to thin."""
    after_bytes: int
    problems: Sequence[str]
    """Files that were passed over, and why."""


def listing(folder: SavedRuns, *, columns: int) -> Iterator[str]:
    """A machine's runs, line by line."""
    yield from _wrapped(f"{text.plain(folder.machine)}: {_count(folder.count, 'saved run')}", 0, columns)
    for name, size_bytes in folder.journals:
        yield from _row((text.plain(name), numbers.size(size_bytes)), 2, columns)
        yield from _wrapped(UNFINISHED, 6, columns)
    shown = 0
    for run in folder.runs:
        yield from _run(run, columns)
        shown += 1
    if folder.count > shown:
        yield from _wrapped(f"and {folder.count - shown} older; --all lists them", 2, columns)


def _run(run: SavedRun, columns: int) -> Iterator[str]:
    """The name to copy, and below it what is known; all in one line where that is only what the name says."""
    basics = (moment(run.name), text.plain(run.commit))
    size = numbers.size(run.size_bytes)
    if not (run.problem or run.facts):
        yield from _row((text.plain(run.name), *basics, size), 2, columns)
        return
    yield from _wrapped(text.plain(run.name), 2, columns)
    if run.problem:
        yield from _row((*basics, size), 6, columns)
        yield from _wrapped(f"unreadable: {text.CONTROL.sub('', run.problem)[:LONGEST_PROBLEM]}", 6, columns)
    else:
        yield from _row((*basics, *map(text.plain, run.facts), size), 6, columns)


def moment(name: str) -> str:
    """``20261121T044547143Z-...`` as ``2026-11-21 04:45:47 UTC``."""
    return f"{name[:4]}-{name[4:6]}-{name[6:8]} {name[9:11]}:{name[11:13]}:{name[13:15]} UTC"


def pruning(plan: Pruning, most: int, *, columns: int) -> Iterator[str]:
    """What thinning will do."""
    for problem in plan.problems:
        yield from _wrapped(f"passed over: {text.CONTROL.sub('', problem)}", 0, columns)
    others = f"{_count(plan.kept, 'newest run')} and {plan.unchanged} that are thin enough stay as they are"
    if not plan.files:
        yield from _wrapped(f"nothing to thin: {others}", 0, columns)
        return
    sizes = f"{numbers.size(plan.before_bytes)} -> {numbers.size(plan.after_bytes)}"
    for sentence in (
        f"{_count(len(plan.files), 'file')} to thin: {sizes}; {others}",
        f"of each longer list of raw samples at most {most} stay, with minimum, median and maximum exactly",
        "git keeps the old contents of files that are committed: commit first those that are not",
    ):
        yield from _wrapped(sentence, 0, columns)


def cleaning(files: Sequence[tuple[Path, int]], *, columns: int) -> Iterator[str]:
    """Left-over files with their bytes, and what they are together."""
    for file, size_bytes in files:
        yield from _row((text.CONTROL.sub("", str(file)), numbers.size(size_bytes)), 2, columns)
    total = numbers.size(sum(size_bytes for _, size_bytes in files))
    yield from _wrapped(f"{_count(len(files), 'left-over temporary file')} older than a day, {total}", 0, columns)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _row(cells: Sequence[str], indent: int, columns: int) -> Iterator[str]:
    """Cells side by side; those that have no room go to the next line, and none is torn that fits into a line."""
    line, further = "", indent + CONTINUED
    for cell in cells:
        longer = f"{line}  {cell}" if line else cell
        if line and len(longer) > columns - indent:
            yield from _wrapped(line, indent, columns)
            indent, longer = further, cell
        line = longer
    yield from _wrapped(line, indent, columns)


def _wrapped(line: str, indent: int, columns: int) -> list[str]:
    first, rest = " " * indent, " " * (indent + CONTINUED)
    return textwrap.wrap(line, max(columns, NARROWEST), initial_indent=first, subsequent_indent=rest)
