"""Same result: a variant must compute what its plain twin computes, or its speed means nothing.

The movement of the parameters in one SGD step is compared by length and direction. Comparing losses after several
AdamW steps was tried and does not notice gradients scaled by 1.5, because Adam divides the scale away.
"""

from __future__ import annotations

import torch

from perfgate.errors import WrongResult
from perfgate.measure.step import Outcome, Tolerance


def check_same_result(variant: Outcome, plain: Outcome, tolerance: Tolerance) -> str:
    """The figures of the comparison, as one phrase.

    Raises:
        WrongResult: where the outcomes differ in names or shapes, are not finite, or are further apart than allowed.
    """
    _check_shapes(variant, plain)
    ours, theirs = _flat(variant), _flat(plain)
    for whose, values in (("variant", ours), ("plain twin", theirs)):
        if not bool(torch.isfinite(values).all()):
            raise WrongResult(f"the {variant.kind} of the {whose} holds NaN or infinite values")
    if variant.kind == "identical":
        return _check_identical(ours, theirs)
    return (_check_movement if variant.kind == "movement" else _check_outputs)(ours, theirs, tolerance)


def _flat(outcome: Outcome) -> torch.Tensor:
    # from the plain twin's names, in one order, and in float64: sums over 10^7 values
    return torch.cat([outcome.tensors[name].detach().cpu().double().flatten() for name in sorted(outcome.tensors)])


def _check_shapes(variant: Outcome, plain: Outcome) -> None:
    ours = {name: tuple(each.shape) for name, each in variant.tensors.items()}
    theirs = {name: tuple(each.shape) for name, each in plain.tensors.items()}
    if variant.kind != plain.kind or ours != theirs:
        differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        raise WrongResult(
            f"the variant's {variant.kind} has other names or shapes than its plain twin's: {differing[:3]}"
        )


def _check_identical(ours: torch.Tensor, theirs: torch.Tensor) -> str:
    if not torch.equal(ours, theirs):
        raise WrongResult(f"{int((ours != theirs).sum())} of {ours.numel()} values differ, where all must be equal")
    return f"all {ours.numel()} values equal"


def _check_outputs(ours: torch.Tensor, theirs: torch.Tensor, tolerance: Tolerance) -> str:
    error = float((ours - theirs).norm() / theirs.norm()) if bool(theirs.any()) else float(ours.norm())
    if not error <= tolerance.relative_error:
        raise WrongResult(f"outputs differ by {error:.2g} (relative L2), allowed is {tolerance.relative_error:g}")
    return f"outputs differ by {error:.2g} (relative L2)"


def _check_movement(ours: torch.Tensor, theirs: torch.Tensor, tolerance: Tolerance) -> str:
    lengths = float(ours.norm()), float(theirs.norm())
    if not min(lengths) > 0:
        raise WrongResult("a training step moved no parameter")
    ratio, cosine = lengths[0] / lengths[1], float(torch.dot(ours, theirs)) / (lengths[0] * lengths[1])
    figures = f"parameters move {ratio:.4f} times as far, cosine {cosine:.4f}"
    if not (abs(ratio - 1) <= tolerance.norm_ratio and cosine >= tolerance.cosine):  # so written, NaN fails
        raise WrongResult(
            f"{figures}; allowed is a ratio within {tolerance.norm_ratio:g} of 1 and a cosine of at least "
            f"{tolerance.cosine:g}"
        )
    return figures
