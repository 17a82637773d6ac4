"""``python -m workloads ladder``: the best stack of techniques for a workload, found by adding one at a time."""

from __future__ import annotations

import argparse
import textwrap
from typing import TYPE_CHECKING

from workloads.commands import choices

if TYPE_CHECKING:
    from rich.console import Console

    from workloads.ladder import Rung, Summit
    from workloads.workload import Optimization

GAIN = 18  # columns of 12.34x (9.87-12.9), beside which the verdicts stand in line
LEAST = 40  # columns beside a name, or it has a line of its own
KINDS = ("train", "inference")  # as in workloads.ladder, which loads torch
BUDGET_SECONDS = 4.0  # likewise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser, data="synthetic")
    parser.add_argument("--kind", default="train", choices=KINDS, help="of step; default: train")
    parser.add_argument(
        "--candidates", metavar="A,B,...", help="to try in this order; default: all that leave the result as it is"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=BUDGET_SECONDS,
        metavar="S",
        help=f"for the rounds of each candidate; default: {BUDGET_SECONDS:g}",
    )
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Climb, printing a line per candidate, and at the end the stack with its speedup over plain."""
    from workloads import ladder

    workload, device = choices.subject(arguments)
    choices.above_zero("--seconds", arguments.seconds)
    asked = None if arguments.candidates is None else choices.choose_optimizations(arguments.candidates)
    candidates = ladder.default_candidates(arguments.kind) if asked is None else list(asked)
    console.print(f"{workload} {arguments.kind} on {device.type}, {len(candidates)} candidates")
    name = max((len(str(each)) for each in candidates), default=0)

    def say(left: str, right: str) -> None:
        console.print(beside(left, right, name, console.width), soft_wrap=True, markup=False, highlight=False)

    say("technique", "over the stack so far")
    stack: list[Optimization] = []
    with choices.progress_bar(console) as bar:
        rungs = ladder.climb(workload, arguments.kind, candidates, device, budget_seconds=arguments.seconds)
        for rung in bar.track(rungs, total=len(candidates), description="ladder"):
            say(str(rung.technique), describe(rung))
            if rung.kept:
                stack = [*(each for each in stack if each not in rung.instead_of), rung.technique]
        names = ",".join(map(str, stack))
        console.print(f"best stack: {names}" if stack else "nothing pays: the plain step is the best", soft_wrap=True)
        if stack:
            best = ladder.summit(workload, arguments.kind, stack, device, arguments.seconds)
            console.print(conclusion(best), markup=False)


def describe(rung: Rung) -> str:
    """What became of a candidate: its gain where it was measured, and why it was not kept."""
    if rung.gain is None:
        return rung.reason
    said = f"kept, {rung.total:.2f}x over plain" if rung.kept else rung.reason
    instead = f", in place of {', '.join(map(str, rung.instead_of))}" if rung.instead_of else ""
    return f"{rung.gain!s:<{GAIN}}  {said}{instead}"


def beside(left: str, right: str, name: int, width: int) -> str:
    """``right`` in lines of its own column beside ``left``; below it where ``width`` columns are too few for that."""
    fits = width >= name + 2 + LEAST
    indent = name + 2 if fits else 2
    first = f"{left:<{indent}}" if fits else f"{left}\n{'':<{indent}}"
    lines = textwrap.wrap(right, max(width - indent, 1), break_long_words=False, break_on_hyphens=False)
    return first + f"\n{'':<{indent}}".join(lines)


def conclusion(best: Summit) -> str:
    """What the best stack reaches."""
    return (
        f"{best.speedup} over plain, {best.samples_per_second:,.0f} samples/s\n"
        f"{best.flops_per_second / 1e12:,.3g} TFLOP/s of the model\n{best.utilization:.1%} of the fastest "
        f"{best.precision} matrix product here, {best.peak_flops_per_second / 1e12:,.3g} TFLOP/s (MFU)"
    )
