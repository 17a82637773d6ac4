"""Which files of a machine to open for its history, and in which order: decided by their names, as few as will do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from perfgate.errors import UnreadableRun
from perfgate.results.record import Machine, Run
from perfgate.results.store import NAME, read

LOOK_BACK = 20  # usable runs
MOST_OPENED = 100  # files of 60 benchmarks take 8 ms each: more would be felt at the start of every session
CLOCKS_APART = timedelta(hours=1)  # of machines that share a folder; what lies further ahead has a wrong date
UNKNOWN = "unknown"


def by_commit(files: Iterable[Path], ancestors: Collection[str] | None) -> tuple[list[Path], list[Path]]:
    """The files of this history and those of other commits, both newest first; none is opened.

    ``files`` come newest first. ``ancestors`` are full ids of commits; where they have an order (no set), newest first,
    it comes before that of the dates. A date in the future is wrong, so that such a run is its commit's oldest.
    """
    latest = _latest_stamp()
    places = _places(ancestors)
    own: list[tuple[int, bool, Path]] = []
    others: list[tuple[int, bool, Path]] = []
    for file in files:
        name = NAME.fullmatch(file.name)
        if name is None:
            continue
        place = 0 if places is None else places.get(name["commit"])
        chosen = others if place is None else own
        chosen.append((place or 0, name["stamp"] > latest, file))
    return _ordered(own), _ordered(others)


def _places(ancestors: Collection[str] | None) -> dict[str, int] | None:
    """By a commit's first 12 digits, as in names of files, how many commits ago it was; 0 where that is not known."""
    if ancestors is None:
        return None
    if isinstance(ancestors, AbstractSet):
        return {**dict.fromkeys((each[:12] for each in ancestors), 0), UNKNOWN: 0}
    return {UNKNOWN: len(ancestors), **{each[:12]: place for place, each in enumerate(ancestors)}}


def _ordered(found: list[tuple[int, bool, Path]]) -> list[Path]:
    return [file for *_, file in sorted(found, key=lambda each: each[:2])]  # stable: newest first stays


def future_notes(runs: Sequence[Run]) -> list[str]:
    """What to know of dates that lie in the future."""
    latest = _latest_stamp()
    names = [Path(run.source).name for run in runs if run.stamp > latest]
    if not names:
        return []
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return [f"dated in the future: {names[0]}{more}: a clock is or was wrong; other runs of a commit count as newer"]


def _latest_stamp() -> str:
    """Later stamps lie in the future."""
    return f"{datetime.now(UTC) + CLOCKS_APART:%Y%m%dT%H%M%S}999Z"


@dataclass
class Search:
    """Opens files until there are enough usable runs, among them one of the whole suite."""

    machine: Machine
    strict: bool
    runs: list[Run] = field(default_factory=list)
    """Usable runs, in the order of their files."""
    problems: list[str] = field(default_factory=list)
    """Files that were passed over, and why."""
    notes: list[str] = field(default_factory=list)
    unfit: int = 0
    """Runs that are no baseline: interrupted ones and, when strict, those of dirty trees."""

    def look_through(self, files: Sequence[Path], *, whole_suite: bool = True) -> None:
        """Open files in their order; ``whole_suite`` goes on beyond 20 usable runs until one ran everything."""
        for opened, file in enumerate(files):
            if self._enough(whole_suite=whole_suite):
                return
            if opened == MOST_OPENED:
                self.notes.append(self._limited(len(files)))
                return
            run = self._usable(file)
            if run:
                self.runs.append(run)

    def _enough(self, *, whole_suite: bool) -> bool:
        return len(self.runs) >= LOOK_BACK and (not whole_suite or any(run.scope["full"] for run in self.runs))

    def _limited(self, count: int) -> str:
        found = "" if any(run.scope["full"] for run in self.runs) else ", none of them of the whole suite"
        return (
            f"only {MOST_OPENED} of {count} saved runs were looked at, {len(self.runs)} of them usable{found}: run the "
            "whole suite once, and remove runs that are of no use"
        )

    def _usable(self, file: Path) -> Run | None:
        """The run in the file; ``None`` where it cannot be a baseline."""
        try:
            run = read(file)
        except UnreadableRun as error:
            self.problems.append(str(error))
            return None
        if run.machine.hard != self.machine.hard:
            self.problems.append(f"{file}: made on another machine than its folder says: {dict(run.machine.hard)}")
            return None
        name = NAME.fullmatch(file.name)
        if name is None or (name["stamp"], name["commit"]) != (run.stamp, run.commit["id"][:12]):
            self.problems.append(f"{file}: its name says another time or commit than it does: give it its name back")
            return None
        # an interrupted run has numbers of the first benchmarks only; nobody can tell what a dirty tree was
        unfit = run.status != "complete" or (self.strict and run.commit["dirty"] == "yes")
        self.unfit += unfit
        return None if unfit else run
