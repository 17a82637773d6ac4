"""What differs between base and head, and whether any of it runs in what is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from perfgate.pairs.checkouts import runs_differently
from perfgate.pairs.plan import BENCHES

SHOWN_FILES = 3
INSTRUMENT = ("src/perfgate", BENCHES, "conftest.py", "pyproject.toml")
"""Serves both sides, whatever differs in it."""
DEVELOPMENT = ("tests", "tools", "tox.ini", "Makefile", ".ci", ".gitignore", ".gitattributes")
"""Runs in no benchmark."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """The files that differ, relative to the project's root."""

    files: tuple[str, ...]
    packages: str
    """Folder whose packages each side has of its own, such as ``src``; empty for another project's suite, where each
    side has everything of its own."""
    results: str
    """Folder of saved runs."""

    @cached_property
    def running(self) -> list[str]:
        """Files that are no documents."""
        return runs_differently(self.files, self.results)

    @cached_property
    def compared(self) -> list[str]:
        """Files that each side has of its own."""
        if not self.packages:
            return self.running
        return [name for name in self.running if _within(name, self.packages) and not _within(name, "src/perfgate")]

    @property
    def elsewhere(self) -> list[str]:
        """Files that could matter and of which both sides have the same: dependencies, another project's library."""
        served = (*INSTRUMENT, *DEVELOPMENT)
        return [
            name
            for name in self.running
            if name not in self.compared and not any(_within(name, each) for each in served)
        ]

    @property
    def is_idle(self) -> bool:
        """Whether nothing that is measured, or could matter to it, differs."""
        return not self.compared and not self.elsewhere

    @property
    def touches_benchmarks(self) -> bool:
        """Whether benchmarks may have come or gone."""
        return bool(self.packages) and any(_within(name, BENCHES) for name in self.running)

    def notes(self, instrument: str) -> Iterator[str]:
        """What to know about the comparison; ``instrument`` is the side whose perfgate and benchmarks measure."""
        own = [name for name in self.running if any(_within(name, each) for each in INSTRUMENT)]
        if self.packages and own:
            yield f"the change touches instrument or benchmarks ({_some(own)}): those of {instrument} measure both"
        if self.packages and self.elsewhere:
            yield f"changed, but the same on both sides of this comparison: {_some(self.elsewhere)}"
        if any(_within(name, self.results) for name in self.files):
            yield f"the change touches {self.results}/: saved runs, the ledger or what is accepted"


def _within(name: str, folder: str) -> bool:
    return PurePosixPath(name).is_relative_to(folder)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return ", ".join(names[:SHOWN_FILES]) + more
