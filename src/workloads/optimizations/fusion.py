"""Batch-norm folding: for inference, the norm's scale and shift become part of the convolution before it."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, fx, nn
from torch.fx.experimental.optimization import fuse

from workloads.optimizations.tf32 import Float32Precision
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable, Workload

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
LARGEST_ERROR = 1e-4  # relative to the largest output; folding changes the order of float32 operations only


@dataclass(frozen=True)
class Fusion(Optimization):
    """``torch.fx.experimental.optimization.fuse``: the model traced, and each convolution merged with its norm."""

    name: ClassVar[str] = "fusion"
    order: ClassVar[int] = 30  # after pruning, which looks at the layers as they were; before layout and precision
    kinds: ClassVar[frozenset[str]] = frozenset({"inference"})
    source: ClassVar[str] = "https://docs.pytorch.org/tutorials/intermediate/fx_conv_bn_fuser.html"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Needs a model that fx can trace, and a batch norm right after a convolution."""
        plain = workload.skeleton()
        if not batch_norms(plain):
            return f"{workload.name} has no batch norm to fold"
        try:
            left = batch_norms(folded(plain))
        except Unsuitable as error:
            return f"{workload.name}: {error}"
        return None if left < batch_norms(plain) else f"{workload.name} has no batch norm right after a convolution"

    def apply(self, parts: Parts) -> None:
        """Fold, and note how far the outputs moved: in full float32, so that only folding shows."""
        plain = parts.model
        parts.notes["batch_norms_before"], parts.notes["modules_before"] = batch_norms(plain), size(plain)
        parts.model = folded(plain)
        with torch.no_grad(), Float32Precision("ieee").active():
            parts.notes["folding_error"] = largest_error(parts.model(parts.inputs), plain(parts.inputs))
        parts.forward = parts.model

    def proof(self, seen: Observation) -> str:
        """Fewer modules and batch norms than before, and the outputs stayed where they were."""
        notes, left = seen.parts.notes, batch_norms(seen.parts.model)
        before = notes.get("batch_norms_before", 0)
        if left >= before:
            raise NotInEffect(f"{left} of {before} batch norms are left")
        if not notes["folding_error"] <= LARGEST_ERROR:
            raise NotInEffect(
                f"folding moved the outputs by {notes['folding_error']:.2g}, allowed is {LARGEST_ERROR:g}"
            )
        modules = f"modules {notes['modules_before']} -> {size(seen.parts.model)}"
        return f"batch norms {before} -> {left}, {modules}, largest error {notes['folding_error']:.1g}"


def folded(model: nn.Module) -> nn.Module:
    """A copy of ``model``, which is in evaluation mode, with batch norms folded into convolutions.

    Raises:
        Unsuitable: where fx cannot trace the model, for instance because it branches on values.
    """
    try:
        result: nn.Module = fuse(model)
    except (fx.proxy.TraceError, RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError) as error:
        raise Unsuitable(f"torch.fx cannot trace it, so nothing can be folded: {error}") from error
    return result


def batch_norms(model: nn.Module) -> int:
    """How many batch norms ``model`` has."""
    return sum(isinstance(module, BATCH_NORMS) for module in model.modules())


def size(model: nn.Module) -> int:
    """How many modules ``model`` has."""
    return sum(1 for _ in model.modules())


def largest_error(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference, relative to the largest value of ``theirs``."""
    return float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(torch.finfo(theirs.dtype).tiny))
