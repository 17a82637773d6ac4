"""Attention backends: which kernel ``scaled_dot_product_attention`` runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import multi_head_attention_forward, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from workloads.workload import (
    NotInEffect,
    Observation,
    Optimization,
    Tolerance,
    Unsuitable,
    Workload,
)

BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
FUSED = {"flash": "flash", "memory-efficient": "efficient", "cudnn": "cudnn"}
"""The word in the name of the operator that each fused backend dispatches, ``aten::_scaled_dot_product_<word>_...``;
math is decomposed into products and a softmax."""
ON_A_CPU = ("math", "flash")


@dataclass(frozen=True)
class Attention(Optimization):
    """One backend allowed, so that torch either runs it or says that it cannot.

    The shortcut of ``nn.MultiheadAttention`` in inference is switched off, since it goes around all backends. On a GPU
    flash and cuDNN attention take half precision only: stack them with AMP, and their twin, too.
    """

    name: ClassVar[str] = "attention"
    tolerance: ClassVar[Tolerance] = Tolerance(norm_ratio=0.05, cosine=0.98, relative_error=0.02)
    source: ClassVar[str] = "Dao et al. 2022, arXiv:2205.14135; https://docs.pytorch.org/docs/stable/nn.attention.html"
    backend: Literal["math", "flash", "memory-efficient", "cudnn"] = "flash"

    def __post_init__(self) -> None:
        """Refuse other backends."""
        if self.backend not in BACKENDS:
            raise Unsuitable(f"attention: backend must be one of {', '.join(BACKENDS)}, got {self.backend!r}")

    def baseline(self) -> tuple[Optimization, ...]:
        """The product of queries and keys written out."""
        return (Attention("math"),)

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """A CPU has two of them, and the workload must attend."""
        if device.type == "cpu" and self.backend not in ON_A_CPU:
            return f"{self} needs a GPU: a CPU has {' and '.join(ON_A_CPU)}"
        return None if attends(workload) else f"{workload.name} does not call scaled_dot_product_attention"

    @contextmanager
    def active(self) -> Iterator[None]:
        """Allow this backend only, and put back what was."""
        shortcut = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            with sdpa_kernel(BACKENDS[self.backend]):
                yield
        finally:
            torch.backends.mha.set_fastpath_enabled(shortcut)

    def explain(self, error: RuntimeError) -> str | None:
        """What to do where the backend cannot take the tensors."""
        if "No available kernel" in str(error) or "No viable backend" in str(error):
            return f"it cannot take these tensors: add amp-bf16 on a GPU ({error})"
        return None

    def proof(self, seen: Observation) -> str:
        """The operator that was dispatched; where nobody sees it, that torch allows no other backend.

        Compiled code hides its operators, and inference mode dispatches attention as a whole.
        """
        if _allowed() != [self.backend]:
            raise NotInEffect(f"allowed backends are {', '.join(_allowed())}")
        if not seen.operators or "aten::scaled_dot_product_attention" in seen.operators:
            return f"the only backend that is allowed: {self.backend}"
        fused = {name for name in seen.operators if name.startswith("aten::_scaled_dot_product_")}
        wanted = FUSED.get(self.backend)
        if {each.removeprefix("aten::_scaled_dot_product_").partition("_")[0] for each in fused} != {wanted} - {None}:
            raise NotInEffect(f"dispatched were {', '.join(sorted(fused)) or 'no fused attention operators'}")
        if wanted is None and not {"aten::_safe_softmax", "aten::_softmax"} & seen.operators:
            raise NotInEffect("neither a fused operator nor a softmax was dispatched")
        return f"dispatched {min(fused)}" if fused else "a softmax was dispatched, and no fused operator"


def _allowed() -> list[str]:
    """The backends that are switched on."""
    flags = torch.backends.cuda
    states = {
        "math": flags.math_sdp_enabled(),
        "flash": flags.flash_sdp_enabled(),
        "memory-efficient": flags.mem_efficient_sdp_enabled(),
        "cudnn": flags.cudnn_sdp_enabled(),
    }
    return [name for name, on in states.items() if on]


class _Attending(TorchFunctionMode):
    """Notes whether attention was called."""

    seen = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look at the function and call it."""
        self.seen |= func in (scaled_dot_product_attention, multi_head_attention_forward)
        return func(*args, **(kwargs or {}))


def attends(workload: Workload) -> bool:
    """Whether one sample's forward pass, without weights or memory, calls attention; yes where that cannot run."""
    model, (inputs, _) = workload.skeleton(), workload.batch()
    watch = _Attending()
    try:
        with watch, torch.no_grad():
            model.to("meta")(inputs[:1].to("meta"))
    except (RuntimeError, NotImplementedError, TypeError, ValueError):  # the proof will tell
        return True
    return watch.seen
