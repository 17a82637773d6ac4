"""``perfgate compare``: verdicts of saved files, anywhere."""

from __future__ import annotations

import argparse
import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import SettingsError

if TYPE_CHECKING:
    from perfgate.results.ledger import Ledger
    from perfgate.results.record import Run

DESCRIPTION = """\
Judge saved runs: perfgate's own, or plain pytest-benchmark files of any project (times only, machine unknown).

  perfgate compare A.json B.json           one run against one
  perfgate compare A/*.json B/*.json       folders: all of A against all of B
  perfgate compare A B                     the same
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    from perfgate.commands.output import add_output_options

    parser = commands.add_parser(
        "compare",
        help="judge saved files",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit code: 0 no regression, 1 regression, 2 usage or unreadable file, 3 something could not be judged",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="base first, then head")
    add_output_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Compare, print, and give the exit code."""
    from perfgate import settings
    from perfgate.commands.ab import find_project
    from perfgate.commands.output import publish
    from perfgate.report.comparison import Comparison
    from perfgate.results.foreign import read_any
    from perfgate.verdict.files import compare_files

    base_files, head_files = split(options.files)
    bases, heads = [read_any(file) for file in base_files], [read_any(file) for file in head_files]
    project = find_project(Path.cwd())
    chosen = settings.load(project)
    verdicts, notes = compare_files(bases, heads, chosen, _ledger(project / chosen.results, heads))
    comparison = Comparison(
        title=f"{_names(base_files)} -> {_names(head_files)}", verdicts=verdicts, strict=options.strict, notes=notes
    )
    about = {"command": "compare", "base": [*map(str, base_files)], "head": [*map(str, head_files)], "notes": notes}
    return publish(comparison, options, about)


def split(names: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Base and head: the two files named, or the files of the two folders that they lie in.

    Raises:
        SettingsError: where the names are not of two sides.
    """
    if len(names) == 2:
        one, two = (_expand(name) for name in names)
    else:
        folders: dict[Path, list[Path]] = {}
        for name in names:
            for file in _expand(name):
                folders.setdefault(file.parent, []).append(file)
        if len(folders) != 2:
            raise SettingsError(
                f"compare needs two files, or files of two folders (base first), and got {len(names)} of "
                f"{len(folders)} folders"
            )
        one, two = folders.values()
    return one, two


def _expand(name: str) -> list[Path]:
    path = Path(name)
    try:
        if path.is_dir():
            found = sorted(file for file in path.glob("*.json") if file.name != "ledger.json")
        else:
            found = [path] if path.exists() else [Path(each) for each in sorted(glob.glob(name))]  # noqa: PTH207 - a pattern
    except OSError:  # no such name is possible
        found = []
    if not found:
        raise SettingsError(f"{name:.200}: no such file, folder with JSON files, or pattern that matches one")
    return found


def _ledger(results: Path, heads: Sequence[Run]) -> Ledger:
    from perfgate.results.ledger import read_ledger

    return read_ledger(results / heads[0].machine.slug)


def _names(files: Sequence[Path]) -> str:
    return str(files[0]) if len(files) == 1 else f"{len(files)} runs in {files[0].parent}"
