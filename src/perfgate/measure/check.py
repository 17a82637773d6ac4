"""Same result: a variant must compute what its plain twin computes, or its speed means nothing.

The movement of the parameters in one SGD step is compared by length and direction. Comparing losses after several
AdamW steps was tried and does not notice gradients scaled by 1.5, because Adam divides the scale away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from perfgate.errors import WrongResult
from perfgate.measure.step import Outcome, Tolerance

PIECE = 2**24  # values at a time: 128 MiB in float64


def check_same_result(variant: Outcome, plain: Outcome, tolerance: Tolerance) -> str:
    """The figures of the comparison, as one phrase.

    Raises:
        WrongResult: where the outcomes differ in names or shapes, are not finite, or are further apart than allowed.
    """
    _check_shapes(variant, plain)
    sums = _sums(variant, plain)
    for whose, norm in (("variant", sums.ours), ("plain twin", sums.theirs)):
        if not math.isfinite(norm):
            raise WrongResult(f"the {variant.kind} of the {whose} holds NaN or infinite values")
    if variant.kind == "identical":
        return _check_identical(sums)
    return (_check_movement if variant.kind == "movement" else _check_outputs)(sums, tolerance)


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Over all values of both outcomes."""

    ours: float
    """L2 norm of the variant's values; NaN or infinite where one of them is."""
    theirs: float
    """That of the plain twin's."""
    apart: float
    """That of the differences."""
    product: float
    """The scalar product."""
    differing: int
    """How many values are not equal."""
    values: int


def _sums(variant: Outcome, plain: Outcome) -> Sums:
    """In float64, since there may be 10^9 values, and on the device where they lie, piece by piece."""
    squares = []
    for name, their_tensor in plain.tensors.items():
        their_values = their_tensor.detach().flatten()
        our_values = variant.tensors[name].detach().flatten().to(their_values.device)
        for a, b in zip(our_values.split(PIECE), their_values.split(PIECE), strict=True):
            x, y = a.double(), b.double()
            apart = x - y
            squares.append(torch.stack([x @ x, y @ y, apart @ apart, x @ y, (a != b).sum().double()]).cpu())
    ours, theirs, apart_squared, product, differing = torch.stack(squares).sum(0).tolist()
    return Sums(
        ours=ours**0.5,
        theirs=theirs**0.5,
        apart=apart_squared**0.5,
        product=product,
        differing=int(differing),
        values=sum(each.numel() for each in plain.tensors.values()),
    )


def _check_shapes(variant: Outcome, plain: Outcome) -> None:
    ours = {name: tuple(each.shape) for name, each in variant.tensors.items()}
    theirs = {name: tuple(each.shape) for name, each in plain.tensors.items()}
    if variant.kind != plain.kind or ours != theirs:
        differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        raise WrongResult(
            f"the variant's {variant.kind} has other names or shapes than its plain twin's: {differing[:3]}"
        )


def _check_identical(sums: Sums) -> str:
    if sums.differing:
        raise WrongResult(f"{sums.differing} of {sums.values} values differ, where all must be equal")
    return f"all {sums.values} values equal"


def _check_outputs(sums: Sums, tolerance: Tolerance) -> str:
    error = sums.apart / sums.theirs if sums.theirs else sums.ours
    if not error <= tolerance.relative_error:
        raise WrongResult(f"outputs differ by {error:.2g} (relative L2), allowed is {tolerance.relative_error:g}")
    return f"outputs differ by {error:.2g} (relative L2)"


def _check_movement(sums: Sums, tolerance: Tolerance) -> str:
    if not min(sums.ours, sums.theirs) > 0:
        raise WrongResult("a training step moved no parameter")
    ratio, cosine = sums.ours / sums.theirs, sums.product / (sums.ours * sums.theirs)
    figures = f"parameters move {ratio:.4f} times as far, cosine {cosine:.4f}"
    if not (abs(ratio - 1) <= tolerance.norm_ratio and cosine >= tolerance.cosine):  # so written, NaN fails
        raise WrongResult(
            f"{figures}; allowed is a ratio within {tolerance.norm_ratio:g} of 1 and a cosine of at least "
            f"{tolerance.cosine:g}"
        )
    return figures
