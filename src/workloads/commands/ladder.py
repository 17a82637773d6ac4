"""``python -m workloads ladder``: the best stack of techniques for a workload, found by adding one at a time."""

from __future__ import annotations

import argparse

import torch
from rich.console import Console

from workloads import ladder
from workloads.commands import choices
from workloads.ladder import Rung
from workloads.timing import median_seconds
from workloads.workload import Optimization, Workload

WIDTH = 34  # of compile-max-autotune-no-cudagraphs, the longest name
HELP = "add one technique at a time and keep what pays"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser)
    parser.set_defaults(data=None)
    parser.add_argument("--kind", default="train", choices=ladder.KINDS, help="of step; default: train")
    parser.add_argument(
        "--candidates", metavar="A,B,...", help="to try in this order; default: all that leave the result as it is"
    )
    parser.add_argument(
        "--seconds", type=float, default=ladder.BUDGET_SECONDS, metavar="S", help="for the rounds of each candidate"
    )
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Climb, printing a line per candidate, and at the end the stack with its speedup over plain."""
    workload, device = choices.subject(arguments, data="synthetic")
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
            stack += [rung.technique] if rung.kept else []
        console.print(
            conclusion(workload, arguments.kind, stack, device, arguments.seconds), soft_wrap=True, markup=False
        )


def describe(rung: Rung) -> str:
    """One line."""
    gain = "" if rung.gain is None else str(rung.gain)
    total = "" if rung.total is None else f"{rung.total:.2f}x"
    said = "kept" if rung.kept else rung.reason
    return f"{rung.technique!s:<{WIDTH}}  {gain:<22}  {total:>10}  {said}"


def conclusion(
    workload: Workload, kind: str, stack: list[Optimization], device: torch.device, budget_seconds: float
) -> str:
    """The best stack, measured once more beside plain."""
    if not stack:
        return "nothing pays: the plain step is the best"
    best = ladder.step_of(workload, kind, stack)
    plain, twin = (ladder.step_of(workload, kind, ()) for _ in range(2))
    speedup, _ = ladder.measured(best, plain, twin, device, budget_seconds)
    best.build(device)
    try:
        rate = best.samples / median_seconds(best, device, budget_seconds)
    finally:
        best.release()
    names = ",".join(map(str, stack))
    return f"best stack: {names}\n{speedup} over plain, {rate:,.0f} samples/s"
