"""``perfgate ab``: base against head, in pairs of fresh processes whose rounds alternate; two stages."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from perfgate import locks, repository, settings
from perfgate.errors import ComparisonError, UnreadableRun
from perfgate.pairs.change import Change
from perfgate.pairs.checkouts import Checkout, checked_out, overlay
from perfgate.pairs.experiment import Experiment, Heard
from perfgate.pairs.plan import Wanted, starter
from perfgate.pairs.progress import Progress
from perfgate.pairs.proof import Proof, check_exercised, subject_prover, suite_prover
from perfgate.pairs.side import Side
from perfgate.pairs.unmeasured import unmeasured
from perfgate.results.ledger import Ledger, read_ledger
from perfgate.results.store import Store, read
from perfgate.settings import Settings
from perfgate.shares import core_names
from perfgate.verdict import accepted
from perfgate.verdict.paired import Pair, Rules, first_stage, judge_pairs, names_measured
from perfgate.verdict.statistics import FEWEST_FOR_PRIOR
from perfgate.verdict.verdicts import Accept, Verdict


@dataclass(kw_only=True)
class Result:
    """What a comparison came to."""

    base: str
    """How to call each side."""
    head: str
    notes: list[str] = field(default_factory=list)
    """What to know about it."""
    identical: bool = False
    """Whether nothing that runs differs; then nothing was measured."""
    verdicts: list[Verdict] = field(default_factory=list)
    first: list[Pair] = field(default_factory=list)
    fresh: list[Pair] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    working_seconds: float = 0.0
    """Of ``seconds``, those in which a measuring process worked; the rest is overhead."""


def compare_commits(wanted: Wanted, progress: Progress) -> Result:
    """Measure and judge.

    Raises:
        RepositoryError: where git cannot give a side.
        SettingsError: for wrong settings.
        ComparisonError: where nothing could be measured, or both sides imported the same code.
        DeviceBusy: where another suite measures on the device.
    """
    started = time.perf_counter()
    ours = settings.load(wanted.project)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="perfgate-")))
        base = stack.enter_context(checked_out(wanted.project, wanted.base, "base", scratch, ours.results))
        head = stack.enter_context(checked_out(wanted.project, wanted.head, "head", scratch, ours.results))
        instrument = base if wanted.instrument == "base" else head
        chosen = settings.load(instrument.root)
        change = _change(wanted, base, head, chosen)
        result = Result(base=base.label, head=head.label, notes=list(change.notes(instrument.label)))
        accept = _accept(wanted, base, head, chosen)  # read before an hour is spent measuring
        experiment = _experiment(wanted, (base, head), chosen, scratch, progress, stack)
        heard = experiment.heard
        if change.touches_benchmarks:
            for side in (base, head):
                _collect_own(wanted, side, heard[side.name], chosen, scratch)
        if wanted.differs_by_code_only and change.is_idle:
            result.identical = True
            told = unmeasured(heard["base"], heard["head"], [])
            result.verdicts = [each for each in told if each.word in {"gone", "new", "failed"}]
            return result
        rules = _run(experiment, wanted, chosen, result, progress)
        if wanted.suite and wanted.differs_by_code_only:
            roots = {side.name: side.root for side in (base, head)}
            check_exercised(change.running, roots, [each.loaded for each in heard.values()])
        result.notes += [*_few(result.first, rules), *_lost(experiment)]
        judged = judge_pairs(result.first, result.fresh, rules, accept)
        result.verdicts = unmeasured(heard["base"], heard["head"], judged)
    result.seconds = time.perf_counter() - started
    result.working_seconds = experiment.working_seconds
    return result


def _run(experiment: Experiment, wanted: Wanted, chosen: Settings, result: Result, progress: Progress) -> Rules:
    """Measure both stages; the rules to judge them by."""
    heard = experiment.heard
    started = time.perf_counter()
    for number in range(wanted.first):
        result.first.append(experiment.pair(number))
        progress.pair_done(number + 1, wanted.first, time.perf_counter() - started)
    result.machine = heard["head"].machine or heard["base"].machine
    torches = _torches(heard["base"].machine, heard["head"].machine)
    ledger = _ledger(wanted, chosen, result.machine)
    rules = Rules(settings=chosen, ledger=ledger, torches=torches, first=wanted.first, fresh=wanted.fresh)
    candidates = first_stage(result.first, rules).candidates if wanted.fresh else set()
    if candidates:
        progress.second_stage(len(candidates), wanted.fresh)
    for number in range(wanted.fresh if candidates else 0):
        result.fresh.append(experiment.pair(wanted.first + number, candidates))
        progress.fresh_pair_done(number + 1, wanted.fresh)
    return rules


def _few(pairs: Sequence[Pair], rules: Rules) -> Iterator[str]:
    """A hint where a small suite knows little about noise."""
    if 0 < len(names_measured(pairs)) < FEWEST_FOR_PRIOR and not rules.ledger.entries:
        yield (
            f"fewer than {FEWEST_FOR_PRIOR} benchmarks tell little about noise: perfgate calibrate, once, "
            "or more --pairs make smaller changes visible"
        )


def _expectation(
    wanted: Wanted, chosen: Settings, progress: Progress, held: ExitStack
) -> Callable[[Side, Sequence[str]], None]:
    """When the first process has collected, keeps others from its devices until ``held`` is closed.

    Then says how long the first stage will take, if earlier runs tell.
    """

    def expect(side: Side, names: Sequence[str]) -> None:
        devices = side.machine.get("devices") or core_names()
        held.enter_context(locks.hold(map(str, devices), wanted.wait_seconds, progress.note))
        known = _known_seconds(wanted.project / chosen.results, str(side.machine.get("slug", "")))
        told = [known[name] for name in names if name in known]
        seconds = None
        if told and len(told) >= len(names) / 2:
            each = sum(told) * len(names) / len(told) + side.working_seconds
            seconds = 2 * wanted.first * each
        progress.expected(len(names), wanted.first, seconds)

    return expect


def _known_seconds(results: Path, machine: str) -> dict[str, float]:
    """How long each benchmark took in the newest readable run of the machine."""
    for file in itertools.islice(Store(results).files(machine) if machine else (), 3):
        with contextlib.suppress(UnreadableRun):
            return {record.id: record.seconds for record in read(file).records}
    return {}


def _experiment(
    wanted: Wanted,
    sides: tuple[Checkout, Checkout],
    chosen: Settings,
    scratch: Path,
    progress: Progress,
    held: ExitStack,
) -> Experiment:
    base, head = sides
    instrument = base if wanted.instrument == "base" else head
    for side in sides:
        _prepare(wanted, side)
    starters = []
    for side in sides:
        packages = None if wanted.suite else side.subject(chosen.subject).parent
        imports = overlay(scratch / f"{side.name}-imports", _beside(instrument, chosen), packages)
        starters.append(starter(wanted, side, instrument, imports, scratch))
    return Experiment(
        starters=starters,
        prove=_prover(wanted, sides, chosen),
        say=progress.note,
        tick=progress.begins,
        expect=_expectation(wanted, chosen, progress, held),
        alternating=wanted.alternating,
    )


def _beside(side: Checkout, chosen: Settings) -> Path:
    """The folder that holds a side's packages."""
    return side.root / Path(chosen.subject).parent


def _collect_own(wanted: Wanted, side: Checkout, heard: Heard, chosen: Settings, scratch: Path) -> None:
    """A side's own benchmarks, collected by its own instrument, to tell which are gone or new."""
    packages = _beside(side, chosen)
    imports = overlay(scratch / f"{side.name}-own-imports", packages, packages)
    with Side(starter(wanted, side, side, imports, scratch).launch(0)) as process:
        if process.death:
            raise ComparisonError(f"{side.label} cannot collect its own benchmarks: {process.death.reason}")
        process.go(ids=[])
        process.finish()
    heard.own = {chosen.renamed.get(name, name) for name in process.ids}
    heard.problems.update(process.problems)


def _lost(experiment: Experiment) -> Iterator[str]:
    """Processes that died."""
    if experiment.deaths:
        yield f"{experiment.deaths} processes died; what they were to measure counts as not measured"


def _prover(wanted: Wanted, sides: Sequence[Checkout], chosen: Settings) -> Proof:
    if wanted.suite:
        return suite_prover({side.name: side.root for side in sides}, wanted.project)
    return subject_prover({side.name: side.subject(chosen.subject) for side in sides})


def _prepare(wanted: Wanted, side: Checkout) -> None:
    if not wanted.prepare:
        return
    done = subprocess.run(  # noqa: S602 - the user's own command
        wanted.prepare,
        shell=True,
        cwd=side.root,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        tail = "\n  ".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise ComparisonError(f"--prepare failed in {side.label} with exit code {done.returncode}:\n  {tail}")


def _change(wanted: Wanted, base: Checkout, head: Checkout, chosen: Settings) -> Change:
    """What differs; nothing in a self-check."""
    files: list[str] = []
    if wanted.base != wanted.head:
        head_id = head.commit["id"] if wanted.head else None
        files = repository.changed_files(wanted.project, base.commit["id"], head_id)
    packages = "" if wanted.suite else Path(chosen.subject).parent.as_posix()
    return Change(files=tuple(files), packages=packages, results=chosen.results)


def _ledger(wanted: Wanted, chosen: Settings, machine: dict[str, Any]) -> Ledger:
    slug = machine.get("slug")
    return read_ledger(wanted.project / chosen.results / str(slug)) if slug else Ledger()


def _torches(base: dict[str, Any], head: dict[str, Any]) -> str:
    before, now = (each.get("soft", {}).get("torch", "") for each in (base, head))
    return f"{before} -> {now}" if before != now else ""


def _accept(wanted: Wanted, base: Checkout, head: Checkout, chosen: Settings) -> Accept:
    """What ``accepted.toml`` of head accepts."""
    entries = accepted.read_accepted(head.root / chosen.results / accepted.NAME)

    def since(commit: str, _: str) -> bool | None:
        return repository.came_between(wanted.project, commit, base.commit["id"], head.commit["id"])

    return accepted.accepting(entries, since, datetime.now(UTC).date())
