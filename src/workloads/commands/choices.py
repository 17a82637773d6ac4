"""What every command lets its user choose: workload, data, optimizations, device."""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import math
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from rich.console import Console
    from rich.progress import Progress

    from workloads.workload import Optimization, Workload

NAMES = ("mlp", "resnet18-cifar-tv", "resnet18-cifar", "resnet50", "vit-b16", "transformer", "gpt2")
"""Of the catalogue's workloads, for the help text, which is shown before torch is loaded; a test compares them."""
USUAL_DATA = "digits"
"""Real, and built in."""
OPTIONS = {
    "PERFGATE_DATA": "--data-folder",
    "PERFGATE_DOWNLOAD=1": "--download",
    ". You can use download=True to download it": "",
}
"""What this command line has for the variables that messages name, and for an argument of torchvision's."""


def add_workload(
    parser: argparse.ArgumentParser, *, default: str = "resnet18-cifar-tv", data: str | None = None
) -> None:
    """Options that name a workload and its data; ``data`` is the source where none is named."""
    known = f"{one_of(NAMES)}; or your own as module:NAME; default: {default}"
    parser.add_argument("--workload", default=default, metavar="NAME", help=known)
    parser.add_argument(
        "--data",
        metavar="SOURCE",
        default=data,
        help=f"{USUAL_DATA} (built in), photos, cifar10, synthetic; "
        f"default: {data or f'{USUAL_DATA}, or what the workload has'}",
    )
    parser.add_argument(
        "--data-folder", metavar="DIR", help="folder that holds cifar-10-batches-py; also PERFGATE_DATA"
    )
    parser.add_argument("--download", action="store_true", help="allow CIFAR-10 to be downloaded into the data folder")
    parser.add_argument("--batch-size", type=int, metavar="N", help="default: the workload's own")


def add_device(parser: argparse.ArgumentParser) -> None:
    """The option that names a device."""
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])


def add_optimizations(parser: argparse.ArgumentParser) -> None:
    """The option that names a stack."""
    known = "stack to use, such as amp-bf16,channels-last; python -m workloads techniques lists them all"
    parser.add_argument("--optimizations", default="", metavar="A,B,...", help=known)


def in_options(message: str) -> str:
    """``message`` with the options of this command line in place of the variables that stand for them."""
    for variable, option in OPTIONS.items():
        message = message.replace(variable, option)
    return message


def one_of(catalogue: Iterable[str]) -> str:
    """All of them, for a help text."""
    return "one of: " + ", ".join(catalogue)


def use_data_folder(arguments: argparse.Namespace) -> None:
    """Tell the data sources where to look, and whether they may download."""
    if arguments.data_folder:
        os.environ["PERFGATE_DATA"] = arguments.data_folder
    if arguments.download:
        os.environ["PERFGATE_DOWNLOAD"] = "1"


def choose_workload(name: str, data: str | None, batch_size: int | None) -> Workload:
    """The catalogue's workload, or the user's own, on another source and with another batch size where given.

    Raises:
        Unsuitable: where there is none of that name.
    """
    from workloads import own
    from workloads.models import CATALOGUE as WORKLOADS
    from workloads.workload import Unsuitable

    if ":" not in name and name not in WORKLOADS:
        raise Unsuitable(f"no workload is called {name}; {one_of(WORKLOADS)}; or your own as module:NAME")
    workload = own.named(name) if ":" in name else WORKLOADS[name]
    usual = USUAL_DATA if USUAL_DATA in workload.sources else workload.data
    changes: dict[str, Any] = {"data": data or usual}
    if batch_size is not None:
        changes["batch_size"] = batch_size
    return dataclasses.replace(workload, **changes)


def choose_optimizations(names: str) -> tuple[Optimization, ...]:
    """The catalogue's instances of a comma-separated list.

    Raises:
        Unsuitable: for a name that is not in the catalogue, or that stands there twice.
    """
    from workloads.optimizations import CATALOGUE as OPTIMIZATIONS
    from workloads.workload import Unsuitable

    chosen = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in chosen if name not in OPTIMIZATIONS]
    if unknown:
        near = [close for name in unknown for close in difflib.get_close_matches(name, OPTIMIZATIONS, n=3)]
        known = f"near names: {', '.join(near)}" if near else one_of(OPTIMIZATIONS)
        raise Unsuitable(f"no optimization is called {', '.join(unknown)}; {known} (python -m workloads techniques)")
    again = [name for name, count in Counter(chosen).items() if count > 1]
    if again:
        raise Unsuitable(f"named twice: {', '.join(again)}; once is enough")
    return tuple(OPTIMIZATIONS[name] for name in chosen)


def choose_device(name: str) -> torch.device:
    """The device asked for.

    Raises:
        Unsuitable: for cuda where torch sees no GPU.
    """
    import torch

    from workloads.workload import Unsuitable

    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise Unsuitable("--device cuda: torch sees no CUDA GPU here; use cpu, or check nvidia-smi")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def subject(arguments: argparse.Namespace) -> tuple[Workload, torch.device]:
    """The workload and the device asked for, after the data folder.

    Raises:
        Unsuitable: where there is no such workload, or no such device.
    """
    use_data_folder(arguments)
    workload = choose_workload(arguments.workload, arguments.data, arguments.batch_size)
    return workload, choose_device(arguments.device)


def at_least_one(option: str, value: int) -> None:
    """Refuse less.

    Raises:
        Unsuitable: naming the option.
    """
    from workloads.workload import Unsuitable

    if value < 1:
        raise Unsuitable(f"{option} must be at least 1, got {value}")


def above_zero(option: str, value: float) -> None:
    """Refuse what is not a finite number above 0.

    Raises:
        Unsuitable: naming the option.
    """
    from workloads.workload import Unsuitable

    if not 0 < value < math.inf:
        raise Unsuitable(f"{option} must be a number above 0, got {value}")


def make_folder(option: str, folder: Path) -> None:
    """Make the folder for results before anything takes long.

    Raises:
        Unsuitable: where it cannot be made or written to.
    """
    from workloads.workload import Unsuitable

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unsuitable(f"{option} {folder}: {error.strerror or error}") from error
    if not os.access(folder, os.W_OK):
        raise Unsuitable(f"{option} {folder} cannot be written to")


def headline(workload: Workload, optimizations: Iterable[Optimization], device: torch.device) -> str:
    """What is about to run, and on what."""
    import torch

    stack, threads = ", ".join(map(str, optimizations)) or "none", torch.get_num_threads()
    return f"{workload} on {device.type} with {threads} CPU thread{'s' * (threads > 1)}, optimizations: {stack}"


def progress_bar(console: Console) -> Progress:
    """A bar that vanishes when done, and does not show where nobody watches."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
