"""The journal of a session: every finished benchmark is on disk before the next one starts.

``<root>/<machine>/<UTC stamp>-<commit 12>-<random 4>.journal`` holds one event per line, as JSON. It is removed once
the run is saved; one that is left tells what a killed session had measured.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfgate.errors import UnreadableRun, UnsavableRun
from perfgate.results.consistency import check_stock
from perfgate.results.document import BLOCK, RECORD, parse_record
from perfgate.results.exclusive import lock
from perfgate.results.reader import loads, read_bytes
from perfgate.results.record import Machine
from perfgate.results.shape import Shape, check_shape
from perfgate.results.writer import sync_folder

SUFFIX = ".journal"
LOOKS, LOOK_SECONDS = 5, 0.05  # somebody who looks whether the session lives holds the lock for a moment
SCHEMA = 1
EVENTS: dict[str, Shape] = {
    "session": {
        "schema": int,
        "stamp": BLOCK["stamp"],
        "commit": BLOCK["commit"],
        "machine": BLOCK["machine"],
        "code": str,
        "label": str,
    },
    "process": {"key": str, "process": BLOCK["processes"][0]},
    "start": {"id": str},
    "record": {"key": str, "record": RECORD},
    "outcome": {"id": str, "word": ("unjudged", "failed", "skipped"), "code": str, "reason": str},
    "stopped": {},
    "saved": {"file": str, "digest": str},
}
"""What may stand in a journal: a session first, then the rest as it happened."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """The first line: which session this is the journal of."""

    stamp: str
    commit: Mapping[str, str]
    machine: Machine
    code: str
    """Fingerprint of the code under test: a run has only one."""
    label: str


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """What a journal holds."""

    file: Path
    session: Session
    events: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]
    """Lines that could not be read; one at the end is what was being written when the session died."""


class Journal:
    """A journal that is being written. Its lock tells others that the session lives."""

    def __init__(self, file: Path) -> None:
        """Open or create ``file``.

        Raises:
            UnsavableRun: where it cannot be opened, or another session writes it.
        """
        self.file = file
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _unwritable(file, error) from error
        if not _lock_soon(self._descriptor):
            os.close(self._descriptor)
            raise UnsavableRun(f"{file.name} is the journal of a session that is still running: let it end first")
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.close)  # a loader's worker that lives on is no living session
        try:
            self._end_torn_line()
        except OSError as error:
            self.close()
            raise _unwritable(file, error) from error

    @classmethod
    def create(cls, folder: Path, session: Session) -> Journal:
        """A new journal in a machine's folder.

        Raises:
            UnsavableRun: where it cannot be written.
        """
        name = f"{session.stamp}-{session.commit['id'][:12]}-{secrets.token_hex(2)}{SUFFIX}"
        journal = cls(folder / name)
        journal.append({"event": "session", "schema": SCHEMA, **dataclasses.asdict(session)})
        try:
            sync_folder(folder)
        except OSError as error:
            raise _unwritable(journal.file, error) from error
        return journal

    def append(self, event: Mapping[str, Any]) -> None:
        """Write one event, and wait until it is on the disk.

        Raises:
            UnsavableRun: where the disk is full or broken; what was written before stays.
        """
        try:
            line = (json.dumps(event, allow_nan=False, separators=(",", ":"), default=str) + "\n").encode("ascii")
        except (ValueError, TypeError) as error:
            raise UnsavableRun(f"{self.file.name}: a benchmark has a value that JSON has not ({error})") from error
        before = os.fstat(self._descriptor).st_size
        try:
            while line:  # where the disk fills up, the attempt after a short one says why
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, before)
            raise _unwritable(self.file, error) from error

    def close(self) -> None:
        """Let go of the file, which stays for ``--perfgate-resume`` and ``perfgate recover``."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Its run is saved: nobody needs it any more."""
        self.file.unlink(missing_ok=True)
        self.close()

    def _end_torn_line(self) -> None:
        """What a killed session had half written must not swallow the next event."""
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")


def unfinished(folder: Path) -> list[Path]:
    """Journals of sessions that ended without saving their run, newest first; those of living sessions left out."""
    try:
        names = sorted((entry.name for entry in os.scandir(folder) if entry.name.endswith(SUFFIX)), reverse=True)
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in names if not _is_live(folder / name)]


def read_journal(file: Path) -> Unfinished:
    """All whole lines of a journal.

    Raises:
        UnreadableRun: where not even the first line tells which session it is of.
    """
    lines = read_bytes(file).decode("ascii", errors="replace").split("\n")  # one bad line must not hide the others
    session = parse_event(lines[0], f"{file}:1")
    if session["event"] != "session" or session["schema"] > SCHEMA:
        raise UnreadableRun(f"{file}: no journal of this version of perfgate (schema {SCHEMA}): update, or remove it")
    events, problems = [], []
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            try:
                events.append(parse_event(line, f"{file}:{number}"))
            except UnreadableRun as error:
                torn = "half written when the session ended" if number == len(lines) else str(error)
                problems.append(f"{file.name}, line {number}, left out: {torn}")
    known = {each.name for each in dataclasses.fields(Session)}
    fields = {key: value for key, value in session.items() if key in known}
    machine = Machine(**{key: fields["machine"][key] for key in ("slug", "hard", "soft")})
    header = Session(**{**fields, "machine": machine})
    return Unfinished(file=file, session=header, events=tuple(events), problems=tuple(problems))


def check_event(event: Any, source: str) -> dict[str, Any]:
    """``event`` itself, if it is one.

    Raises:
        UnreadableRun: naming the field that is wrong.
    """
    if not isinstance(event, dict) or event.get("event") not in tuple(EVENTS):  # a list has no hash
        raise UnreadableRun(f"{source}: no event of a journal")
    problem = check_shape(event, EVENTS[event["event"]], event["event"])
    if problem:
        raise UnreadableRun(f"{source}: {problem}")
    if event["event"] == "record":
        parse_record(event["record"], source)
    if event.get("stock") is not None:
        check_stock([event["stock"]], source)
    return event


def parse_event(line: str, source: str) -> dict[str, Any]:
    """The event in a line of JSON.

    Raises:
        UnreadableRun: where it is none.
    """
    return check_event(loads(line, source), source)


def _is_live(file: Path) -> bool:
    """Whether a session is writing it."""
    with _opened(file) as descriptor:
        return descriptor is not None and not lock(descriptor)


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[int | None]:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lock_soon(descriptor: int) -> bool:
    """:func:`lock`, with patience for those who only look whether the session lives."""
    for _ in range(LOOKS):
        if lock(descriptor):
            return True
        time.sleep(LOOK_SECONDS)
    return False


def _unwritable(file: Path, error: OSError) -> UnsavableRun:
    return UnsavableRun(
        f"cannot write the journal {file}: {error.strerror}: what was measured before is in it; free some space or "
        "make the folder writable, then go on with --perfgate-resume, or make a run of it: perfgate recover"
    )
