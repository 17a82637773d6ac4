"""What a session does around its benchmarks: choose the baseline before, save and judge after. Knows no pytest."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfgate import repository
from perfgate.results import baseline as baselines
from perfgate.results.baseline import Baseline
from perfgate.results.record import Machine, Measurement, Process, Record, Run, identity_hash
from perfgate.results.store import Store
from perfgate.settings import Settings
from perfgate.verdict.compare import gone, judge, with_verdicts
from perfgate.verdict.verdicts import Verdict
from perfgate.wishes import Wishes

if TYPE_CHECKING:
    import torch

    from perfgate.measure.nvml import Gpu


def utc_stamp(moment: datetime) -> str:
    """``20261120T233405123Z``: sorts by time, to the millisecond."""
    return f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}Z"


@dataclass
class Gate:
    """The state of one session."""

    wishes: Wishes
    settings: Settings
    records: list[Record] = field(default_factory=list)
    outcomes: dict[str, Verdict] = field(default_factory=dict)
    """Benchmarks without a number: failed or skipped, with their reasons."""
    stamp: str = field(default_factory=lambda: utc_stamp(datetime.now(UTC)))
    baseline: Baseline = field(default_factory=Baseline)
    saved: Path | None = None
    run: Run | None = None

    def __post_init__(self) -> None:
        """The folder of runs; nothing is read yet."""
        self.store = Store(self.wishes.results)
        self._device: torch.device | None = None
        self._gpu: Gpu | None = None
        self._machine: Machine | None = None
        self._process: Process | None = None

    @property
    def device(self) -> torch.device:
        """Where to measure; looked for once."""
        if self._device is None:
            from perfgate.measure.environment import choose_device, gpu_of

            self._device = choose_device(self.wishes.device)
            self._gpu = gpu_of(self._device)
        return self._device

    @property
    def gpu(self) -> Gpu | None:
        """NVML's view of the device."""
        return self._gpu if self.device.type == "cuda" else None

    @property
    def machine(self) -> Machine:
        """This machine."""
        if self._machine is None:
            from perfgate.measure.environment import describe_machine

            self._machine = describe_machine(self.device, self.gpu)
        return self._machine

    def prepare(self) -> None:
        """Before measuring: look for the device, find the baseline, and make sure that a result can be saved.

        Raises:
            SettingsError: where the device asked for is not there.
            ResultsError: where the baseline asked for is not there, or the folder cannot be written.
        """
        _ = self.device
        if self.wishes.compare:
            choice = self.wishes.compare if isinstance(self.wishes.compare, str) else None
            self.baseline = baselines.find(
                self.store,
                self.machine,
                choice=choice,
                renamed=self.settings.renamed,
                strict=self.wishes.strict,
            )
        if self.wishes.save:
            self.store.probe(self.machine.slug)

    def describe_process(self) -> Process:
        """The state of this process and a reading of the canary, taken once, before the first benchmark."""
        if self._process is None:
            from perfgate.measure.environment import describe_process

            self._process = describe_process(self.device, self.gpu, self.wishes.root)
        return self._process

    def finish(
        self, stock: Mapping[str, Any], scope: Mapping[str, Any], missing: Collection[str], *, interrupted: bool
    ) -> list[Verdict]:
        """After measuring: make the run, judge it, and save it with its verdicts.

        ``stock`` is pytest-benchmark's document of the same benchmarks, ``missing`` the ids of the baseline that
        belonged to this session's scope and did not run.

        Raises:
            UnsavableRun: where saving failed; the verdicts are lost too, since nothing can be trusted then.
        """
        without_number = [*map(self._expectedly, self.outcomes.values()), *gone(missing)]
        if not self.records:
            return without_number
        run = self._make_run(scope, interrupted=interrupted)
        judged = judge(run, self.baseline, self.settings) if self.wishes.compare else []
        self.run = run if self.wishes.accept else with_verdicts(run, judged)
        if self.wishes.save:
            self.saved = self.store.save(self.run, stock)
        return [*judged, *without_number]

    def _expectedly(self, verdict: Verdict) -> Verdict:
        """A skip of what the baseline has is not expected: a compiler or a GPU went missing."""
        if verdict.word == "skipped" and verdict.id in self.baseline.records:
            return dataclasses.replace(verdict, code="skipped-unexpectedly")
        return verdict

    def _make_run(self, scope: Mapping[str, Any], *, interrupted: bool) -> Run:
        return Run(
            machine=self.machine,
            commit=repository.commit(self.wishes.root, ignoring=self._results_in_project()),
            stamp=self.stamp,
            status="interrupted" if interrupted else "complete",
            scope=dict(scope),
            processes=(self.describe_process(),),
            records=tuple(self.records),
            label=self.wishes.label,
        )

    def _results_in_project(self) -> str:
        """The folder of runs relative to the project, for git to ignore."""
        results, root = self.wishes.results.resolve(), self.wishes.root.resolve()
        return str(results.relative_to(root)) if results.is_relative_to(root) else self.settings.results


def plain_record(name: str, group: str | None, samples: Sequence[float]) -> Record:
    """The record of a benchmark that used pytest-benchmark's own fixture: its times, and nothing else."""
    wall = Measurement(metric="wall_seconds", unit="s", better="lower", kind="sampled", samples=(tuple(samples),))
    return Record(
        id=name,
        group=group or "",
        identity=identity_hash({}),
        step=name,
        measurements=(wall,),
        seconds=sum(samples),
    )
