"""What to compare, as the command line asks, and how each measuring process is started for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfgate.launch import quiet_environment
from perfgate.pairs.checkouts import Checkout
from perfgate.pairs.side import Launch

FIRST_PAIRS, FRESH_PAIRS = 4, 8
"""Even, because the side that starts first can differ; chosen by ``python -m perfgate.verdict.power``: at the noise
measured (1-1.6 % of a pair), 2 + 4 alarms too often, 4 + 4 finds less where it is noisier, 6 + 8 costs half as much
again and finds little more."""
LIMIT_SECONDS = 900.0
BENCHES = "benches"
VALUED = {"-k", "-m", "-p", "-o", "-W", "-c"}
"""Options of pytest whose value is a word of its own, which may look like a path."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the command line asks for."""

    project: Path
    """The project's root."""
    base: str | None
    """A revision; ``None`` is the working tree."""
    head: str | None
    base_python: str = sys.executable
    head_python: str = sys.executable
    suite: str = ""
    """Path of another project's suite inside the checkouts; empty for benchmarks that use ``measure``."""
    prepare: str = ""
    """Shell command to run in each checkout first."""
    instrument: str = "head"
    """Whose perfgate and benchmarks measure: ``base`` or ``head``."""
    first: int = FIRST_PAIRS
    fresh: int = FRESH_PAIRS
    limit_seconds: float = LIMIT_SECONDS
    """Longest work of a process without handing back the turn."""
    wait_seconds: float = 0.0
    """How long to wait for a device that another suite measures on."""
    alternating: bool = True
    """Whether both processes are alive together and take rounds in turn."""
    arguments: Sequence[str] = ()
    """More arguments for pytest."""

    @property
    def differs_by_code_only(self) -> bool:
        """Whether two programs are compared, rather than two environments or, in a self-check, nothing."""
        return self.base != self.head and self.base_python == self.head_python


@dataclass(frozen=True, kw_only=True)
class Starter:
    """Starts the processes of one side."""

    name: str
    python: str
    folder: Path
    """Where pytest runs: the instrument's checkout, or the side's own for another project's suite."""
    imports: Path
    """Folder to import from before anything else."""
    paths: Sequence[str]
    arguments: Sequence[str]
    scratch: Path
    """For logs and caches."""
    limit_seconds: float

    def launch(self, number: int) -> Launch:
        """The process of pair ``number``."""
        command = [self.python, "-m", "pytest", *self.paths, f"--rootdir={self.folder}", "-q"]
        command += ["-p", "perfgate.plugin", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
        command += self.arguments
        return Launch(
            name=self.name,
            command=command,
            folder=self.folder,
            environment=self._environment(),
            log=self.scratch / f"{self.name}-{number}.log",
            limit_seconds=self.limit_seconds,
        )

    def _environment(self) -> dict[str, str]:
        environment = quiet_environment(os.environ)
        environment.pop("PYTEST_ADDOPTS", None)  # may save, compare or select: what is to be done is in the command
        path = [str(self.imports), *filter(None, [environment.get("PYTHONPATH", "")])]
        environment["PYTHONPATH"] = os.pathsep.join(path)
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        # one cache of compiled code per side: cold in its first process only, since compile time is not compared
        environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(self.scratch / f"{self.name}-compiled"))
        return environment


def starter(wanted: Wanted, side: Checkout, instrument: Checkout, imports: Path, scratch: Path) -> Starter:
    """How to start the processes of ``side``."""
    own = bool(wanted.suite)
    python = wanted.base_python if side.name == "base" else wanted.head_python
    folder = side.root if own else instrument.root
    named = any(_paths(wanted.arguments, folder))
    paths = [wanted.suite] if own else [] if named else [BENCHES]
    return Starter(
        name=side.name,
        python=_interpreter(python, side.root),
        folder=folder,
        imports=imports,
        paths=paths,
        arguments=[*([] if own else ["-o", f"pythonpath={imports}"]), *wanted.arguments],
        scratch=scratch,
        limit_seconds=wanted.limit_seconds,
    )


def _interpreter(python: str, checkout: Path) -> str:
    """A relative path is of the checkout, which may have made its own, or else of the user's folder."""
    if "/" not in python or Path(python).is_absolute():
        return python
    inside = checkout / python
    return str(inside if inside.is_file() else Path(python).absolute())


def _paths(arguments: Sequence[str], folder: Path) -> Iterator[str]:
    """Of pytest's arguments, those that name something to collect, and are not the value of an option."""
    for before, word in zip(["", *arguments], arguments, strict=False):
        value = before in VALUED
        if not word.startswith("-") and not value and (folder / word.partition("::")[0]).exists():
            yield word
