"""``python -m workloads train``: really train a workload with any stack of optimizations."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workloads.commands import choices

if TYPE_CHECKING:
    from rich.console import Console

    from workloads.training import Epoch


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser)
    choices.add_optimizations(parser)
    parser.add_argument("--epochs", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument(
        "--learning-rate", type=float, default=0.05, metavar="LR", help="peak of the one-cycle schedule; default: 0.05"
    )
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Train as asked, printing a line per epoch."""
    from workloads.training import train

    choices.at_least_one("--epochs", arguments.epochs)
    choices.above_zero("--learning-rate", arguments.learning_rate)
    workload, device = choices.subject(arguments)
    optimizations = choices.choose_optimizations(arguments.optimizations)
    console.print(choices.headline(workload, optimizations, device))
    with choices.progress_bar(console) as bar:
        epochs = train(
            workload,
            optimizations,
            device=device,
            epochs=arguments.epochs,
            learning_rate=arguments.learning_rate,
            progress=lambda items, total, text: bar.track(items, total=total, description=text),
        )
        for epoch in epochs:
            if epoch.number == 1:
                memory = "peak memory" if device.type == "cuda" else "process peak"  # all of it, torch included
                console.print(f"epoch    loss  accuracy  samples/s  {memory:>12}")
            console.print(describe(epoch))


def describe(epoch: Epoch) -> str:
    """One line of the table."""
    memory = f"{epoch.peak_bytes / 2**20:,.0f} MiB"
    return (
        f"{epoch.number:5d}  {epoch.loss:6.3f}  {epoch.accuracy:7.1%}  {epoch.samples_per_second:9,.0f}  {memory:>12}"
    )
