"""Whether a variant computes what its plain twin computes, within a tolerance.

As in perfgate's own check, which may not be imported here: movements are compared by length and direction, outputs by
their relative error.
"""

import math
import sys

import torch

from workloads.steps import Outcome
from workloads.workload import Tolerance

SMALLEST = sys.float_info.min  # where plain outputs are all zero, any other is infinitely far


def disagreement(variant: Outcome, plain: Outcome, tolerance: Tolerance) -> str | None:
    """How the two differ by more than is allowed; ``None`` where they agree."""
    if variant.kind != plain.kind or _shapes(variant) != _shapes(plain):
        return "the results have different names or shapes"
    ours, theirs, apart, product = _sums(variant, plain)
    if not math.isfinite(ours):
        return "the result is NaN or infinite"
    if variant.kind == "movement":
        return _of_movements(ours, theirs, product, tolerance)
    allowed = 0.0 if variant.kind == "identical" else tolerance.relative_error
    error = apart / max(theirs, SMALLEST)
    return None if error <= allowed else f"outputs differ by {error:.2g}, allowed is {allowed:g}"


def _of_movements(ours: float, theirs: float, product: float, tolerance: Tolerance) -> str | None:
    if not min(ours, theirs) > 0:
        return "a training step moved no parameter"
    ratio, cosine = ours / theirs, product / (ours * theirs)
    if abs(ratio - 1) <= tolerance.norm_ratio and cosine >= tolerance.cosine:
        return None
    return f"parameters move {ratio:.3f} times as far, cosine {cosine:.3f}"


def _shapes(outcome: Outcome) -> dict[str, torch.Size]:
    return {name: each.shape for name, each in outcome.tensors.items()}


def _sums(variant: Outcome, plain: Outcome) -> tuple[float, float, float, float]:
    """Norms of the variant's values, of the plain twin's and of their differences, and the scalar product.

    In float64, tensor by tensor on the device where they lie.
    """
    sums = []
    for name, tensor in plain.tensors.items():
        x, y = (each.detach().flatten().double() for each in (variant.tensors[name], tensor))
        sums.append(torch.stack([x @ x, y @ y, (x - y) @ (x - y), x @ y]).cpu())
    ours, theirs, apart, product = torch.stack(sums).sum(0).tolist()
    return ours**0.5, theirs**0.5, apart**0.5, product
