"""The folder of saved runs: ``<root>/<machine>/<UTC stamp>-<commit 12>-<random 4>.json``, one file per run.

Names sort by time and need no counter, so that any number of writers can save at once and files stay the truth.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from perfgate.errors import ResultsError, UnreadableRun, UnsavableRun
from perfgate.results.document import dumps, parse, to_document
from perfgate.results.record import Run

NAME = re.compile(r"\d{8}T\d{9}Z-[0-9a-z]{1,12}-[0-9a-f]{4}\.json")
MACHINE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
SIZE_LIMIT_BYTES = 64 * 2**20


@dataclasses.dataclass(frozen=True)
class Store:
    """Saved runs below ``root``."""

    root: Path

    def machines(self) -> list[str]:
        """Slugs of the machines that have runs here."""
        try:
            folders = [entry.name for entry in os.scandir(self.root) if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return sorted(name for name in folders if MACHINE.fullmatch(name) and any(True for _ in self.files(name)))

    def files(self, machine: str) -> Iterator[Path]:
        """A machine's runs, newest first, by name: no file is opened."""
        try:
            names = sorted((entry.name for entry in os.scandir(self.root / machine)), reverse=True)
        except (FileNotFoundError, NotADirectoryError):
            return iter(())
        return (self.root / machine / name for name in names if NAME.fullmatch(name))

    def probe(self, machine: str) -> None:
        """Write and remove a file where the run will go, before an hour is spent measuring.

        Raises:
            UnsavableRun: with the remedy.
        """
        folder = self._folder(machine)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder, prefix=".tmp-") as file:
                file.write(b"probe")
        except OSError as error:
            raise _unsavable(folder, error) from error

    def save(self, run: Run, stock: Mapping[str, Any]) -> Path:
        """Write the run atomically under a new name.

        Raises:
            UnsavableRun: where it could not be written; nothing else is touched.
        """
        folder = self._folder(run.machine.slug)
        try:
            content = dumps(to_document(run, stock))
        except ValueError as error:
            raise UnsavableRun(
                f"a benchmark has a value that is no finite number ({error}): nothing was saved"
            ) from error
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return _write_new(folder, f"{run.stamp}-{run.commit['id'][:12]}", content)
        except OSError as error:
            raise _unsavable(folder, error) from error

    def _folder(self, machine: str) -> Path:
        if not MACHINE.fullmatch(machine):
            raise ResultsError(
                f"{machine!r} cannot name a machine's folder: letters, digits, '.', '_', '-' are allowed"
            )
        return self.root / machine


def read(file: Path) -> Run:
    """The run in ``file``.

    Raises:
        UnreadableRun: where it is no regular file, too large, not UTF-8, or not a valid run.
    """
    text = read_text(file)
    return dataclasses.replace(parse(text, str(file)), digest=hashlib.sha256(text.encode()).hexdigest())


def read_text(file: Path) -> str:
    """The text of a file that comes from outside.

    Raises:
        UnreadableRun: where it is no regular file, too large, empty, or not UTF-8.
    """
    try:
        descriptor = os.open(
            file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        )  # a FIFO must not block, a link not lead
    except OSError as error:
        reason = "is a link: only regular files are read" if error.errno == errno.ELOOP else error.strerror
        raise UnreadableRun(f"{file}: {reason}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableRun(f"{file}: not a regular file")
        if status.st_size > SIZE_LIMIT_BYTES:
            raise UnreadableRun(f"{file}: {status.st_size:,} bytes, more than the limit of {SIZE_LIMIT_BYTES:,}")
        with open(descriptor, "rb", closefd=False) as stream:
            content = stream.read()
    finally:
        os.close(descriptor)
    if not content.strip():
        raise UnreadableRun(f"{file}: the file is empty")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableRun(f"{file}: not UTF-8 text: {error.reason} at byte {error.start}") from error


def _write_new(folder: Path, stem: str, content: bytes) -> Path:
    """Temporary file in the same folder, fsync, link under a name that does not exist yet, fsync the folder."""
    with _temporary_file(folder, content) as temporary:
        target = _link(temporary, folder, stem)
    _sync_folder(folder)
    return target


def replace_file(file: Path, content: bytes) -> Path:
    """Write ``content`` to ``file``, which has its old content or the new one at any moment.

    Raises:
        UnsavableRun: where it could not be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _temporary_file(file.parent, content) as temporary:
            os.replace(temporary, file)
        _sync_folder(file.parent)
    except OSError as error:
        raise _unsavable(file.parent, error) from error
    return file


@contextmanager
def _temporary_file(folder: Path, content: bytes) -> Iterator[Path]:
    """``content`` on disk in a file that is removed in the end, unless it was moved."""
    descriptor, name = tempfile.mkstemp(dir=folder, prefix=".tmp-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fchmod(descriptor, 0o666 & ~_umask())
            os.fsync(descriptor)
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(temporary: Path, folder: Path, stem: str) -> Path:
    while True:
        target = folder / f"{stem}-{secrets.token_hex(2)}.json"
        try:
            os.link(temporary, target)
        except FileExistsError:
            continue
        return target


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _unsavable(folder: Path, error: OSError) -> UnsavableRun:
    remedy = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "make it writable"
    return UnsavableRun(
        f"cannot save runs in {folder}: {error.strerror}: {remedy}, or name another folder with --perfgate-results"
    )
