"""How the optimizer updates the parameters: one by one, in a few horizontally fused operations, or in one kernel."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable

ALGORITHMS = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
ARGUMENTS = {"for-loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
PREFIXES = {"fused": "aten::_fused_", "foreach": "aten::_foreach_"}  # a fused AdamW counts its steps with foreach


@dataclass(frozen=True)
class Update(Optimization):
    """SGD with momentum, or AdamW, in one of torch's three implementations; torch itself picks foreach on a GPU."""

    name: ClassVar[str] = "update"
    order: ClassVar[int] = 50
    kinds: ClassVar[frozenset[str]] = frozenset({"train"})
    keeps_state: ClassVar[bool] = True
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/optim.html#algorithms"
    implementation: Literal["for-loop", "foreach", "fused"] = "fused"
    algorithm: Literal["sgd", "adamw"] = "sgd"

    def __post_init__(self) -> None:
        """Refuse what torch does not have."""
        for chosen, known in ((self.implementation, ARGUMENTS), (self.algorithm, ALGORITHMS)):
            if chosen not in known:
                raise Unsuitable(f"update: expected one of {', '.join(known)}, got {chosen!r}")

    def __str__(self) -> str:
        """``sgd-fused``, ``adamw-for-loop`` ..."""
        return f"{self.algorithm}-{self.implementation}"

    def baseline(self) -> tuple[Optimization, ...]:
        """The same algorithm, parameter by parameter."""
        return (Update("for-loop", self.algorithm),)

    def clash(self, other: Optimization) -> str | None:
        """What a GradScaler skips in torch's fused SGD leaves momentum behind that nobody wrote."""
        if str(self) == "sgd-fused" and str(other) == "amp-fp16":
            return (
                "torch's fused SGD goes on with uninitialised momentum where GradScaler skips its first step: "
                "use amp-bf16, or sgd-foreach"
            )
        return super().clash(other)

    def apply(self, parts: Parts) -> None:
        """Choose the optimizer and its implementation."""
        parts.optimizer = ALGORITHMS[self.algorithm]
        parts.optimizer_arguments |= ARGUMENTS[self.implementation]

    def reference(self, parts: Parts) -> None:
        """The same algorithm, parameter by parameter."""
        parts.optimizer = ALGORITHMS[self.algorithm]
        parts.optimizer_arguments |= ARGUMENTS["for-loop"]

    def proof(self, seen: Observation) -> str:
        """The operators that were dispatched; of a compiled step, what the optimizer was made with."""
        if not seen.operators:
            return f"{seen.parts.optimizer.__name__} made with {seen.parts.optimizer_arguments}"
        found = [kind for kind, prefix in PREFIXES.items() if any(name.startswith(prefix) for name in seen.operators)]
        used = next(iter(found), "for-loop")
        if used != self.implementation:
            raise NotInEffect(f"the update dispatched {used} operators")
        return f"the update dispatched {used} operators"
