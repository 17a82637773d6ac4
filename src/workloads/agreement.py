"""Whether a variant computes what its plain twin computes, within a tolerance.

As in perfgate's own check, which may not be imported here: movements are compared by length and direction, outputs by
their relative error.
"""

import torch
from torch import Tensor

from workloads.steps import Outcome
from workloads.workload import Tolerance


def disagreement(variant: Outcome, plain: Outcome, tolerance: Tolerance) -> str | None:
    """How the two differ by more than is allowed; ``None`` where they agree."""
    if variant.kind != plain.kind or _shapes(variant) != _shapes(plain):
        return "the results have different names or shapes"
    ours, theirs = _flat(variant), _flat(plain)
    if not bool(torch.isfinite(ours).all()):
        return "the result is NaN or infinite"
    if variant.kind == "movement":
        return _of_movements(ours, theirs, tolerance)
    allowed = 0.0 if variant.kind == "identical" else tolerance.relative_error
    error = float((ours - theirs).norm() / theirs.norm().clamp(min=torch.finfo(theirs.dtype).tiny))
    return None if error <= allowed else f"outputs differ by {error:.2g}, allowed is {allowed:g}"


def _of_movements(ours: Tensor, theirs: Tensor, tolerance: Tolerance) -> str | None:
    lengths = float(ours.norm()), float(theirs.norm())
    if not min(lengths) > 0:
        return "a training step moved no parameter"
    ratio, cosine = lengths[0] / lengths[1], float(torch.dot(ours, theirs)) / (lengths[0] * lengths[1])
    if abs(ratio - 1) <= tolerance.norm_ratio and cosine >= tolerance.cosine:
        return None
    return f"parameters move {ratio:.3f} times as far, cosine {cosine:.3f}"


def _shapes(outcome: Outcome) -> dict[str, torch.Size]:
    return {name: each.shape for name, each in outcome.tensors.items()}


def _flat(outcome: Outcome) -> Tensor:
    return torch.cat([outcome.tensors[name].detach().double().flatten() for name in sorted(outcome.tensors)])
