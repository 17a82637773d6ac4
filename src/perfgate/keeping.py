"""Keep what a session measures: the journal from the first benchmark to the saved run, and resuming from one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perfgate.errors import SettingsError
from perfgate.harvest import Harvest
from perfgate.results.journal import Journal, Session, Unfinished, read_journal, unfinished
from perfgate.results.record import Run
from perfgate.results.stock import document
from perfgate.results.store import Store


class Keeping:
    """The journal of one session."""

    def __init__(self, folder: Path, session: Callable[[], Session]) -> None:
        """``folder`` is the machine's; ``session`` describes this one, once it is known to have anything to keep."""
        self._folder, self._session = folder, session
        self._journal: Journal | None = None
        self._superseded: list[Mapping[str, Any]] = []
        self._tell: Callable[[Path], object] = lambda _: None

    def announce_to(self, tell: Callable[[Path], object]) -> None:
        """Tell where the journal is, as soon as there is one."""
        self._tell = tell
        if self._journal:
            tell(self._journal.file)

    def keep(self, event: Mapping[str, Any]) -> None:
        """Put an event into the journal, which begins with the first.

        Raises:
            UnsavableRun: where the disk is full or broken.
        """
        if self._journal is None:
            self._journal = Journal.create(self._folder, self._session())
            self._tell(self._journal.file)
        self._journal.append(event)

    def resume(self, harvest: Harvest, *, patient: bool = False) -> Unfinished:
        """Let ``harvest`` hear what the last killed run had measured, and go on in its journal.

        ``patient`` measures also what had hung.

        Raises:
            SettingsError: where there is none, or it is of other code or another machine.
            ResultsError: where it cannot be read or written.
        """
        files = unfinished(self._folder)
        if not files:
            raise SettingsError(
                f"--perfgate-resume: no unfinished run of this machine in {self._folder}: leave the option out"
            )
        found, now = read_journal(files[0]), self._session()
        if found.session.code != now.code or found.session.machine.hard != now.machine.hard:
            raise SettingsError(
                f"--perfgate-resume: {found.file.name} is of other code (commit {found.session.commit['id'][:12]}) or "
                "another machine, and a run has only one: go back to it, or make a run of what there is with "
                "perfgate recover"
            )
        self._journal = Journal(found.file)
        self._tell(found.file)
        self._superseded = [event for event in found.events if event["event"] == "saved"]
        replay(found, harvest)
        harvest.begin_again(patient=patient)
        return found

    def finish(self, saved: Path | None) -> None:
        """Remove the journal, and what the session had saved when it was interrupted: all of that is in ``saved``."""
        if self._journal is None:
            return
        for each in self._superseded if saved else ():
            file = self._folder / Path(each["file"]).name
            if file != saved and file.is_file() and digest_of(file) == each["digest"]:
                file.unlink()
        self._journal.remove()
        self._journal = None

    def interrupt(self, saved: Path) -> None:
        """The journal stays, and says which file holds what there is so far."""
        if self._journal:
            self._journal.append({"event": "saved", "file": saved.name, "digest": digest_of(saved)})

    def close(self) -> None:
        """Let go of the journal, wherever it is."""
        if self._journal:
            self._journal.close()


def recover(store: Store, file: Path) -> str:
    """Save what a journal holds as an interrupted run, and remove it; what was done, as a sentence.

    Raises:
        ResultsError: where the journal cannot be read or the run not be saved; then the journal stays.
    """
    found = read_journal(file)
    harvest = Harvest()
    replay(found, harvest)
    journal = Journal(file)
    try:
        count = len(harvest.finished)
        saved = [each["file"] for each in found.events if each["event"] == "saved"]
        if not count:
            done = f"{file.name}: nothing had been measured; removed"
        elif saved and found.events[-1]["event"] == "saved" and (file.parent / Path(saved[-1]).name).is_file():
            done = f"{file.name}: what it holds was saved as {saved[-1]}; removed"
        else:
            target = store.save(_run_of(found, harvest), document(harvest.stock))
            done = f"{file.name}: {count} benchmarks saved as {target.name}, marked as interrupted"
        journal.remove()
    finally:
        journal.close()
    return "; ".join([done, *found.problems])


def _run_of(found: Unfinished, harvest: Harvest) -> Run:
    session = found.session
    return Run(
        machine=session.machine,
        commit=session.commit,
        stamp=session.stamp,
        status="interrupted",
        scope={"args": [], "deselected": 0, "full": False},
        processes=tuple(harvest.processes.values()),
        records=harvest.records,
        label=session.label,
    )


def replay(found: Unfinished, harvest: Harvest) -> None:
    """Let ``harvest`` hear all events of a journal."""
    for number, event in enumerate(found.events, start=2):
        harvest.hear(event, f"{found.file}:{number}", told=False)


def digest_of(file: Path) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
