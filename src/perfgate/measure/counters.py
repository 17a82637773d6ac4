"""Counted metrics: operators by dispatch, FLOPs, and what dynamo compiled. Exact under one torch version."""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from perfgate.measure.formulas import FUSED


class OperatorCounter(TorchDispatchMode):
    """Counts every operator that an eager step dispatches, by name and dtypes: forward, backward, update and casts."""

    def __init__(self) -> None:
        """Starts at zero."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.operators: Counter[str] = Counter()
        self.float32_flops = 0  # of those that have a formula: products and convolutions

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count and go on; what autograd would have taken apart is taken apart in inference mode, too."""
        if isinstance(func, OpOverload) and func.namespace != "prim":
            with self:
                parts = func.decompose(*args, **(kwargs or {}))
            if parts is not NotImplemented:
                return parts
        arguments = tree_leaves((args, kwargs or {}))
        dtypes = sorted(
            {str(each.dtype).removeprefix("torch.") for each in arguments if isinstance(each, torch.Tensor)}
        )
        self.operators[f"{func.name()}({','.join(dtypes)})"] += 1
        result = func(*args, **(kwargs or {}))
        packet = func._overloadpacket  # noqa: SLF001 - as FlopCounterMode itself looks it up
        formula = FUSED.get(packet) or flop_registry.get(packet)
        if formula and "float32" in dtypes:
            self.float32_flops += formula(*args, **(kwargs or {}), out_val=result)
        return result


@dataclass(frozen=True)
class EagerCounts:
    """What one eager run does."""

    operators: Counter[str]
    """Operators dispatched, by name and dtypes."""
    flops: int
    """Floating-point operations; a multiply-add is two."""
    float32_flops: int
    """Those with a float32 operand: a layer left in float32 shows here, whatever it saves in casts."""


def count_eager(run: Callable[[], None]) -> EagerCounts:
    """Count one eager run."""
    flops = FlopCounterMode(display=False, custom_mapping=dict(FUSED))
    with flops, OperatorCounter() as counter:  # the last one entered sees them first
        run()
    return EagerCounts(counter.operators, int(flops.get_total_flops()), counter.float32_flops)


def count_uncompiled(run: Callable[[], None]) -> EagerCounts:
    """Count one run whose compiled code is run eagerly for it; cuDNN tries nothing that others would find."""
    tries = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        with torch.compiler.set_stance("force_eager"):
            return count_eager(run)
    finally:
        torch.backends.cudnn.benchmark = tries


def scalar_reads(operators: Mapping[str, int]) -> int:
    """Values that Python asked for (``.item()``, ``float(x)``, ``if x``): on a GPU, each waits for the device.

    A metric of its own, so that operators saved elsewhere cannot hide one that was added. ``.tolist()`` and ``.cpu()``
    dispatch nothing on a CPU; on a GPU they are copies to the host and synchronisations, which are counted there.
    """
    return sum(count for name, count in operators.items() if "_local_scalar_dense" in name)


@dataclass(frozen=True)
class CompileCounts:
    """What dynamo has done since the process started or was reset."""

    graphs: int
    breaks: int

    def since(self, earlier: CompileCounts) -> CompileCounts:
        """The difference."""
        return CompileCounts(self.graphs - earlier.graphs, self.breaks - earlier.breaks)


def compiler_complaint(error: BaseException) -> str | None:
    """The first line of what dynamo or inductor could not do, with the remedy; ``None`` for any other error."""
    from torch._dynamo.exc import TorchDynamoException

    if not isinstance(error, TorchDynamoException) and not _from_generated_code(error):
        return None
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"{first} (TORCHDYNAMO_VERBOSE=1 shows where; leave the technique out for this model with -k)"


def _from_generated_code(error: BaseException) -> bool:
    """Whether inductor, or what it wrote, raised it."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return bool(files) and any(f"{os.sep}_inductor{os.sep}" in file or "compile-cache" in file for file in files[-3:])


def compile_counts() -> CompileCounts:
    """Dynamo's counters: a private interface, read only here; a test fails when it changes."""
    from torch._dynamo.utils import counters

    return CompileCounts(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()))
