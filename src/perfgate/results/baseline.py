"""The baseline: what this machine's saved runs say about each benchmark, or why they say nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from perfgate.errors import ResultsError
from perfgate.results.history import Search, by_commit, future_notes
from perfgate.results.record import Machine, Record, Run
from perfgate.results.store import Store, read

SHOWN = 5  # names in a message
REGRESSED = "slower"


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """Saved values to compare with: the newest of each benchmark."""

    runs: tuple[Run, ...] = ()
    """Runs used, newest first; none where there is no baseline."""
    problems: tuple[str, ...] = ()
    """Files that were passed over, and why."""
    notes: tuple[str, ...] = ()
    """What else to know about the runs used."""
    absence: str = ""
    """Why there is no baseline, with the remedy; empty where there is one."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    explicit: bool = False
    """Whether somebody named the runs: then all of them count, whatever was once said about them."""

    @cached_property
    def _histories(self) -> dict[str, list[tuple[Record, Run]]]:
        histories: dict[str, list[tuple[Record, Run]]] = {}
        for run in self.runs:
            for record in run.records:
                if self.explicit or record.verdict != REGRESSED:
                    histories.setdefault(self.renamed.get(record.id, record.id), []).append((record, run))
        return histories

    def history(self, name: str) -> list[tuple[Record, Run]]:
        """Records of the benchmark of this present name with their runs, newest first.

        One that was judged slower is passed over, or a regression would be the normal of the next run.
        """
        return self._histories.get(name, [])

    def only_regressed(self, name: str) -> bool:
        """Whether there are records of this benchmark and all of them were judged slower."""
        names = (self.renamed.get(record.id, record.id) for run in self.runs for record in run.records)
        return not self.history(name) and name in names

    @cached_property
    def newest(self) -> dict[str, tuple[Record, Run]]:
        """The newest record of each benchmark under its present name, and the run it is of."""
        return {name: history[0] for name, history in self._histories.items()}

    @cached_property
    def records(self) -> dict[str, Record]:
        """The records of :attr:`newest`."""
        return {name: record for name, (record, _) in self.newest.items()}

    @cached_property
    def expected(self) -> set[str]:
        """Benchmarks that a run of everything should have: those since the newest run of the whole suite."""
        names: set[str] = set()
        for run in self.runs:
            names.update(self.renamed.get(record.id, record.id) for record in run.records)
            if run.scope.get("full"):
                break
        return names

    @property
    def unreadable(self) -> bool:
        """Whether runs are there and none could be used: a broken baseline is no reason to pass."""
        return bool(self.problems) and not self.runs


def find(
    store: Store,
    machine: Machine,
    *,
    choice: str | None = None,
    renamed: Mapping[str, str] | None = None,
    strict: bool = False,
    ancestors: Collection[str] | None = None,
) -> Baseline:
    """This machine's newest 20 usable runs, more where none of those ran the whole suite; or the run ``choice`` names.

    ``choice`` is a file, or the beginning of a run's name among this machine's. ``strict`` passes over runs from a
    dirty tree: nobody can tell what they measured. Runs of commits that are not among ``ancestors`` (where given; in
    an order, newest first, that is the history's too) are other branches' and serve only where there are no others,
    never when strict. What belongs is decided by names: at most 100 files of the history are opened.

    Raises:
        ResultsError: where ``choice`` names no run, or several, or one that cannot be read.
    """
    if choice is not None:
        run = _chosen(store, machine, choice, strict=strict)
        return Baseline(runs=(run,), notes=tuple(future_notes([run])), renamed=renamed or {}, explicit=True)
    own, others = by_commit(store.files(machine.slug), ancestors)
    search = Search(machine, strict=strict)
    search.look_through(own)
    if others and not search.runs and not strict:
        search.look_through(others, whole_suite=False)
        if search.runs:
            search.notes.append("no run is of a commit that this one descends from: runs of other commits have to do")
    elif others:
        search.notes.append(f"{len(others)} runs of commits that this one does not descend from are left out")
    return Baseline(
        runs=tuple(search.runs),
        problems=tuple(search.problems),
        notes=(*search.notes, *future_notes(search.runs)),
        absence="" if search.runs else _absence(store, machine, search),
        renamed=renamed or {},
    )


def _chosen(store: Store, machine: Machine, choice: str, *, strict: bool) -> Run:
    if _is_there(choice):
        run = read(Path(choice))
    else:
        found = [file for file in store.files(machine.slug) if file.name.startswith(choice)]
        if len(found) != 1:
            names = ", ".join(file.name for file in found[:SHOWN]) or "none"
            raise ResultsError(
                f"--benchmark-compare={choice}: one run of this machine ({machine.slug}) must begin so; found: {names}"
            )
        run = read(found[0])
    if run.machine.hard != machine.hard:
        raise ResultsError(
            f"{choice} was made on {run.machine.slug}, this is {machine.slug} (differs: {_differing(run, machine)})"
        )
    if strict and run.commit.get("dirty") == "yes":
        raise ResultsError(f"{choice} was measured in a dirty tree: with --perfgate-strict it cannot be a baseline")
    if run.status != "complete":
        raise ResultsError(f"{choice} was interrupted: only a complete run can be a baseline")
    return run


def _is_there(choice: str) -> bool:
    """Whether ``choice`` names a file, readable or not, and not the beginning of a run's name."""
    try:
        return Path(choice).is_file()
    except (OSError, ValueError):  # in a folder that may not be entered, or a name that no file can have
        return "/" in choice


def _absence(store: Store, machine: Machine, search: Search) -> str:
    if search.problems:
        return f"no usable run of this machine ({machine.slug}); {len(search.problems)} passed over"
    if search.unfit:
        what = "interrupted or of a dirty tree" if search.strict else "interrupted"
        return f"no usable run of this machine ({machine.slug}): {search.unfit} are {what}; make one of a commit"
    others = [name for name in store.machines() if name != machine.slug]
    named = [_other_machine(store, name, machine) for name in others[:SHOWN]]
    if len(others) > SHOWN:
        named.append(f"and {len(others) - SHOWN} more")
    elsewhere = f"; runs of other machines are not compared: {', '.join(named)}" if others else ""
    return f"no saved run of this machine ({machine.slug}) in {store.root.name}/{elsewhere}"


def _other_machine(store: Store, name: str, machine: Machine) -> str:
    """Another machine's name, and where its newest run can be read how it differs."""
    try:
        differing = _differing(read(next(store.files(name))), machine)
    except (ResultsError, StopIteration):
        return name
    return f"{name} (differs: {differing or 'nothing, it was renamed'})"


def _differing(run: Run, machine: Machine) -> str:
    theirs, ours = run.machine.hard, machine.hard
    return ", ".join(key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key))
