"""Energy of a step, from the GPU's own counter over a window long enough for it."""

from __future__ import annotations

import math
from collections.abc import Callable

from perfgate.measure.nvml import Gpu

WINDOW_SECONDS = 0.5  # the counter moves every 20-100 ms, so that its resolution stays under a fifth of a window
WINDOWS = 3


def energy_per_step(
    run: Callable[[], None], wait: Callable[[], None], gpu: Gpu, step_seconds: float, windows: int = WINDOWS
) -> tuple[float, ...]:
    """Joules per step of each window; empty where the GPU has no counter."""
    steps = max(1, math.ceil(WINDOW_SECONDS / step_seconds))
    joules = []
    for _ in range(windows):
        before = gpu.energy_joules()
        if before is None:
            return ()  # asked first: a window costs half a second
        for _ in range(steps):
            run()
        wait()
        after = gpu.energy_joules()
        if after is None:
            return ()
        joules.append((after - before) / steps)
    return tuple(joules)
