"""``python -m workloads ladder``: the best stack of techniques for a workload, found by adding one at a time."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from workloads.commands import choices

if TYPE_CHECKING:
    from rich.console import Console

    from workloads.ladder import Rung, Summit
    from workloads.workload import Optimization

WIDTH = 34  # of compile-max-autotune-no-cudagraphs, the longest name
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
    console.print(
        f"{'technique':<{WIDTH}}  {'over the stack so far':<22}  {'over plain':>10}", soft_wrap=True, markup=False
    )
    stack: list[Optimization] = []
    with choices.progress_bar(console) as bar:
        rungs = ladder.climb(workload, arguments.kind, candidates, device, budget_seconds=arguments.seconds)
        for rung in bar.track(rungs, total=len(candidates), description="ladder"):
            console.print(describe(rung), soft_wrap=True, markup=False)
            if rung.kept:
                stack = [*(each for each in stack if each not in rung.instead_of), rung.technique]
        names = ",".join(map(str, stack))
        console.print(f"best stack: {names}" if stack else "nothing pays: the plain step is the best", soft_wrap=True)
        if stack:
            best = ladder.summit(workload, arguments.kind, stack, device, arguments.seconds)
            console.print(conclusion(best), soft_wrap=True, markup=False)


def describe(rung: Rung) -> str:
    """One line."""
    gain = "" if rung.gain is None else str(rung.gain)
    total = "" if rung.total is None else f"{rung.total:.2f}x"
    said = "kept" if rung.kept else rung.reason
    said += f" in place of {', '.join(map(str, rung.instead_of))}" if rung.instead_of and rung.gain else ""
    return f"{rung.technique!s:<{WIDTH}}  {gain:<22}  {total:>10}  {said}"


def conclusion(best: Summit) -> str:
    """What the best stack reaches."""
    return (
        f"{best.speedup} over plain, {best.samples_per_second:,.0f} samples/s\n"
        f"{best.flops_per_second / 1e12:,.3g} TFLOP/s of the model, {best.utilization:.1%} of the fastest "
        f"{best.precision} matrix product here, {best.peak_flops_per_second / 1e12:,.3g} TFLOP/s (MFU)"
    )
