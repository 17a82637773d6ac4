"""``perfgate list``: what is saved, newest first; also where the other commands on saved runs find their folder."""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import ResultsError, SettingsError, UnreadableRun

if TYPE_CHECKING:
    from perfgate.report.runs import SavedRun
    from perfgate.results.store import Store

SHOWN = 20
DESCRIPTION = """\
Saved runs of each machine, newest first, and journals of runs that were not finished.

  perfgate list                            the newest 20 of each machine
  perfgate list -n 3 --machine amd-epyc-2c-x86-64
  perfgate list --all                      every file, by its name: none is opened
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "list",
        help="list saved runs",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit code: 0, also where a file is unreadable; 2 usage",
    )
    parser.add_argument("-n", type=int, default=SHOWN, metavar="N", help=f"runs of each machine (default {SHOWN})")
    parser.add_argument("--all", action="store_true", help="all runs, by what their names tell")
    add_machine_option(parser)
    add_results_option(parser)
    parser.set_defaults(run=run)


def add_machine_option(parser: argparse.ArgumentParser) -> None:
    """``--machine``."""
    parser.add_argument("--machine", metavar="SLUG", help="only this machine's folder (default: all)")


def add_results_option(parser: argparse.ArgumentParser) -> None:
    """``--results``."""
    parser.add_argument("--results", metavar="DIR", help="folder of saved runs (default: that of the project)")


def run(options: argparse.Namespace) -> int:
    """Print the runs, and give the exit code."""
    from perfgate.report.runs import SavedRuns, listing
    from perfgate.results.store import Store

    if options.n < 0:
        raise SettingsError(f"-n {options.n}: a number from 0 on is expected")
    store = Store(results_of(options))
    empty = True
    for machine in chosen_machines(store, options.machine):
        with reading(store.root / machine):
            count = sum(1 for _ in store.files(machine))
            left = journals(store, machine)
        found = SavedRuns(machine=machine, count=count, runs=_runs(store, machine, options), journals=left)
        if count or found.journals:
            empty = False
            for line in listing(found, columns=terminal_columns()):
                print(line)
    if empty:
        print(f"no saved run in {store.root}; make one: pytest benches/ --benchmark-compare")
    return 0


def _runs(store: Store, machine: str, options: argparse.Namespace) -> Iterator[SavedRun]:
    files = store.files(machine)
    if options.all:
        return map(by_name, files)
    return map(opened, itertools.islice(files, options.n))


def by_name(file: Path) -> SavedRun:
    """What a file's name and size tell."""
    from perfgate.report.runs import SavedRun

    try:
        size_bytes = file.lstat().st_size
    except OSError:  # removed since the folder was read
        size_bytes = None
    return SavedRun(name=file.name, size_bytes=size_bytes, commit=file.name.split("-")[1])


def opened(file: Path) -> SavedRun:
    """What is in a file; only the little that is shown is kept of it."""
    import dataclasses

    from perfgate.results.store import read

    known = by_name(file)
    try:
        found = read(file)
    except UnreadableRun as error:
        return dataclasses.replace(known, problem=str(error).removeprefix(f"{file}: "))
    dirty = {"yes": ", dirty", "no": ""}.get(found.commit["dirty"], ", dirty or not: unknown")
    count = len(found.records)
    benchmarks = f"{count} benchmark{'' if count == 1 else 's'}"
    facts = (f"{found.commit['branch']}{dirty}", benchmarks, found.status, *([found.label] if found.label else []))
    return dataclasses.replace(known, commit=found.commit["id"][:12], facts=facts)


def journals(store: Store, machine: str) -> list[tuple[str, int]]:
    """Names and bytes of what killed sessions of a machine left, newest first; a living one's is nobody else's."""
    from perfgate.results.journal import unfinished

    return [(file.name, file.lstat().st_size) for file in unfinished(store.root / machine)]


def results_of(options: argparse.Namespace) -> Path:
    """The folder of saved runs: the one named, or that of the project.

    Raises:
        SettingsError: where a folder is named that is not there, or the project's settings are wrong.
    """
    from perfgate import settings
    from perfgate.commands.ab import find_project

    if options.results is None:
        project = find_project(Path.cwd())
        return project / settings.load(project).results
    folder = Path(options.results)
    if not folder.is_dir():
        raise SettingsError(f"--results {options.results:.200}: no such folder; name one that has machines' folders")
    return folder


def chosen_machines(store: Store, wanted: str | None) -> list[str]:
    """Names of machines' folders, also of those without runs; only ``wanted`` where it is given.

    Raises:
        SettingsError: where there is no such folder, with those that are there.
        ResultsError: where the folder of all of them cannot be read.
    """
    from perfgate.results.record import MACHINE_NAME

    names: list[str] = []
    if store.root.is_dir():
        with reading(store.root), os.scandir(store.root) as entries:
            names = sorted(
                each.name
                for each in entries
                if each.is_dir(follow_symlinks=False) and MACHINE_NAME.fullmatch(each.name)
            )
    if wanted is None:
        return names
    if wanted not in names:
        raise SettingsError(
            f"--machine {wanted:.80}: no such folder in {store.root}; there are: {', '.join(names) or 'none'}"
        )
    return [wanted]


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Around what lists a folder.

    Raises:
        ResultsError: where it cannot be listed, with the remedy.
    """
    try:
        yield
    except OSError as error:
        raise ResultsError(f"cannot read {folder}: {error.strerror}: make it readable for this user") from error


def terminal_columns() -> int:
    """Of the terminal, or what COLUMNS says."""
    return shutil.get_terminal_size().columns
