"""torch.compile: the model captured as graphs and generated as fused code."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch

from workloads.optimizations import compilers
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Tolerance, Unsuitable, Workload

MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")


@dataclass(frozen=True)
class Compile(Optimization):
    """``model.compile(mode=...)`` with the inductor backend."""

    name: ClassVar[str] = "compile"
    order: ClassVar[int] = 90
    compiled: ClassVar[bool] = True
    expected: ClassVar = "any"  # 1.41x in training and 2.27x in inference on an A100; no promise on a CPU
    tolerance: ClassVar[Tolerance] = Tolerance(norm_ratio=0.02, cosine=0.99, relative_error=0.01)
    source: ClassVar[str] = "Ansel et al. 2024, doi:10.1145/3620665.3640366: 1.41x training, 2.27x inference (A100)"
    slot: ClassVar[str] = "compilation"
    mode: Literal["default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune"] = "default"
    fullgraph: bool = False
    """Refuse graph breaks instead of running what lies between two graphs eagerly."""
    dynamic: bool = False
    """Code for any batch size instead of the one that is seen first."""

    def __post_init__(self) -> None:
        """Refuse unknown modes."""
        if self.mode not in MODES:
            raise Unsuitable(f"compile: mode must be one of {', '.join(MODES)}, got {self.mode!r}")

    def __str__(self) -> str:
        """``compile`` and whatever is not the default."""
        chosen: list[str] = [self.mode] if self.mode != "default" else []
        chosen += [name for name in ("fullgraph", "dynamic") if getattr(self, name)]
        return "-".join([self.name, *chosen])

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """CPU code needs a C++ compiler, GPU code triton and a C compiler; CUDA graphs need CUDA."""
        if device.type != "cpu":
            return compilers.missing_for_gpu()
        if self.mode in CUDA_GRAPH_MODES:
            return f"compile mode {self.mode} works through CUDA graphs and is not in effect on a CPU"
        return compilers.missing_for_cpu()

    def clash(self, other: Optimization) -> str | None:
        """Lite mode runs operators as the eager program has them, but not in autocast's types."""
        if self.mode in CUDA_GRAPH_MODES and other.splits_batch:
            return f"{self} reuses the memory of one part's outputs for the next one's ({other}): use compile"
        if self.mode == "lite" and other.name == "amp":
            return f"{self} mixes up the types of {other} in the backward pass: use compile"
        return super().clash(other)

    def apply(self, parts: Parts) -> None:
        """Compile in place, so that names and hooks of the model stay."""
        chosen: dict[str, Any] = {"mode": self.mode, "fullgraph": self.fullgraph, "dynamic": self.dynamic or None}
        if str(type(parts.model).forward.__module__).startswith("torch.nn.modules"):
            # torch 2.11 leaves a bare container eager in model.compile(), without a word
            parts.model.forward = torch.compile(parts.model.forward, **chosen)
        else:
            parts.model.compile(**chosen)

    def proof(self, seen: Observation) -> str:
        """Whoever measures counted compiled graphs; a silent fallback to eager compiles none.

        Modes that promise CUDA graphs must also have launched some.
        """
        graphs = seen.counts.get("compiled_graphs", 0)
        if not graphs:
            raise NotInEffect("no graph was compiled (is TORCHDYNAMO_DISABLE or suppress_errors set?)")
        if self.mode in CUDA_GRAPH_MODES and not seen.counts.get("graph_launches"):
            raise NotInEffect("no CUDA graph was launched: inductor skipped them (TORCH_LOGS=perf_hints says why)")
        breaks = seen.counts.get("graph_breaks", 0)
        if self.fullgraph and breaks:
            raise NotInEffect(f"{breaks} graph breaks, where fullgraph allows none")
        return f"{graphs} compiled graphs, {breaks} graph breaks"
