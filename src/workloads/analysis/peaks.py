"""What this machine can do at best, measured: a large matrix product, and a large copy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from workloads.timing import seconds_of

MATMUL_SIDES = {"cpu": (512, 1024, 2048), "cuda": (4096, 8192)}
"""The best of these: the largest (17 GFLOP, 1.1 TFLOP) fill many cores and hide the start of threads and kernels, the
smaller ones take so little time on a few cores that some round falls between the disturbances of other processes."""
COPY_BYTES = {"cpu": 256 * 2**20, "cuda": 2**30}
"""Many times what the caches of a processor or a GPU hold."""
FEWEST_ROUNDS = 3
BUDGET_SECONDS = 0.2  # per size, for more rounds where they are short
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
"""Precisions whose peak can be measured with ``torch.mm``; any other is compared with bfloat16's."""


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """The roofs of one machine."""

    flops_per_second: Mapping[str, float]
    """Of a matrix product, by precision."""
    bytes_per_second: float
    """Of a copy, read and written."""

    def compute_seconds(self, flops: Mapping[str, int]) -> float:
        """How long ``flops``, by precision, take at their peaks."""
        return sum(count / self.flops_per_second[precision] for precision, count in flops.items())


def measured_peaks(device: torch.device, precisions: tuple[str, ...]) -> Peaks:
    """The peaks of ``device``; each is measured once per process and number of threads."""
    threads = torch.get_num_threads()
    return Peaks(
        flops_per_second={each: matmul_peak(device, _measurable(each), threads) for each in precisions},
        bytes_per_second=copy_peak(device, threads),
    )


def _measurable(precision: str) -> str:
    return precision if precision in DTYPES else "bfloat16"


@dataclass(frozen=True, kw_only=True)
class Roof:
    """The work whose rate is a peak."""

    run: Callable[[], Any]
    amount: int
    """FLOPs, or bytes read and written, of one call."""


def product(device: torch.device, precision: str, side: int) -> Roof:
    """A square matrix product."""
    a = torch.randn(side, side, device=device).to(DTYPES[precision])  # ones would draw less power and clock higher
    return Roof(run=functools.partial(torch.mm, a, a, out=torch.empty_like(a)), amount=2 * side**3)


def fastest_product(device: torch.device, precision: str) -> Roof:
    """The matrix product of the side that set the peak."""
    rates = matmul_rates(device, _measurable(precision), torch.get_num_threads())
    return product(device, _measurable(precision), max(rates, key=lambda side: rates[side]))


def copy(device: torch.device) -> Roof:
    """A copy inside ``device``'s memory."""
    source = torch.ones(COPY_BYTES[device.type], device=device, dtype=torch.uint8)
    return Roof(run=functools.partial(torch.empty_like(source).copy_, source), amount=2 * source.numel())


def matmul_peak(device: torch.device, precision: str, threads: int) -> float:
    """FLOP/s of the fastest square matrix product with this many ``threads``."""
    return max(matmul_rates(device, precision, threads).values())


@functools.cache
def matmul_rates(
    device: torch.device,
    precision: str,
    threads: int,  # noqa: ARG001 - a key of the cache
) -> Mapping[int, float]:
    """FLOP/s of square matrix products by their side."""
    with torch.no_grad(), float32_as(precision):
        return {side: _peak(product(device, precision, side), device) for side in MATMUL_SIDES[device.type]}


@functools.cache
def copy_peak(device: torch.device, threads: int) -> float:  # noqa: ARG001 - a key of the cache
    """Bytes/s, read and written, of a copy inside ``device``'s memory with this many ``threads``."""
    return _peak(copy(device), device)


def _peak(roof: Roof, device: torch.device) -> float:
    """The rate of the fastest round, after one that is not counted: a peak is what no disturbance took part in."""
    roof.run()
    seconds: list[float] = []
    while len(seconds) < FEWEST_ROUNDS or sum(seconds) < BUDGET_SECONDS:
        seconds.append(seconds_of(roof.run, device))
    return roof.amount / min(seconds)


@contextmanager
def float32_as(precision: str) -> Iterator[None]:
    """Let CUDA multiply float32 matrices as TF32, or not, in the block."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    if precision in {"tf32", "float32"} and (precision == "tf32") != (before == "tf32"):
        settings.fp32_precision = "tf32" if precision == "tf32" else "ieee"
    try:
        yield
    finally:
        if settings.fp32_precision != before:
            settings.fp32_precision = before
