"""``python -m workloads techniques``: the catalogue, and what of it can be used with a workload on this machine."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator

import torch
from rich.console import Console
from rich.table import Table

from workloads.commands import choices
from workloads.comparison import comparisons
from workloads.optimizations import CATALOGUE
from workloads.workload import Optimization, Workload

HELP = "list every technique: what it does, which way it is expected to go, and whether it can be used here"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser)
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Print one row per technique."""
    workload, device = choices.subject(arguments)
    table = Table(
        "technique", "what it does", "expected", f"with {workload} on {device.type}", box=None, pad_edge=False
    )
    for technique in CATALOGUE.values():
        table.add_row(str(technique), purpose(technique), technique.expected, usable(technique, workload, device))
    console.print(table)


def purpose(technique: Optimization) -> str:
    """The first sentence of its documentation."""
    text = inspect.cleandoc(type(technique).__doc__ or "").partition("\n\n")[0]
    return text.replace("\n", " ").replace("``", "")


def usable(technique: Optimization, workload: Workload, device: torch.device) -> str:
    """The kinds of step it can be used in, or why it cannot."""
    found = dict(_answers(technique, workload, device))
    kinds = [kind for kind, reason in found.items() if not reason]
    return ", ".join(kinds) or next(iter(found.values()), None) or "only as the twin of another"


def _answers(technique: Optimization, workload: Workload, device: torch.device) -> Iterator[tuple[str, str | None]]:
    for each in comparisons(workload, [technique]):
        yield each.kind, each.step.unsuitable(device) or each.against.unsuitable(device)
