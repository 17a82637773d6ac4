"""What a session does around its benchmarks: choose the baseline before, save and judge after. Knows no pytest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfgate import repository
from perfgate.errors import SettingsError
from perfgate.recheck import FRESH_PROCESSES, with_fresh
from perfgate.results import baseline as baselines
from perfgate.results.baseline import Baseline
from perfgate.results.ledger import Ledger, read_ledger
from perfgate.results.record import Machine, Process, Record, Run
from perfgate.results.store import Store
from perfgate.settings import Settings
from perfgate.turns import ALONE, Turns
from perfgate.verdict.accepted import NAME as ACCEPTED
from perfgate.verdict.accepted import Accepted, accepting, read_accepted
from perfgate.verdict.verdicts import Accept, Verdict, gone, with_verdicts
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
    turns: Turns = ALONE
    ledger: Ledger = field(default_factory=Ledger)
    entries: list[Accepted] = field(default_factory=list)
    """Regressions that were accepted."""
    again: Callable[[Collection[str], Run], tuple[list[Run], list[str]]] | None = None
    """Measures benchmarks again in fresh processes; ``None`` where that cannot be."""
    remarks: list[str] = field(default_factory=list)
    """What else to say in the report."""

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

    def check_expected(self) -> None:
        """Before measuring: is there what ``--perfgate-expect`` names?

        Raises:
            SettingsError: where it is not.
        """
        if self.wishes.expect == "gpu" and self.device.type != "cuda":
            raise SettingsError("--perfgate-expect gpu: this session would measure on the CPU; check nvidia-smi")

    def prepare(self) -> None:
        """Before measuring: look for the device, find the baseline, and make sure that a result can be saved.

        Raises:
            SettingsError: where the device asked for is not there, or ``accepted.toml`` is wrong.
            ResultsError: where the baseline asked for is not there, or the folder cannot be written, or the ledger
                cannot be read.
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
                ancestors=repository.ancestors(self.wishes.root),
            )
            self.ledger = read_ledger(self.store.root / self.machine.slug)
            self.entries = read_accepted(self.store.root / ACCEPTED)
        if self.wishes.save:
            self.store.probe(self.machine.slug)

    @property
    def process(self) -> Process | None:
        """What :meth:`describe_process` found; ``None`` before."""
        return self._process

    def describe_process(self) -> Process:
        """The state of this process and a reading of the canary, taken once, before the first benchmark."""
        if self._process is None:
            from perfgate.measure.environment import describe_process

            self._process = describe_process(self.device, self.gpu, self.wishes.root, self.settings.subject)
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
        judged: list[Verdict] = []
        if self.wishes.compare:
            run, judged = self._judge(run, confirm=not interrupted)
        self.run = with_verdicts(run, judged, accept=self.wishes.accept)
        if self.wishes.save:
            self.saved = self.store.save(self.run, stock)
        return [*judged, *without_number]

    def _judge(self, run: Run, *, confirm: bool) -> tuple[Run, list[Verdict]]:
        """Verdicts on the run, and the run with what fresh processes measured of the candidates."""
        from perfgate.verdict.compare import compare

        comparison = compare([run], self.baseline, self.settings, self.ledger)
        candidates = comparison.candidates if confirm and self.again else set()
        fresh: list[Run] = []
        if candidates and self.again:
            self._free_device()
            fresh, problems = self.again(candidates, run)
            self.remarks += [f"could not be measured again: {each}" for each in problems]
        dated = [(record, each) for each in fresh for record in each.records]
        planned = FRESH_PROCESSES if confirm and self.again else 0
        return with_fresh(run, fresh), comparison.verdicts(dated, planned=planned, accept=self._accept())

    def _accept(self) -> Accept:
        """What ``accepted.toml`` accepts of this run."""

        def since(commit: str, name: str) -> bool | None:
            _, run = self.baseline.newest[name]  # what was judged slower is not the base
            return repository.came_between(self.wishes.root, commit, run.commit["id"], "HEAD")

        return accepting(self.entries, since, datetime.now(UTC).date())

    def _free_device(self) -> None:
        """Leave the device's memory to the fresh processes."""
        import gc

        gc.collect()
        if self.device.type == "cuda":
            import torch

            torch.cuda.empty_cache()

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
