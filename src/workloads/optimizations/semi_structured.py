"""2:4 semi-structured sparsity: two of every four weights are zero and not stored, which tensor cores can use."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured

from workloads.optimizations.half_precision import PureHalf
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Tolerance, Unsuitable, Workload

AMPERE = (8, 0)  # the first compute capability with sparse tensor cores
ROWS, COLUMNS = 32, 64  # what both of torch's backends take in 16 bits: multiples of these


@dataclass(frozen=True)
class SemiStructured(Optimization):
    """The smaller two of every four weights of a Linear zeroed, the rest compressed; for inference in half precision.

    No promise on Hopper: https://github.com/pytorch/pytorch/issues/153825 reports it slower than dense on an H100.
    """

    name: ClassVar[str] = "semi-structured"
    order: ClassVar[int] = 58  # after the weights were made half precision
    expected: ClassVar = "any"
    kinds: ClassVar[frozenset[str]] = frozenset({"inference"})
    tolerance: ClassVar[Tolerance] = Tolerance(relative_error=0.03)  # as of half precision: sums in another order
    source: ClassVar[str] = "https://docs.pytorch.org/tutorials/advanced/semi_structured_sparse.html: A100 Linear 1.38x"

    def baseline(self) -> tuple[Optimization, ...]:
        """Dense half precision."""
        return (PureHalf("bfloat16"),)

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Needs sparse tensor cores and a Linear of the right size."""
        if device.type != "cuda":
            return "2:4 sparsity needs a CUDA GPU: torch has no sparse kernels for a CPU"
        major, minor = torch.cuda.get_device_capability(device)
        if (major, minor) < AMPERE:
            return f"2:4 sparsity needs compute capability 8.0, this GPU has {major}.{minor}"
        if any(fits(module) for module in workload.skeleton().modules()):
            return None
        return f"{workload.name} has no Linear whose sizes are multiples of {ROWS} (out) and {COLUMNS} (in)"

    def clash(self, other: Optimization) -> str | None:
        """Compressed weights are neither cast nor captured, and have no gradients."""
        if str(other) == "grad-mode-grad":
            return f"{self} has no gradients: leave out {other}"
        if other.name == "amp":
            return f"{self} has no float32 weights for {other} to cast: stack it with half-bf16"
        if other.slot == "compilation" and other.name != "compile":
            return f"{other} cannot save compressed weights: use compile"
        return super().clash(other)

    def apply(self, parts: Parts) -> None:
        """Prune and compress every Linear that fits."""
        names = [name for name, module in parts.model.named_modules() if fits(module)]
        for name in names:
            layer = parts.model.get_submodule(name)
            assert isinstance(layer, nn.Linear)
            if layer.weight.dtype not in (torch.float16, torch.bfloat16):
                raise Unsuitable(f"{self} needs weights in half precision: add half-bf16 to the stack")
            parts.model.set_submodule(name, CompressedLinear(layer))

    def reference(self, parts: Parts) -> None:
        """Zero the same weights, and keep them dense."""
        for module in parts.model.modules():
            if isinstance(module, nn.Linear) and fits(module):
                weight = module.weight.detach()
                module.weight = nn.Parameter(weight * two_of_four(weight))  # a new one: a tied embedding stays dense

    def proof(self, seen: Observation) -> str:
        """Weights are torch's compressed tensors, and two of every four of their values are zero."""
        layers = [module for module in seen.parts.model.modules() if isinstance(module, CompressedLinear)]
        if not layers:
            raise NotInEffect("no Linear has compressed weights")
        for layer in layers:
            if not isinstance(layer.compressed, SparseSemiStructuredTensor):
                raise NotInEffect(f"the weights are {type(layer.compressed).__name__}")
            dense = layer.compressed.to_dense()
            if int((dense.unflatten(-1, (-1, 4)) != 0).sum(dim=-1).max()) > 2:
                raise NotInEffect("more than two of four weights in a row are not zero")
        return f"{len(layers)} Linear layers hold {type(layers[0].compressed).__name__}, two of four weights zero"


class CompressedLinear(nn.Module):
    """A Linear with compressed weights; the tensors inside are buffers, so that their memory is counted."""

    def __init__(self, layer: nn.Linear) -> None:
        """Prunes and compresses the weights of ``layer``, and shares its bias."""
        super().__init__()
        weight = layer.weight.detach()
        self.compressed = to_sparse_semi_structured((weight * two_of_four(weight)).contiguous())
        self.bias = layer.bias
        for name in ("packed", "meta"):
            if isinstance(getattr(self.compressed, name, None), Tensor):
                self.register_buffer(name, getattr(self.compressed, name))

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        return nn.functional.linear(inputs, self.compressed, self.bias)


def fits(module: nn.Module) -> bool:
    """Whether ``module`` is a plain Linear of a size that sparse kernels take."""
    # subclasses belong to modules that read the weights themselves, such as nn.MultiheadAttention
    return type(module) is nn.Linear and module.out_features % ROWS == 0 and module.in_features % COLUMNS == 0


def two_of_four(weight: Tensor) -> Tensor:
    """A mask of ``weight`` (rows, columns) that keeps the two of largest magnitude of every four in a row."""
    groups = weight.abs().unflatten(-1, (-1, 4))  # (rows, columns / 4, 4)
    kept = groups.topk(2, dim=-1).indices
    return torch.zeros_like(groups).scatter_(-1, kept, 1).flatten(-2)
