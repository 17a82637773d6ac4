"""Runs in which something is counted: the eager program, whatever is compiled of it when it is timed."""

from __future__ import annotations

from contextlib import nullcontext

import torch

from workloads.steps import Step, TrainStep
from workloads.workload import Unsuitable

WARM_UP_RUNS = 2  # the first creates the optimizer's state, the second is as all that follow


def counted_run(step: Step) -> None:
    """One run of the eager program, whose operators a dispatch mode can see."""
    with torch.compiler.set_stance("force_eager") if step.compiled else nullcontext():
        step.run_uncompiled()


def prepare(step: TrainStep, device: torch.device) -> None:
    """Build and warm up.

    Raises:
        Unsuitable: where a technique cannot be used, a run fails, or the loss is not finite.
    """
    reason = step.unsuitable(device)
    if reason:
        raise Unsuitable(f"{step}: {reason}")
    try:
        step.build(device)
        with step.active():
            for _ in range(WARM_UP_RUNS):
                step.run()
    except Unsuitable:
        raise
    except Exception as error:
        first = next(iter(str(error).splitlines()), "")
        said = f"{type(error).__name__}: {first}"
        raise Unsuitable(f"{step} cannot be analysed: its first runs fail with {said}; make it run first") from error
    loss = step.last_value()
    if loss is not None and not bool(torch.isfinite(loss).all()):
        raise Unsuitable(f"{step} cannot be analysed: its loss is not finite; check the data and the model's output")
