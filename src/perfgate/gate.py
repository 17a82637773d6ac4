"""What a session does around its benchmarks: choose the baseline before, save and judge after. Knows no pytest."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfgate import interference, repository, shares
from perfgate.errors import SettingsError
from perfgate.harvest import Harvest
from perfgate.keeping import Keeping
from perfgate.limits import strained
from perfgate.recheck import FRESH_PROCESSES, with_fresh
from perfgate.resources import Resources
from perfgate.results import baseline as baselines
from perfgate.results.baseline import Baseline
from perfgate.results.journal import Session, unfinished
from perfgate.results.ledger import Ledger, read_ledger
from perfgate.results.record import Machine, Process, Run
from perfgate.results.stock import document
from perfgate.results.store import Store
from perfgate.settings import Settings
from perfgate.shares import Share
from perfgate.turns import ALONE, Turns
from perfgate.verdict.accepted import NAME as ACCEPTED
from perfgate.verdict.accepted import Accepted, accepting, read_accepted
from perfgate.verdict.verdicts import Accept, Verdict, gone, unjudged, with_verdicts
from perfgate.watch import limit_of
from perfgate.wishes import Wishes

if TYPE_CHECKING:
    import torch

    from perfgate.faults import Fault
    from perfgate.measure.nvml import Gpu


def _refuse_interference() -> None:
    """Refuse to time what a variable or a tool slows down."""
    found = [*interference.refused(os.environ), *filter(None, [interference.tracing()])]
    if found:
        raise SettingsError(f"{'; '.join(found)}. To check without timing: --perfgate-smoke")


def utc_stamp(moment: datetime) -> str:
    """``20261120T233405123Z``: sorts by time, to the millisecond."""
    return f"{moment:%Y%m%dT%H%M%S}{moment.microsecond // 1000:03d}Z"


@dataclass
class Gate:
    """The state of one session."""

    wishes: Wishes
    settings: Settings
    harvest: Harvest = field(default_factory=Harvest)
    """What was measured, in whichever process."""
    share: Share | None = None
    """The part of the machine that each of several workers has."""
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
    limits: Mapping[str, float] = field(default_factory=dict)
    """What the controller says how long benchmarks may take."""
    seen: set[str] = field(default_factory=set)
    """Ids that workers collected, of benchmarks and of other tests: what is there is not gone."""
    reported: set[str] = field(default_factory=set)
    """Benchmarks that pytest itself shows as failed."""
    open: bool = False
    """Whether measuring has begun."""
    poisoned: str = ""
    """What made this process unfit for another benchmark."""
    lost: str = ""
    """Why the rest of the session could not be measured."""

    def __post_init__(self) -> None:
        """The folder of runs; nothing is read yet."""
        self.store = Store(self.wishes.results)
        self._device: torch.device | None = None
        self._gpu: Gpu | None = None
        self._machine: Machine | None = None
        self._process: Process | None = None
        self.keeping: Keeping | None = None
        self.resources = Resources()

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

            shared = self.share and self.share.count > 1 and self.device.type == "cpu"
            cores = len(self.share.of_cores(shares.usable_cores())) if self.share and shared else None
            self._machine = describe_machine(self.device, self.gpu, cores=cores)
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
            SettingsError: where the device asked for is not there, something spoils every time, or ``accepted.toml``
                is wrong.
            ResultsError: where the baseline asked for is not there, or the folder cannot be written, or the ledger
                cannot be read.
        """
        if not (self.wishes.smoke or self.wishes.plan):
            _refuse_interference()
        _ = self.device
        if self.wishes.compare or self.wishes.plan:
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
            self.keeping = Keeping(self.store.root / self.machine.slug, self._session)
            self.harvest.sink = self.keeping.keep
        if self.wishes.resume and self.keeping:
            found = self.keeping.resume(self.harvest, patient=self.wishes.limit_seconds is not None)
            self.stamp = found.session.stamp
            self.remarks += [*found.problems, f"went on with the run of {self.stamp}: {self._kept} kept"]

    @property
    def waiting(self) -> list[Path]:
        """Journals of this machine's runs that were killed, newest first."""
        return [] if self.wishes.resume else unfinished(self.store.root / self.machine.slug)

    @property
    def done(self) -> set[str]:
        """Benchmarks that a resumed run need not measure again."""
        return {*self.harvest.finished, *self.harvest.outcomes}

    def _session(self) -> Session:
        """This session, for its journal."""
        return Session(
            stamp=self.stamp,
            commit=self._commit(),
            machine=self.machine,
            code=repository.fingerprint(self.wishes.root, ignoring=self._results_in_project()),
            label=self.wishes.label,
        )

    def _commit(self) -> dict[str, str]:
        return repository.commit(self.wishes.root, ignoring=self._results_in_project())

    def occupy(self, *, all_gpus: bool, say: Callable[[str], object]) -> None:
        """Keep other suites from the devices that this process measures on, to the session's end.

        Raises:
            DeviceBusy: where one measures there, with who it is.
        """
        self.resources.occupy(self.devices(all_gpus=all_gpus), self.wishes.wait_seconds, say)

    def devices(self, *, all_gpus: bool = False) -> list[str]:
        """Names of what is measured on, for locks."""
        if self.device.type == "cpu":
            return shares.core_names()
        return [f"gpu-{each}" for each in shares.gpu_uuids(None if all_gpus else self.device)]

    def begin(self, name: str) -> None:
        """A benchmark begins."""
        self.harvest.start(name)
        self.resources.begin(name, self.limit(name))

    def suffer(self, fault: Fault, *, isolated: bool) -> bool:
        """Take the consequences of a fault of the machine; whether the session must stop.

        ``isolated`` tells that another process takes over from one that is poisoned.
        """
        if fault.poisons:
            self.poisoned = fault.reason
        if fault.code == "out-of-memory" and not isolated:
            with contextlib.suppress(RuntimeError):  # the device may be past helping
                self._free_device()
        sticky = fault.poisons and fault.code != "out-of-memory" and not isolated
        if fault.ends_session or sticky:
            remedy = "" if fault.ends_session else "; with -n 1 a fresh process would have gone on"
            self.lost = f"{fault.code}: {fault.reason}{remedy}"
        return bool(self.lost)

    def give_up_rest(self, names: Collection[str]) -> bool:
        """Say of all that did not run, where nobody asked for that, why; whether there were any."""
        rest = sorted(set(names) - self.done)
        reason = self.lost or "the session ended before it, and did not say why"
        for name in rest:
            self.harvest.give_up(unjudged(name, "not-run", f"not run: {reason}"))
        return bool(rest)

    def save_nothing(self) -> None:
        """This run is nobody's baseline."""
        self.wishes = dataclasses.replace(self.wishes, save=False)
        self.harvest.sink = lambda _: None

    def check_share(self) -> None:
        """Before measuring with several workers: is there a device for each?

        Raises:
            SettingsError: where there is none.
        """
        if self.share:
            shares.check(self.share, self.device.type)

    def limit(self, name: str) -> float:
        """Seconds that a benchmark may take."""
        if name in self.limits:
            return self.limits[name]
        past = self.baseline.records.get(name)
        return limit_of(past.seconds if past else None, self.wishes.limit_seconds)

    def close(self) -> None:
        """Let go of everything."""
        self.resources.close()
        if self.keeping:
            self.keeping.close()

    @property
    def process(self) -> Process | None:
        """What :meth:`describe_process` found; ``None`` before."""
        return self._process

    def describe_process(self) -> Process:
        """The state of this process and a reading of the canary, taken once, before the first benchmark."""
        if self._process is None:
            from perfgate.measure.environment import describe_process

            self._process = describe_process(self.device, self.gpu, self.wishes.root, self.settings.subject)
        self.harvest.measured_by(self._process)
        return self._process

    def finish(self, scope: Mapping[str, Any], missing: Collection[str], *, interrupted: bool) -> list[Verdict]:
        """After measuring: make the run, judge it, and save it with its verdicts.

        ``missing`` are the ids of the baseline that belonged to this session's scope and did not run. The journal of a
        complete run is removed, that of an interrupted one stays.

        Raises:
            UnsavableRun: where saving failed; the verdicts are lost too, since nothing can be trusted then.
        """
        if interrupted:
            self.harvest.stopped()
        without_number = [*map(self._expectedly, self.harvest.outcomes.values()), *gone(missing)]
        if not self.harvest.finished:
            if self.keeping and not interrupted:
                self.keeping.finish(None)
            return without_number
        run = self._make_run(scope, interrupted=interrupted)
        judged: list[Verdict] = []
        if self.wishes.compare:
            run, judged = self._judge(run, confirm=not interrupted)
        self.run = with_verdicts(run, judged, accept=self.wishes.accept)
        self.remarks += dict.fromkeys(filter(None, (strained(process.readings) for process in run.processes)))
        if self.wishes.save:
            self.saved = self.store.save(self.run, document(self.harvest.stock))
        if self.keeping and self.saved and interrupted:
            self.keeping.interrupt(self.saved)
            self.remarks.append(f"interrupted: go on with --perfgate-resume ({self._kept} kept)")
        elif self.keeping:
            self.keeping.finish(self.saved)
        return [*judged, *without_number]

    @property
    def _kept(self) -> str:
        count = len(self.harvest.finished)
        return f"{count} benchmark{'' if count == 1 else 's'}"

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
            commit=self._commit(),
            stamp=self.stamp,
            status="interrupted" if interrupted else "complete",
            scope=dict(scope),
            processes=tuple(self.harvest.processes.values()),
            records=self.harvest.records,
            label=self.wishes.label,
        )

    def _results_in_project(self) -> str:
        """The folder of runs relative to the project, for git to ignore."""
        results, root = self.wishes.results.resolve(), self.wishes.root.resolve()
        return str(results.relative_to(root)) if results.is_relative_to(root) else self.settings.results
