"""A thread of its own for a step, so that what torch keeps per thread is neither found nor left behind.

That is cuDNN's plans above all: the algorithm of each shape is kept per thread, whether it was tried or guessed. Of two
steps in one thread, the one that runs first would decide for both.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor


class OwnThread:
    """Runs calls one after another, with their backward passes, and ends when nobody holds it."""

    def __init__(self, device: torch.device) -> None:
        """For work on ``device``."""
        self._device = device
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="own-thread")

    def call(self, work: Callable[[], Tensor]) -> Tensor:
        """What ``work`` gives, as if the caller had called it; also what it raises."""
        return self._thread.submit(_alone, work, self._device, torch.is_grad_enabled()).result()


def _alone(work: Callable[[], Tensor], device: torch.device, grad: bool) -> Tensor:  # noqa: FBT001 - handed over
    """Without the autograd threads that all steps share."""
    with torch.cuda.device(device), torch.set_grad_enabled(grad), torch.autograd.set_multithreading_enabled(mode=False):
        return work()
