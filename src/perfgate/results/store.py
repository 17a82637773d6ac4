"""The folder of saved runs: ``<root>/<machine>/<UTC stamp>-<commit 12>-<random 4>.json``, one file per run.

Names sort by time and need no counter, so that any number of writers can save at once and files stay the truth.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from perfgate.errors import ResultsError, StrayLink, UnsavableRun
from perfgate.results.document import dumps, parse, to_document
from perfgate.results.reader import decode, no_permission, read_bytes
from perfgate.results.record import MACHINE_NAME, Run
from perfgate.results.writer import try_out, unsavable, write_new

NAME = re.compile(r"(?P<stamp>\d{8}T\d{9}Z)-(?P<commit>[0-9a-z]{1,12})-[0-9a-f]{4}\.json", re.ASCII)


@dataclasses.dataclass(frozen=True)
class Store:
    """Saved runs below ``root``."""

    root: Path

    def machines(self) -> list[str]:
        """Slugs of the machines that have runs here.

        Raises:
            ResultsError: where the folder may not be read or is a link that leads elsewhere.
        """
        self._refuse_stray_link(self.root, self.root.parent)
        folders = [entry.name for entry in _entries(self.root) if entry.is_dir(follow_symlinks=False)]
        return sorted(name for name in folders if MACHINE_NAME.fullmatch(name) and any(True for _ in self.files(name)))

    def files(self, machine: str) -> Iterator[Path]:
        """A machine's runs, newest first, by name: no file is opened.

        Raises:
            ResultsError: where the folder may not be read, is a link that leads elsewhere, or cannot be named so.
        """
        folder = self._folder(machine)
        names = sorted((entry.name for entry in _entries(folder)), reverse=True)
        return (folder / name for name in names if NAME.fullmatch(name))

    def probe(self, machine: str) -> None:
        """Write, sync, link and remove a file where the run will go, before an hour is spent measuring.

        Raises:
            UnsavableRun: with the remedy.
            ResultsError: where the folder is a link that leads elsewhere, or cannot be named so.
        """
        folder = self._folder(machine)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            try_out(folder)
        except OSError as error:
            raise unsavable(folder, error) from error

    def save(self, run: Run, stock: Mapping[str, Any]) -> Path:
        """Write the run atomically under a new name.

        Raises:
            UnsavableRun: where it could not be written; nothing else is touched.
            ResultsError: where the folder is a link that leads elsewhere, or cannot be named so.
        """
        folder = self._folder(run.machine.slug)
        try:
            content = dumps(to_document(run, stock))
        except (ValueError, TypeError, RecursionError) as error:
            raise UnsavableRun(
                f"a benchmark has a value that is no finite number, or that JSON cannot hold ({error}): nothing was "
                "saved; look at its extra_info"
            ) from error
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return write_new(folder, f"{run.stamp}-{run.commit['id'][:12]}", content)
        except OSError as error:
            raise unsavable(folder, error, size_bytes=len(content)) from error

    def _folder(self, machine: str) -> Path:
        if not MACHINE_NAME.fullmatch(machine):
            raise ResultsError(
                f"{machine!r} cannot name a machine's folder: letters, digits, '.', '_', '-' are allowed"
            )
        folder = self.root / machine
        self._refuse_stray_link(self.root, self.root.parent)
        self._refuse_stray_link(folder, self.root)
        return folder

    @staticmethod
    def _refuse_stray_link(folder: Path, home: Path) -> None:
        """Whoever plants a link must not make us read or write elsewhere."""
        try:
            if not folder.is_symlink():
                return
            target = folder.resolve()
        except PermissionError as error:
            raise no_permission(folder) from error
        except (OSError, RuntimeError) as error:  # links in a circle
            raise StrayLink(f"{folder} is a link that leads nowhere ({error}): remove it") from error
        if not target.is_relative_to(home.resolve()):
            raise StrayLink(
                f"{folder} is a link to {target}, out of {home.resolve()}: remove the link, or name the folder itself "
                "with --perfgate-results"
            )


def read(file: Path) -> Run:
    """The run in ``file``.

    Raises:
        UnreadableRun: one of the kinds below it, where it is no regular file, too large, not UTF-8, or no valid run.
    """
    content = read_bytes(file)
    run = parse(decode(content, str(file)), str(file))
    return dataclasses.replace(run, digest=hashlib.sha256(content).hexdigest())


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing where there is no such folder.

    Raises:
        ResultsError: where it is no folder, or may not be read.
    """
    try:
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []
    except NotADirectoryError as error:
        raise ResultsError(f"{folder}: a folder of runs is expected, and this is none: move it away") from error
    except PermissionError as error:
        raise no_permission(folder) from error
