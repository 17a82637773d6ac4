"""Four kinds of operator, each alone: how near they come to the machine's peaks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

import torch
from torch import nn

from workloads.analysis.clock import rounds_beside
from workloads.analysis.peaks import COPY_BYTES, DTYPES, copy, fastest_product
from workloads.analysis.traffic import precision_of


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Shapes of one kind of device."""

    matmul_side: int
    row: int
    attention: tuple[int, int, int, int]
    """Batch, heads, tokens, features per head."""


SIZES = {
    "cpu": Sizes(matmul_side=512, row=1024, attention=(8, 4, 256, 32)),
    "cuda": Sizes(matmul_side=4096, row=4096, attention=(8, 12, 1024, 64)),
}
"""A layer's product, and the attention of a small transformer; on a GPU of GPT-2's. Elementwise and reduction take
tensors of the size whose copy is the peak, since what a cache holds is faster."""


@dataclass(frozen=True, kw_only=True)
class Efficiency:
    """One kind of operator, measured alone."""

    kind: str
    rate: float
    """Median FLOP/s or bytes/s, after ``unit``."""
    unit: Literal["FLOP/s", "B/s"]
    shares: tuple[float, ...]
    """Of the rate of the peak's own work, which took its rounds in turn with these: one per round."""
    shape: str


@dataclass(frozen=True, kw_only=True)
class _Trial:
    kind: str
    work: Callable[[], Any]
    amount: int
    """FLOPs or bytes of one call, after ``unit``."""
    unit: Literal["FLOP/s", "B/s"]
    shape: str


@functools.cache
def operator_efficiencies(
    device: torch.device,
    precision: str,
    threads: int,  # noqa: ARG001 - a key of the cache
    rounds: int,
) -> tuple[Efficiency, ...]:
    """Matmul, elementwise, reduction, attention in ``precision``; measured once per process."""
    dtype = DTYPES.get(precision, torch.bfloat16)
    with torch.no_grad():
        return tuple(_measured(each, device, dtype, rounds) for each in _trials(device, dtype))


def _trials(device: torch.device, dtype: torch.dtype) -> Iterator[_Trial]:
    sizes = SIZES[device.type]
    side, row = sizes.matmul_side, sizes.row
    a = torch.randn(side, side, device=device).to(dtype)
    yield _Trial(kind="matmul", work=lambda: a @ a, amount=2 * side**3, unit="FLOP/s", shape=str((side, side)))
    x = torch.ones(COPY_BYTES[device.type] // dtype.itemsize // row, row, device=device, dtype=dtype)
    out, shape, size = torch.empty_like(x), str(tuple(x.shape)), x.numel() * x.element_size()
    add = functools.partial(torch.add, x, 1, out=out)
    yield _Trial(kind="elementwise", work=add, amount=2 * size, unit="B/s", shape=shape)
    yield _Trial(kind="reduction", work=lambda: x.sum(dim=-1), amount=size, unit="B/s", shape=shape)
    q = torch.randn(sizes.attention, device=device).to(dtype)
    batch, heads, tokens, features = sizes.attention
    yield _Trial(
        kind="attention",
        work=lambda: nn.functional.scaled_dot_product_attention(q, q, q),
        amount=2 * 2 * batch * heads * tokens**2 * features,  # scores, and their product with the values
        unit="FLOP/s",
        shape=str(sizes.attention),
    )


def _measured(trial: _Trial, device: torch.device, dtype: torch.dtype, rounds: int) -> Efficiency:
    precision = precision_of([torch.empty(0, device=device, dtype=dtype)])
    roof = fastest_product(device, precision) if trial.unit == "FLOP/s" else copy(device)
    own, beside = rounds_beside(trial.work, roof.run, device, rounds)
    rates, peaks = [trial.amount / each for each in own], [roof.amount / each for each in beside]
    return Efficiency(
        kind=trial.kind,
        rate=median(rates),
        unit=trial.unit,
        shares=tuple(rate / peak for rate, peak in zip(rates, peaks, strict=True)),
        shape=trial.shape,
    )
