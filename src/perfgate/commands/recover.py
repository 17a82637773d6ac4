"""``perfgate recover``: make runs of what killed sessions had measured."""

from __future__ import annotations

import argparse

from perfgate.errors import ResultsError
from perfgate.verdict.verdicts import PASSED, USAGE_ERROR


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    from perfgate.commands.runs import add_results_option

    parser = commands.add_parser(
        "recover",
        help="make a run of what a killed session had measured",
        description="Save what sessions had measured that were killed, each as a run of its own, and remove their "
        "journals. Such a run is marked as interrupted and never a baseline. To go on measuring instead: "
        "pytest benches/ --perfgate-resume",
    )
    add_results_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Recover all unfinished sessions of all machines; the exit code."""
    from perfgate.commands.runs import results_of
    from perfgate.keeping import recover
    from perfgate.results.journal import unfinished
    from perfgate.results.store import Store

    root = results_of(options)
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
