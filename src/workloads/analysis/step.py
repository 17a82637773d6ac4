"""The training step whose record also holds its analysis."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from workloads.analysis.analysis import analyse
from workloads.analysis.figures import figures_of
from workloads.steps import Figure, TrainStep

ROUNDS = 5  # of each timed part: a median, in seconds that a suite can spare
FACTORS = (2.0,)  # of batch and width, for the same reason


class AnalysisStep(TrainStep):
    """A training step that is analysed on a twin of its own after it was timed."""

    def __str__(self) -> str:
        """The training step's slug, with its own kind."""
        return super().__str__().replace("/train/", "/analysis/")

    @property
    def identity(self) -> dict[str, object]:
        """Not that of the training step alone."""
        return {**super().identity, "step": "analysis"}

    def figures(self) -> Iterable[Figure]:
        """The analysis of an equal, freshly built step; this one's state is not touched.

        With a compiled technique, building the twin forgets this step's compiled code, which is then compiled again.
        """
        with torch.random.fork_rng():
            found = analyse(self.workload, self.optimizations, device=self.parts.device, rounds=ROUNDS, factors=FACTORS)
        return list(figures_of(found))
