"""Global state of torch that changes what a benchmark measures: saved, restored and checked around each one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from perfgate.errors import StateLeak

Setting = tuple[Callable[[], Any], Callable[[Any], Any]]


def _attribute(owner: Any, name: str) -> Setting:
    return (lambda: getattr(owner, name)), (lambda value: setattr(owner, name, value))


def _matmul_precision() -> str:
    """``none`` (never set) computes as ``ieee`` does."""
    precision = torch.backends.cuda.matmul.fp32_precision
    return "ieee" if precision == "none" else str(precision)


def _set_matmul_precision(precision: str) -> None:
    torch.backends.cuda.matmul.fp32_precision = precision


def _float32_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to answer where both of its interfaces were used
        return "set elsewhere"


SETTINGS: dict[str, Setting] = {
    "cudnn.benchmark": _attribute(torch.backends.cudnn, "benchmark"),
    "cudnn.deterministic": _attribute(torch.backends.cudnn, "deterministic"),
    "cudnn.enabled": _attribute(torch.backends.cudnn, "enabled"),
    "cudnn TF32": _attribute(torch.backends.cudnn.conv, "fp32_precision"),  # type: ignore[attr-defined]
    "matmul TF32": (_matmul_precision, _set_matmul_precision),
    "float32 matmul precision": (_float32_precision, torch.set_float32_matmul_precision),
    "deterministic algorithms": (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    "CPU autocast": (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda value: torch.set_autocast_enabled("cpu", value),
    ),
    "CUDA autocast": (
        lambda: torch.is_autocast_enabled("cuda"),
        lambda value: torch.set_autocast_enabled("cuda", value),
    ),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "threads": (torch.get_num_threads, torch.set_num_threads),
    "grad mode": (torch.is_grad_enabled, torch.set_grad_enabled),
    "anomaly detection": (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    **{
        f"{name} attention": (
            getattr(torch.backends.cuda, f"{name}_sdp_enabled"),
            getattr(torch.backends.cuda, f"enable_{name}_sdp"),
        )
        for name in ("flash", "mem_efficient", "cudnn", "math")
    },
    "float16 reduced precision": _attribute(torch.backends.cuda.matmul, "allow_fp16_reduced_precision_reduction"),
    "bfloat16 reduced precision": _attribute(torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction"),
}
"""Name -> how to read and how to set it."""


@contextmanager
def guarded_state(device: torch.device) -> Iterator[None]:
    """Restore all settings, and the random seeds of the CPU and of ``device``, after the block.

    Other GPUs are left alone: to ask for their seeds would start CUDA in a session that measures the CPU.

    Raises:
        StateLeak: naming what the block changed and did not put back.
    """
    before = {name: read() for name, (read, _) in SETTINGS.items()}
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        try:
            yield
        finally:
            leaks = restore(before)
    if leaks:
        raise StateLeak(f"global state was changed and not put back: {'; '.join(leaks)}")


def restore(before: dict[str, Any]) -> list[str]:
    """Put back what differs from ``before``, and say what that was."""
    leaks = []
    for name, (read, write) in SETTINGS.items():
        if read() != before[name]:
            leaks.append(f"{name} {before[name]} -> {read()}")
            write(before[name])
    return leaks
