"""Every technique of the catalogue on one workload, each beside its right twin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workloads.optimizations import CATALOGUE
from workloads.steps import Step
from workloads.workload import Optimization, Workload, clashes

KINDS = ("train", "inference", "load")
"""Kinds of step to compare on, in the order of a report."""
LONG = "epoch"
"""A whole epoch takes long: only for what nothing shorter has a use for."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One technique on one kind of step; nothing is made before :attr:`step` and :attr:`against` are asked for."""

    workload: Workload
    kind: str
    technique: Optimization

    def __str__(self) -> str:
        """A stable id, for example ``tagger-b32 train amp-bf16``."""
        return f"{self.workload} {self.kind} {self.technique}"

    @property
    def step(self) -> Step:
        """The technique on top of what its twin has, in place of what it excludes."""
        kept = [each for each in self.technique.baseline() if not clashes((each, self.technique))]
        return self._step(*kept, self.technique)

    @property
    def against(self) -> Step:
        """Its twin: the plain step, or what the technique says it is to be measured against."""
        return self._step(*self.technique.baseline())

    def _step(self, *stack: Optimization) -> Step:
        make = {
            "train": self.workload.train_step,
            "inference": self.workload.inference_step,
            "load": self.workload.loading_step,
            LONG: self.workload.epoch_step,
        }
        return make[self.kind](*stack)


def comparisons(
    workload: Workload | Iterable[Workload], techniques: Iterable[Optimization] | None = None
) -> list[Comparison]:
    """Each of ``techniques`` (default: the whole catalogue) on each kind of step it works in, of one or more workloads.

    Whether it can be used with this model on this machine is asked when it is measured: ``step.unsuitable(device)``
    says why not.
    """
    workloads = [workload] if isinstance(workload, Workload) else list(workload)
    all_of_them = CATALOGUE.values() if techniques is None else techniques
    chosen = [each for each in all_of_them if each not in each.baseline()]
    return [
        Comparison(workload=each, kind=kind, technique=technique)
        for each in workloads
        for kind in (*KINDS, LONG)
        for technique in chosen
        if kind in _kinds(technique)
    ]


def _kinds(technique: Optimization) -> frozenset[str]:
    return technique.kinds & {*KINDS} or technique.kinds & {LONG}
