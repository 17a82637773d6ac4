"""A CUDA graph of the whole step: one launch instead of hundreds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from workloads.optimizations.compilation import CUDA_GRAPH_MODES
from workloads.workload import Call, NotInEffect, Observation, Optimization, Parts, Workload

SEED_FILLS = 2  # torch writes seed and offset before it replays a graph that draws random numbers
WARMUP_STEPS = 3  # as torch's notes on CUDA graphs advise: lazy initialisation must not be captured


@dataclass(frozen=True)
class CudaGraph(Optimization):
    """Forward, backward and update captured once and replayed."""

    name: ClassVar[str] = "cuda-graph"
    order: ClassVar[int] = 94
    opaque: ClassVar[bool] = True  # a replay dispatches nothing
    keeps_state: ClassVar[bool] = True
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """CUDA's alone."""
        return None if device.type == "cuda" else "CUDA graphs need a CUDA GPU"

    def clash(self, other: Optimization) -> str | None:
        """What reads values on the host cannot be captured, and compilers with graphs of their own capture already."""
        if str(other) == "amp-fp16":
            return "GradScaler reads on the host whether gradients overflowed: capture amp-bf16 instead"
        if getattr(other, "mode", "") in CUDA_GRAPH_MODES:
            return f"{other} captures CUDA graphs of its own"
        return super().clash(other)

    def apply(self, parts: Parts) -> None:
        """An optimizer that counts its steps must do so on the device."""
        if parts.optimizer is torch.optim.AdamW:
            parts.optimizer_arguments["capturable"] = True

    def wrap(self, parts: Parts, call: Call, optimizer: torch.optim.Optimizer | None) -> Call:
        """Capture in the first call, replay in all."""
        captured: list[tuple[Any, Tensor]] = []

        def replay() -> Tensor:
            if not captured:
                captured.append(_capture(parts, call, optimizer))
                parts.notes[self.name] = True
            graph, result = captured[0]
            graph.replay()
            return result

        return replay

    def proof(self, seen: Observation) -> str:
        """One graph launch, and at most the two that may write a random seed, where they are counted."""
        if not seen.parts.notes.get(self.name):
            raise NotInEffect("no graph was captured")
        graphs = seen.counts.get("graph_launches", 1)
        kernels = seen.counts.get("kernel_launches", graphs) - graphs
        if graphs != 1 or kernels > SEED_FILLS:
            raise NotInEffect(f"{graphs} graph launches and {kernels} launches of kernels beside them in a step")
        return "one graph launch per step"


def _capture(parts: Parts, call: Call, optimizer: torch.optim.Optimizer | None) -> tuple[Any, Tensor]:
    """The graph of a step and the tensor that holds its result; the state is as before the call."""
    before = {name: each.detach().clone() for name, each in parts.model.state_dict().items()}
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARMUP_STEPS):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    _restore(parts, before, optimizer)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = call()
    return graph, result


def _restore(parts: Parts, before: dict[str, Tensor], optimizer: torch.optim.Optimizer | None) -> None:
    """Put the model back; an optimizer's state of zeros is the state before its first step."""
    with torch.no_grad():
        for name, each in parts.model.state_dict().items():
            each.copy_(before[name])
        for state in (optimizer.state if optimizer else {}).values():
            for value in state.values():
                if isinstance(value, Tensor):
                    value.zero_()
