"""How large a batch fits: running out of memory as an answer instead of an error."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch

from workloads.steps.step import Figure, Step
from workloads.steps.train import TrainStep
from workloads.timing import synchronize
from workloads.workload import Unsuitable

Result = TypeVar("Result")
MESSAGES = ("can't allocate memory", "not enough memory", "STATUS_ALLOC_FAILED")
"""Of torch's CPU allocator (Linux, Windows) and of cuBLAS and cuDNN, which raise plain RuntimeErrors."""
LIMIT = 2**15 - 1  # at 2**16 activations per sample, as in ResNet-18 on 32x32, more do not fit into 32-bit indices
PRECISION = 64  # the search ends within this part of the answer: each attempt at a large batch takes seconds


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on a GPU or in host memory."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(message in str(error) for message in MESSAGES)


def free_memory(device: torch.device) -> None:
    """Give cached memory back, so that the next attempt starts from none."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def within_memory(work: Callable[[], Result], device: torch.device) -> Result | None:
    """What ``work`` gives; ``None`` where memory ran out. Memory is freed either way."""
    try:
        return work()
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    finally:
        free_memory(device)
    free_memory(device)  # again: the error's traceback held the tensors alive
    return None


def fits_on(step_of: Callable[[int], Step], device: torch.device) -> Callable[[int], bool]:
    """Whether a step of so many samples can be built and run twice: the first run creates the optimizer's state."""

    def ran(batch_size: int) -> bool:
        step = step_of(batch_size)
        try:
            step.build(device)
            with step.active():
                step.run()
                step.run()
                synchronize(device)
        finally:
            step.release()
        return True

    return lambda batch_size: within_memory(lambda: ran(batch_size), device) is not None


def largest_batch(fits: Callable[[int], bool], *, start: int = 1, limit: int = LIMIT) -> int:
    """The largest batch that fits, up to ``limit``: doubling from ``start``, then bisection.

    Raises:
        Unsuitable: where not even one sample fits.
    """
    fitting, too_large = 0, min(start, limit)
    while fits(too_large):
        fitting = too_large
        if fitting == limit:
            return limit
        too_large = min(2 * fitting, limit)
    while too_large - fitting > max(1, fitting // PRECISION):
        middle = (fitting + too_large) // 2
        if fits(middle):
            fitting = middle
        else:
            too_large = middle
    if not fitting:
        raise Unsuitable("not even one sample fits into memory: take a smaller model, or a device with more memory")
    return fitting


class LargestBatch(TrainStep):
    """A training step whose figure is the largest batch that would fit, within a 64th; its own is the first tried."""

    def unsuitable(self, device: torch.device) -> str | None:
        """On a CPU the machine would swap, or end the process, before an allocation fails."""
        if device.type != "cuda":
            return "the largest batch is looked for on a CUDA GPU: host memory swaps before it runs out"
        return super().unsuitable(device)

    def figures(self) -> Iterable[Figure]:
        """``largest_batch``, found while this step's own tensors are alive, too."""
        device = self.parts.device
        fits = fits_on(self._of, device)
        size = largest_batch(fits, start=self.workload.batch_size)
        note = f"the limit of the search, {LIMIT}" if size == LIMIT else None
        yield Figure(name="largest_batch", unit="samples", values=(float(size),), note=note)

    def _of(self, batch_size: int) -> Step:
        return TrainStep(dataclasses.replace(self.workload, batch_size=batch_size), self.optimizations)
