"""The pytest plugin: options, markers, the ``measure`` fixture and hooks. No arithmetic, and no torch at import.

pytest-benchmark's own comparison is switched off before it starts, since it passes where nothing could be compared.
Its fixture, its table and its JSON stay. ``config._benchmarksession`` is the one private thing used of it.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perfgate.errors import PerfgateError

if TYPE_CHECKING:
    from perfgate.gate import Gate
    from perfgate.measure.step import Step
    from perfgate.results.record import Record, Run
    from perfgate.verdict.stock import Limit
    from perfgate.verdict.verdicts import Verdict

GATE: pytest.StashKey[Gate] = pytest.StashKey()
VERDICTS: pytest.StashKey[Sequence[Verdict]] = pytest.StashKey()
LIMITS: pytest.StashKey[Sequence[Limit]] = pytest.StashKey()
FAILURE: pytest.StashKey[str] = pytest.StashKey()
DESELECTED: pytest.StashKey[set[str]] = pytest.StashKey()
COLLECTED: pytest.StashKey[frozenset[str]] = pytest.StashKey()
OWN_CACHE: pytest.StashKey[bool] = pytest.StashKey()
RECORD: pytest.StashKey[Record] = pytest.StashKey()

MARKERS = {
    "gpu": "needs a CUDA GPU; skipped with that reason elsewhere",
    "multigpu": "needs at least two CUDA GPUs",
    "compile": "compiles code, which takes seconds to minutes and, on a CPU, a C++ compiler",
    "loader": "starts worker processes",
    "slow": "takes long on a CPU; leave out with -m 'not slow'",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--perfgate-...``."""
    group = parser.getgroup("perfgate", "trustworthy benchmarks (perfgate)")
    group.addoption(
        "--perfgate-smoke",
        action="store_true",
        help="One round of every benchmark with all proofs and counted metrics. Nothing is saved.",
    )
    group.addoption(
        "--perfgate-strict",
        action="store_true",
        help="Fail also where a benchmark is gone or could not be judged.",
    )
    group.addoption(
        "--perfgate-accept",
        action="store_true",
        help="Compare with this run from now on, also where it is slower. This run itself is judged as usual.",
    )
    group.addoption(
        "--perfgate-no-save",
        action="store_true",
        help="Do not save this run. By default every run is saved under results/<machine>/.",
    )
    group.addoption(
        "--perfgate-device",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="Where to measure: auto is the GPU where torch sees one.",
    )
    group.addoption(
        "--perfgate-results", metavar="DIR", type=Path, help="Folder of saved runs. Default: results/ in the project."
    )
    group.addoption(
        "--perfgate-expect",
        choices=["gpu"],
        help="Fail before measuring where this is not there: a runner whose GPU went missing must not be green.",
    )
    group.addoption("--perfgate-json", metavar="FILE", type=Path, help="Write the verdicts to FILE, for machines.")
    group.addoption("--perfgate-turns", metavar="FD", type=int, help=argparse.SUPPRESS)  # see perfgate.turn_hooks
    group.addoption("--perfgate-describe", action="store_true", help=argparse.SUPPRESS)  # see perfgate.recheck
    group.addoption(
        "--perfgate-data",
        metavar="DIR",
        type=Path,
        help="Folder with data such as CIFAR-10. Default: $PERFGATE_DATA, else the user's cache.",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register markers, and take pytest-benchmark's comparing and saving over before it looks at its options."""
    for name, text in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {text}")
    if not config.pluginmanager.hasplugin("benchmark"):
        return  # switched off with -p no:benchmark: there is nothing to measure with, and nobody asked
    config.stash[OWN_CACHE] = "TORCHINDUCTOR_CACHE_DIR" in os.environ  # asked now: inductor sets it once imported
    config.stash[VERDICTS] = []
    config.stash[DESELECTED] = set()
    config.stash[COLLECTED] = frozenset()
    try:
        config.stash[GATE] = _make_gate(config)
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error
    if config.option.perfgate_data:
        os.environ["PERFGATE_DATA"] = str(config.option.perfgate_data.absolute())
    config.stash[LIMITS] = config.option.benchmark_compare_fail or []
    option = config.option
    if option.perfgate_turns is not None:
        _take_turns(config)
    option.benchmark_compare, option.benchmark_compare_fail = [], None
    option.benchmark_save = option.benchmark_autosave = None
    option.benchmark_quiet = option.benchmark_quiet or option.perfgate_smoke  # its table of single rounds says nothing


def _make_gate(config: pytest.Config) -> Gate:
    from perfgate import settings, wishes
    from perfgate.gate import Gate

    chosen = settings.load(config.rootpath)
    return Gate(wishes.from_options(config.option, config.rootpath, chosen.results), chosen)


def _take_turns(config: pytest.Config) -> None:
    from perfgate.turn_hooks import TurnHooks
    from perfgate.turns import Taken

    gate = config.stash[GATE]
    gate.turns = turns = Taken(config.option.perfgate_turns)
    config.pluginmanager.register(TurnHooks(turns, gate, _is_benchmark))


def _is_benchmark(item: pytest.Item) -> bool:
    return bool({"measure", "benchmark"} & set(getattr(item, "fixturenames", ())))


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember what was left out on purpose: it is not gone."""
    for item in items:
        item.config.stash.setdefault(DESELECTED, set()).add(item.nodeid)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Before measuring: find the baseline, try the results folder, and say what was found."""
    config = session.config
    if GATE not in config.stash:
        return
    benchmarks = [item for item in session.items if _is_benchmark(item)]
    gate = config.stash[GATE]
    collected = config.stash[COLLECTED] = frozenset(item.nodeid for item in benchmarks)
    if config.option.collectonly or _is_worker(config):
        return
    if benchmarks and gate.wishes.expect:
        _check_expected(gate)
    if gate.wishes.compare and not benchmarks:
        raise pytest.UsageError("--benchmark-compare: no benchmark was collected; are the paths and -k right?")
    if not benchmarks:
        return
    if not any("measure" in item.fixturenames for item in benchmarks) and not _asked_to_save(config, gate):  # type: ignore[attr-defined]
        gate.wishes = dataclasses.replace(
            gate.wishes, save=False
        )  # another project's suite is not written to unless asked
    if not (gate.wishes.save or gate.wishes.compare or gate.wishes.smoke):
        return
    try:
        gate.prepare()
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error
    from perfgate.report.announcement import announce

    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        lines = announce(gate.wishes, gate.baseline, gate.machine.slug, collected, calibrated=bool(gate.ledger.entries))
        reporter.write_line("\n".join(lines))


def _check_expected(gate: Gate) -> None:
    try:
        gate.check_expected()
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error


def _asked_to_save(config: pytest.Config, gate: Gate) -> bool:
    return bool(gate.wishes.compare or gate.wishes.label or config.option.perfgate_results)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot run, with the reason."""
    wanted = 2 if item.get_closest_marker("multigpu") else 1 if item.get_closest_marker("gpu") else 0
    if not wanted:
        return
    import torch

    on_cpu = GATE in item.config.stash and item.config.stash[GATE].device.type == "cpu"
    found = 0 if on_cpu else torch.cuda.device_count()
    if found < wanted:
        pytest.skip(f"needs {'a CUDA GPU' if wanted == 1 else 'two CUDA GPUs'}; this run has {found or 'none'}")


@pytest.fixture(scope="session")
def _cold_compile_cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A new cache for compiled code, so that compile times are cold in every run; the user's own choice stays."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.stash[OWN_CACHE]:
            patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.mktemp("compile-cache")))
        yield


@pytest.fixture
def measure(request: pytest.FixtureRequest, benchmark: Any, _cold_compile_cache: None) -> Callable[..., Record | None]:
    """Measure a step: ``measure(step)``, or ``measure(variant, against=plain)`` for a speedup.

    Fails the test where the variant computes something else than its plain twin or is not in effect. Returns the
    record; ``None`` where benchmarks are disabled.
    """
    gate = request.config.stash[GATE]

    def measure_once(step: Step, against: Step | None = None) -> Record | None:
        if _is_worker(request.config):
            pytest.fail(
                "perfgate cannot measure with -n yet: workers would disturb each other; leave out -n", pytrace=False
            )
        _skip_unsuitable(gate, step, against)
        if benchmark.disabled:
            step.build(gate.device)
            benchmark.pedantic(step.run)
            step.release()
            return None
        try:
            record = _measure(gate, benchmark, step, against, request.node.nodeid)
        except PerfgateError as error:
            pytest.fail(f"{error.code}: {error}", pytrace=False)
        request.node.stash[RECORD] = record
        return record

    return measure_once


def _skip_unsuitable(gate: Gate, *steps: Step | None) -> None:
    for step in steps:
        reason = step.unsuitable(gate.device) if step else None
        if reason:
            pytest.skip(reason)


def _measure(gate: Gate, benchmark: Any, step: Step, against: Step | None, name: str) -> Record:
    from perfgate.measure.procedure import Plan, Subject, measure_step

    gate.describe_process()
    plan = Plan(
        device=gate.device,
        gpu=gate.gpu,
        smoke=gate.wishes.smoke,
        warmup_seconds=gate.settings.warmup_seconds,
        timed_seconds=gate.settings.timed_seconds,
        turns=gate.turns,
    )
    subject = Subject(name=name, group=benchmark.group or "", step=step, against=against)
    record = measure_step(benchmark, subject, plan)
    from perfgate.report.summary import figures

    benchmark.extra_info.update(figures(record))
    return record


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, to have the last word on the fixture
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Take the record of a test that passed; remember why another has none."""
    report = yield
    if GATE in item.config.stash and _is_benchmark(item) and not _is_worker(item.config):
        from perfgate import outcomes

        outcomes.take(item.config.stash[GATE], item, report, item.stash.get(RECORD, None))
    return report


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    """With ``-v``, show what was found instead of PASSED."""
    found = getattr(report, "perfgate", "")
    return ("passed", ".", found) if found and report.when == "call" and report.passed else None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Save and judge; a regression is exit 1, and a failed case of its own in JUnit."""
    config = session.config
    gate = config.stash.get(GATE, None)
    if gate is None or _is_worker(config) or config.option.perfgate_turns is not None:  # its controller judges
        return
    if not (gate.records or gate.outcomes):
        if gate.wishes.compare and config.stash[COLLECTED] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED  # a gate that measured nothing
        return
    from perfgate import scope
    from perfgate.verdict.stock import exceeded_limits

    interrupted = bool(session.shouldstop or session.shouldfail or exitstatus == pytest.ExitCode.INTERRUPTED)
    _allow_second_look(config, gate)
    found = scope.of(
        config.args,
        config.invocation_params.dir,
        config.rootpath,
        deselected=len(config.stash[DESELECTED]),
        narrowed=_narrowed(config.option),
    )
    known = {*config.stash[COLLECTED], *config.stash[DESELECTED]}
    silent = interrupted or found.narrowed
    missing = set() if silent else {name for name in gate.baseline.expected if found.covers(name)} - known
    try:
        verdicts = gate.finish(_stock_document(config), found.as_dict(), missing, interrupted=interrupted)
        verdicts += exceeded_limits(config.stash[LIMITS], gate.records, gate.baseline)
    except PerfgateError as error:
        config.stash[FAILURE] = str(error)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return
    config.stash[VERDICTS] = verdicts
    _judged(session, gate, verdicts)


def _judged(session: pytest.Session, gate: Gate, verdicts: Sequence[Verdict]) -> None:
    """Failed cases, the exit status, and the verdicts for machines."""
    from perfgate.report.junit import failed_cases
    from perfgate.report.machine import as_json
    from perfgate.verdict.verdicts import is_failure

    failing = [each for each in verdicts if is_failure(each, strict=gate.wishes.strict)]
    for case in failed_cases([each for each in failing if each.word != "failed"]):
        session.config.hook.pytest_runtest_logreport(report=case)
    nothing_judged = gate.wishes.compare and not gate.records  # all skipped: a gate that measured nothing fails
    if (failing or nothing_judged) and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if gate.wishes.json:
        about = {"command": "pytest", "saved": str(gate.saved or ""), "notes": gate.remarks}
        gate.wishes.json.write_text(as_json(verdicts, exit_code=int(session.exitstatus), about=about), encoding="utf-8")


def _allow_second_look(config: pytest.Config, gate: Gate) -> None:
    """Let the gate measure candidates again in fresh processes."""
    from perfgate.recheck import command, measure_again

    reporter = config.pluginmanager.get_plugin("terminalreporter")

    def again(names: Collection[str], run: Run) -> tuple[list[Run], list[str]]:
        files = {name.partition("::")[0] for name in names}
        words = command(config.option, config.rootpath, files, config.invocation_params.args)
        say = reporter.write_line if reporter is not None else print
        return measure_again(words, config.rootpath, names, run, lambda text: say(f"perfgate: {text}"))

    gate.again = again


def _narrowed(option: Any) -> bool:
    """Whether options kept tests from being collected without being told by ``pytest_deselected``."""
    return any(getattr(option, name, None) for name in ("lf", "ignore", "ignore_glob", "stepwise"))


def _stock_document(config: pytest.Config) -> dict[str, Any]:
    """pytest-benchmark's document of this session, with parameters as text and no more of the machine than needed."""
    from perfgate.results.stock import document

    benches = [each for each in config._benchmarksession.benchmarks if each and not each.has_error]  # type: ignore[attr-defined]
    return document([each.as_dict(include_data=True) for each in benches])


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the report."""
    gate = config.stash.get(GATE, None)
    if gate is None or config.option.perfgate_turns is not None:
        return
    failure = config.stash.get(FAILURE, "")
    if failure:
        terminalreporter.section("perfgate", sep="=")
        terminalreporter.write_line(f"FAIL {failure}", red=True, bold=True)
    if failure or not (gate.records or gate.outcomes) or _is_worker(config):
        return
    from perfgate.report.terminal import Report, render

    saved = str(os.path.relpath(gate.saved, config.invocation_params.dir)) if gate.saved else ""
    report = Report(
        run=gate.run,
        baseline=gate.baseline,
        verdicts=config.stash[VERDICTS],
        compared=bool(gate.wishes.compare),
        strict=gate.wishes.strict,
        smoke=gate.wishes.smoke,
        saved=saved,
        remarks=gate.remarks,
    )
    terminalreporter.section("perfgate", sep="=")
    writer = config.get_terminal_writer()
    terminalreporter.write(render(report, columns=writer.fullwidth, colour=writer.hasmarkup))
