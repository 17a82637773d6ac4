"""The canary: a fixed matrix product and a fixed copy, to tell how fast the machine is just now."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from perfgate.measure.clock import clock_for, time_round
from perfgate.measure.warmup import LEAST_SECONDS, warm_up

if TYPE_CHECKING:
    import torch

ROUNDS = 15
SIZES = {"cpu": (512, 4 * 2**20), "cuda": (4096, 64 * 2**20)}  # matrix side, floats copied: about 5 ms each


def read_canary(device: torch.device) -> dict[str, float]:
    """Median seconds of ``matmul`` (float32) and ``copy`` on ``device``; less than two seconds in all."""
    import torch

    side, floats = SIZES[device.type]
    matrix = torch.ones(side, side, device=device)
    source, target = torch.ones(floats, device=device), torch.empty(floats, device=device)
    product = torch.empty_like(matrix)
    clock = clock_for(device)
    least = LEAST_SECONDS[device.type]

    def multiply() -> None:
        torch.mm(matrix, matrix, out=product)

    def copy() -> None:
        target.copy_(source)

    readings = {}
    for name, work in (("matmul", multiply), ("copy", copy)):
        timed = clock.target(work)
        warm_up(lambda: time_round(clock, timed).wall_seconds, least, least_seconds=least)  # noqa: B023 - called here
        seconds = [time_round(clock, timed).wall_seconds for _ in range(ROUNDS)]
        readings[name] = statistics.median(seconds[ROUNDS // 3 :])  # the first third warms up
    return readings
