"""``perfgate clean``: temporary files that killed processes left among the saved runs."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import ResultsError

if TYPE_CHECKING:
    from perfgate.results.store import Store

OLDEST_SECONDS = 24 * 3600  # a younger one may belong to a process that is writing
DESCRIPTION = """\
Remove temporary files that killed processes left in the folder of saved runs, one day after they were written. Says
which, and removes them with --yes. Runs, journals, links and folders are not touched.

  perfgate clean                           what would be removed
  perfgate clean --yes                     remove it
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    from perfgate.commands.runs import add_results_option

    parser = commands.add_parser(
        "clean",
        help="remove left-over temporary files",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit code: 0 done, or nothing to do; 2 usage, or a file could not be removed",
    )
    parser.add_argument("--yes", action="store_true", help="remove them")
    add_results_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Say what is left over, remove it where asked, and give the exit code."""
    from perfgate.commands.runs import results_of, terminal_columns
    from perfgate.report.runs import cleaning
    from perfgate.results.store import Store

    found = list(left_over(Store(results_of(options)), now_seconds=time.time()))
    for line in cleaning(found, columns=terminal_columns()):
        print(line)
    if not found:
        return 0
    if not options.yes:
        print("nothing was removed; add --yes")
        return 0
    for file, _ in found:
        _remove(file)
    print(f"{len(found)} removed")
    return 0


def left_over(store: Store, *, now_seconds: float) -> Iterator[tuple[Path, int]]:
    """Old temporary files with their bytes, in the folder itself and in machines' folders.

    Raises:
        ResultsError: where a folder cannot be read, or is a link that leads elsewhere.
    """
    from perfgate.commands.runs import chosen_machines, reading
    from perfgate.results.writer import TEMPORARY

    store.machines()  # refuses links that lead out of where they belong
    folders = [store.root, *(store.root / machine for machine in chosen_machines(store, None))]
    for folder in filter(Path.is_dir, folders):
        with reading(folder), os.scandir(folder) as entries:
            names = sorted(
                each.name for each in entries if each.name.startswith(TEMPORARY) and each.is_file(follow_symlinks=False)
            )
        for name in names:
            try:
                status = (folder / name).lstat()
            except FileNotFoundError:  # its process has just finished
                continue
            if now_seconds - status.st_mtime > OLDEST_SECONDS:
                yield folder / name, status.st_size


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise ResultsError(f"cannot remove {file}: {error.strerror}: make its folder writable") from error
