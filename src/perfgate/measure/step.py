"""What perfgate needs of the thing it measures. ``workloads`` fulfils it; so may anything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import torch


class Outcome(Protocol):
    """What a step computed."""

    @property
    def kind(self) -> str:
        """``movement`` (of parameters), ``outputs`` (within a relative error) or ``identical``."""

    @property
    def tensors(self) -> Mapping[str, torch.Tensor]:
        """The values by name."""


class Tolerance(Protocol):
    """How far a variant's outcome may be from its plain twin's."""

    @property
    def norm_ratio(self) -> float:
        """Largest |ratio - 1| of the norms."""

    @property
    def cosine(self) -> float:
        """Smallest cosine."""

    @property
    def relative_error(self) -> float:
        """Largest relative L2 error of outputs."""


class Figure(Protocol):
    """A number that only the subject can tell, such as an accuracy."""

    @property
    def name(self) -> str:
        """With its unit in it, as ``starvation_share``."""

    @property
    def unit(self) -> str:
        """SI unit, ``1``, ``count`` ..."""

    @property
    def values(self) -> tuple[float, ...]:
        """All that were measured; empty where unknown."""

    @property
    def better(self) -> Literal["lower", "higher", "neither"]:
        """Which way is better; ``neither`` is shown and never judged."""

    @property
    def exact(self) -> bool:
        """Whether it is the same in every run."""

    @property
    def note(self) -> str | None:
        """Why it is unknown, or what to know about it."""


class Step(Protocol):
    """One benchmarkable piece of work."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What makes this benchmark this one."""

    @property
    def samples(self) -> int:
        """Images, sequences or other samples in one call of :meth:`run`."""

    @property
    def compiled(self) -> bool:
        """Whether dynamo or inductor compile it."""

    @property
    def opaque(self) -> bool:
        """Whether a dispatch mode would see another program than the one that runs; so is everything compiled."""

    @property
    def repeatable(self) -> bool:
        """Whether its counts are the same in every run, so that they can be compared exactly."""

    @property
    def tolerance(self) -> Tolerance:
        """For the comparison with its plain twin."""

    def expected_against(self, plain: Any) -> str:
        """The expected direction beside its plain twin: ``faster``, ``same``, ``slower`` or ``any``."""

    def unsuitable(self, device: torch.device) -> str | None:
        """Why it cannot run on ``device``, with the remedy."""

    def build(self, device: torch.device) -> None:
        """Fresh, seeded state.

        An exception with a true attribute ``skip``, raised here or in the first call, says what :meth:`unsuitable`
        could not know: the benchmark is skipped with it.
        """

    def release(self) -> None:
        """Drop the state."""

    def active(self) -> AbstractContextManager[None]:
        """Global state that must hold while it runs."""

    def run(self) -> None:
        """The work, without waiting for the device."""

    def run_uncompiled(self) -> None:
        """The same with the eager program in place of a compiled artefact."""

    def outcome(self) -> Outcome:
        """What one step from the initial state computes."""

    def reference_outcome(self, variant: Any) -> Outcome:
        """What ``variant`` must compute, from a fresh plain twin; called on the twin."""

    def last_value(self) -> torch.Tensor | None:
        """Loss or outputs of the last run."""

    def resident_tensors(self) -> Iterable[torch.Tensor]:
        """Tensors that stay alive between runs."""

    def counts(self) -> Mapping[str, int]:
        """Counts that only the subject can give."""

    def figures(self) -> Iterable[Figure]:
        """Numbers that only the subject can tell; asked once, after the timed rounds."""

    def proof(self, counts: Mapping[str, int]) -> Mapping[str, str]:
        """Evidence per technique; raises where one is not in effect."""
