"""``perfgate recover``: make runs of what killed sessions had measured."""

from __future__ import annotations

import argparse
from pathlib import Path

from perfgate.errors import ResultsError
from perfgate.verdict.verdicts import PASSED, USAGE_ERROR


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "recover",
        help="make a run of what a killed session had measured",
        description="Save what sessions had measured that were killed, each as a run of its own, and remove their "
        "journals. Such a run is marked as interrupted and never a baseline. To go on measuring instead: "
        "pytest benches/ --perfgate-resume",
    )
    parser.add_argument("--results", metavar="DIR", type=Path, help="folder of saved runs (default: the project's)")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Recover all unfinished sessions of all machines; the exit code."""
    from perfgate import settings
    from perfgate.commands.ab import find_project
    from perfgate.keeping import recover
    from perfgate.results.journal import unfinished
    from perfgate.results.store import Store

    root = options.results
    if root is None:
        project = find_project(Path.cwd())
        root = project / settings.load(project).results
    elif not root.is_dir():
        print(f"perfgate: --results {root}: there is no such folder")
        return USAGE_ERROR
    store = Store(root.absolute())
    folders = sorted(root.iterdir()) if root.is_dir() else []
    files = [file for folder in folders if folder.is_dir() for file in unfinished(folder)]
    if not files:
        print("perfgate: no session was killed: nothing to recover")
    code = PASSED
    for file in files:
        try:
            print(f"perfgate: {recover(store, file)}")
        except ResultsError as error:
            print(f"perfgate: {error}")
            code = USAGE_ERROR
    return code
