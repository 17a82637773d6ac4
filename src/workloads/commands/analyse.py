"""``python -m workloads analyse``: what a training step is made of, and how much of the machine it uses."""

from __future__ import annotations

import argparse

import torch
from rich.console import Console

from workloads.analysis import analyse
from workloads.commands import choices
from workloads.commands.analysis_tables import tables
from workloads.workload import Unsuitable

COMPILED = "compiled: FLOPs, traffic and what memory is for are counted on the eager program; times and peak are not"
HELP = "show parameters, FLOPs, memory, time, roofline and scaling of a training step"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser)
    choices.add_optimizations(parser)
    parser.add_argument("--rounds", type=int, default=10, metavar="N", help="of each timed part, after a warm-up")
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Analyse as asked, printing a table for each question."""
    choices.use_data_folder(arguments)
    if arguments.rounds < 1:
        raise Unsuitable(f"--rounds must be at least 1, got {arguments.rounds}")
    workload = choices.choose_workload(arguments.workload, arguments.data, arguments.batch_size)
    optimizations = choices.choose_optimizations(arguments.optimizations)
    device = choices.choose_device(arguments.device)
    stack = ", ".join(map(str, optimizations)) or "none"
    threads = torch.get_num_threads()
    console.print(f"{workload} on {device.type} with {threads} CPU threads, optimizations: {stack}")
    with console.status("") as status:
        found = analyse(workload, optimizations, device=device, rounds=arguments.rounds, say=status.update)
    if any(each.compiled for each in optimizations):
        console.print(COMPILED)
    for table in tables(workload, found):
        console.print()
        console.print(table)
