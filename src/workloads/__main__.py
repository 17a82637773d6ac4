"""``python -m workloads train``: really train a workload with any stack of optimizations."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from workloads.models import CATALOGUE as WORKLOADS
from workloads.optimizations import CATALOGUE as OPTIMIZATIONS
from workloads.training import Epoch, train
from workloads.workload import Optimization, Unsuitable, Workload

USAGE_ERROR = 2


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m workloads", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train", help="train and show throughput, memory and accuracy per epoch")
    training.add_argument(
        "--workload", default="resnet18-cifar-tv", choices=WORKLOADS, metavar="NAME", help=_names(WORKLOADS)
    )
    training.add_argument(
        "--optimizations", default="", metavar="A,B,...", help=f"stack to train with; {_names(OPTIMIZATIONS)}"
    )
    training.add_argument(
        "--data", default="digits", metavar="SOURCE", help="digits (built in), photos, cifar10, synthetic"
    )
    training.add_argument(
        "--data-folder", metavar="DIR", help="folder that holds cifar-10-batches-py; also PERFGATE_DATA"
    )
    training.add_argument(
        "--download", action="store_true", help="allow CIFAR-10 to be downloaded into the data folder"
    )
    training.add_argument("--epochs", type=int, default=5, metavar="N")
    training.add_argument("--batch-size", type=int, metavar="N", help="default: the workload's own")
    training.add_argument(
        "--learning-rate", type=float, default=0.05, metavar="LR", help="peak of the one-cycle schedule"
    )
    training.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    return parser


def _names(catalogue: Iterable[str]) -> str:
    return "one of: " + ", ".join(catalogue)


def choose_workload(name: str, data: str, batch_size: int | None) -> Workload:
    """The catalogue's workload on another source, with another batch size where given."""
    changes: dict[str, Any] = {"data": data}
    if batch_size is not None:
        changes["batch_size"] = batch_size
    return dataclasses.replace(WORKLOADS[name], **changes)


def choose_optimizations(names: str) -> tuple[Optimization, ...]:
    """The catalogue's instances of a comma-separated list.

    Raises:
        Unsuitable: for a name that is not in the catalogue.
    """
    chosen = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in OPTIMIZATIONS]
    if unknown:
        raise Unsuitable(f"no optimization is called {', '.join(unknown)}; {_names(OPTIMIZATIONS)}")
    return tuple(OPTIMIZATIONS[name] for name in chosen)


def choose_device(name: str) -> torch.device:
    """The device asked for.

    Raises:
        Unsuitable: for cuda where torch sees no GPU.
    """
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise Unsuitable("--device cuda: torch sees no CUDA GPU here; use cpu, or check nvidia-smi")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def run_training(arguments: argparse.Namespace, console: Console) -> None:
    """Train as asked, printing a line per epoch."""
    if arguments.data_folder:
        os.environ["PERFGATE_DATA"] = arguments.data_folder
    if arguments.download:
        os.environ["PERFGATE_DOWNLOAD"] = "1"
    if arguments.epochs < 1:
        raise Unsuitable(f"--epochs must be at least 1, got {arguments.epochs}")
    workload = choose_workload(arguments.workload, arguments.data, arguments.batch_size)
    optimizations = choose_optimizations(arguments.optimizations)
    device = choose_device(arguments.device)
    stack = ", ".join(map(str, optimizations)) or "none"
    threads = torch.get_num_threads()
    console.print(f"{workload} on {device.type} with {threads} CPU threads, optimizations: {stack}")
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
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
                console.print("epoch    loss  accuracy  samples/s  peak memory")
            console.print(describe(epoch))


def describe(epoch: Epoch) -> str:
    """One line of the table."""
    memory = f"{epoch.peak_bytes / 2**20:,.0f} MiB"
    return (
        f"{epoch.number:5d}  {epoch.loss:6.3f}  {epoch.accuracy:7.1%}  {epoch.samples_per_second:9,.0f}  {memory:>11}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parsed = make_parser().parse_args(arguments)
    try:
        run_training(parsed, Console(highlight=False))
    except Unsuitable as error:
        print(f"workloads: {error}", file=sys.stderr)
        return USAGE_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
