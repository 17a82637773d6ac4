"""``python -m workloads techniques``: the catalogue, and what of it can be used with a workload on this machine."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workloads.commands import choices

if TYPE_CHECKING:
    import torch
    from rich.console import Console

    from workloads.workload import Optimization, Workload

INDENT = "    "
NARROWEST = 40  # columns


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser)
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Print a paragraph per technique, none of whose lines is cut."""
    from workloads.optimizations import CATALOGUE

    workload, device = choices.subject(arguments)
    console.print(f"{len(CATALOGUE)} techniques; what can be used with {workload} on {device.type}:")
    for technique in CATALOGUE.values():
        console.print(f"\n{technique}", soft_wrap=True, markup=False)
        for line in (purpose(technique), f"expected: {expected(technique)}", usable(technique, workload, device)):
            shown = textwrap.wrap(line, max(console.width, NARROWEST) - len(INDENT), break_long_words=False)
            console.print("\n".join(INDENT + each for each in shown), soft_wrap=True, markup=False)


def purpose(technique: Optimization) -> str:
    """The first sentence of its documentation, and its parameters."""
    text = inspect.cleandoc(type(technique).__doc__ or "").partition("\n\n")[0].replace("\n", " ")
    text = re.sub(r":class:`(\w+)`", r"\1", text).replace("`", "")
    fields = ", ".join(f"{each.name}={getattr(technique, each.name)}" for each in dataclasses.fields(technique))
    return f"{text} [{fields}]" if fields else text


def expected(technique: Optimization) -> str:
    """The direction of time; nothing is expected of one that is only ever a twin."""
    return "-" if technique in technique.baseline() else technique.expected


def usable(technique: Optimization, workload: Workload, device: torch.device) -> str:
    """The kinds of step it can be used in, or why it cannot."""
    found = dict(_answers(technique, workload, device))
    kinds = [kind for kind, reason in found.items() if not reason]
    return ", ".join(kinds) or next(iter(found.values()), None) or "only as the twin of another"


def _answers(technique: Optimization, workload: Workload, device: torch.device) -> Iterator[tuple[str, str | None]]:
    from workloads.comparison import comparisons

    for each in comparisons(workload, [technique]):
        yield each.kind, each.step.unsuitable(device) or each.against.unsuitable(device)
