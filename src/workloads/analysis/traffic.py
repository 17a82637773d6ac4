"""What the operators of a step compute and move: FLOPs by precision, and bytes read and written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from workloads.analysis.counting import counted_run
from workloads.steps import Step

_ALLOCATING = "aten::empty"  # and empty_like, empty_strided: memory is taken and nothing is written


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one step does, counted over all its operators."""

    flops: dict[str, int]
    """By precision: ``float32``, ``tf32``, ``bfloat16``, ``float16`` ..."""
    traffic_bytes: int
    """Every operator's reads and writes, as if no cache served any: an upper bound of what memory moves."""
    operators: int

    @property
    def total_flops(self) -> int:
        """Over all precisions."""
        return sum(self.flops.values())

    @property
    def main_precision(self) -> str:
        """The one with most FLOPs; float32 where there are none."""
        return max(self.flops, key=lambda each: self.flops[each], default="float32")


class WorkCounter(TorchDispatchMode):
    """Adds up FLOPs and bytes of every operator that an eager step dispatches."""

    def __init__(self) -> None:
        """Starts at zero."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.flops: Counter[str] = Counter()
        self.traffic_bytes = 0
        self.operators = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and count it."""
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        inputs, outputs = _tensors((args, kwargs)), _tensors(result)
        self.operators += 1
        self.traffic_bytes += moved_bytes(func, inputs, outputs, args)
        formula = flop_registry.get(getattr(func, "overloadpacket", None))
        if formula:
            precision = precision_of(inputs, convolution="conv" in func.name())
            self.flops[precision] += formula(*args, **kwargs, out_val=result)
        return result


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in tree_leaves(values) if isinstance(each, Tensor)]


def moved_bytes(func: Any, inputs: list[Tensor], outputs: list[Tensor], args: Any) -> int:
    """Bytes that one operator reads and writes: its inputs, new outputs, and inputs that it changes."""
    schema = getattr(func, "_schema", None)
    addresses = {each.untyped_storage().data_ptr() for each in inputs}
    new = [each for each in outputs if each.untyped_storage().data_ptr() not in addresses]
    if schema is not None and not schema.is_mutable and not new:
        return 0  # a view
    if schema is not None and schema.name.startswith(_ALLOCATING):
        return 0
    written = _changed(schema, args) if schema is not None else []
    return _bytes(inputs) + _bytes(new) + _bytes(written)


def _changed(schema: Any, args: Any) -> list[Tensor]:
    """Inputs that are written, too; ``out=`` is only written, and has been counted once as an input."""
    pairs = zip(schema.arguments, args, strict=False)
    return _tensors([value for each, value in pairs if each.alias_info is not None and each.alias_info.is_write])


def _bytes(tensors: Iterable[Tensor]) -> int:
    """An expanded tensor's elements are read from a smaller storage."""
    return sum(min(each.numel() * each.element_size(), each.untyped_storage().nbytes()) for each in tensors)


def precision_of(tensors: Iterable[Tensor], *, convolution: bool = False) -> str:
    """In which precision an operator computes: its operands' type, or TF32 where CUDA may use it for float32."""
    floating = next((each for each in tensors if each.is_floating_point()), None)
    if floating is None:
        return "integer"
    name = str(floating.dtype).removeprefix("torch.")
    if floating.device.type != "cuda" or floating.dtype != torch.float32:
        return name
    settings: Any = torch.backends.cudnn.conv if convolution else torch.backends.cuda.matmul  # type: ignore[attr-defined]
    return "tf32" if settings.fp32_precision == "tf32" else name


def work_of(step: Step) -> Work:
    """Counted in one eager run of a built step."""
    with WorkCounter() as counter:
        counted_run(step)
    return Work(flops=dict(counter.flops), traffic_bytes=counter.traffic_bytes, operators=counter.operators)
