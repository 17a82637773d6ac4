"""``python -m workloads analyse``: what a training step is made of, and how much of the machine it uses."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workloads.commands import choices

if TYPE_CHECKING:
    from rich.console import Console

COMPILED = "compiled: FLOPs, traffic and what memory is for are counted on the eager program; times and peak are not"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser)
    choices.add_optimizations(parser)
    parser.add_argument(
        "--rounds", type=int, default=10, metavar="N", help="of each timed part, after a warm-up; default: 10"
    )
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Analyse as asked, printing a table for each question."""
    from workloads.analysis import analyse
    from workloads.commands.analysis_tables import tables

    choices.at_least_one("--rounds", arguments.rounds)
    workload, device = choices.subject(arguments)
    optimizations = choices.choose_optimizations(arguments.optimizations)
    console.print(choices.headline(workload, optimizations, device))
    with console.status("") as status:
        found = analyse(workload, optimizations, device=device, rounds=arguments.rounds, say=status.update)
    if any(each.compiled for each in optimizations):
        console.print(COMPILED)
    for table in tables(workload, found):
        console.print()
        console.print(table)
