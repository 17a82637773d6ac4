"""The roofline model (Williams, Waterman, Patterson 2009, doi:10.1145/1498765.1498785): what bounds a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Bound = Literal["compute", "memory", "launch", "input"]

LAUNCH_FACTOR = 4.0
"""A step that takes longer than this many times both roofs is bound by neither. Well-fed training reaches a third to
a half of the compute peak; the rest below that is dispatching operators, launching kernels and waiting."""


@dataclass(frozen=True, kw_only=True)
class Roofline:
    """One step beside the two roofs of its machine."""

    flops: int
    traffic_bytes: int
    """An upper bound, as if there were no caches."""
    compute_roof_seconds: float
    """At the measured peak of each precision in use."""
    memory_roof_seconds: float
    """At the measured peak of a copy."""
    step_seconds: float
    data_seconds: float | None
    """For one batch from the loader to the device; ``None`` where the workload has no samples."""

    @property
    def flops_per_second(self) -> float:
        """Achieved."""
        return self.flops / self.step_seconds

    @property
    def bytes_per_second(self) -> float:
        """Achieved, counted at the operators; above the copy's peak where caches serve."""
        return self.traffic_bytes / self.step_seconds

    @property
    def arithmetic_intensity(self) -> float:
        """FLOP per byte of traffic."""
        return self.flops / self.traffic_bytes if self.traffic_bytes else 0.0

    @property
    def ridge_point(self) -> float:
        """FLOP per byte from which on the compute roof is the lower one."""
        if not (self.compute_roof_seconds and self.memory_roof_seconds):
            return 0.0
        return self.arithmetic_intensity * self.memory_roof_seconds / self.compute_roof_seconds

    @property
    def compute_share(self) -> float:
        """Model FLOPs utilisation (MFU): achieved FLOP/s as a share of the peak, 0 to 1."""
        return self.compute_roof_seconds / self.step_seconds

    @property
    def memory_share(self) -> float:
        """Achieved bytes/s as a share of the copy's; above 1 where caches serve."""
        return self.memory_roof_seconds / self.step_seconds

    @property
    def bound(self) -> Bound:
        """What the step waits for most."""
        if self.data_seconds is not None and self.data_seconds > self.step_seconds:
            return "input"
        if self.step_seconds > LAUNCH_FACTOR * max(self.compute_roof_seconds, self.memory_roof_seconds):
            return "launch"
        return "compute" if self.compute_roof_seconds >= self.memory_roof_seconds else "memory"
