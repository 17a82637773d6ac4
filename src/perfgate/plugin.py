"""The pytest plugin: options, markers, the ``measure`` fixture and hooks. No arithmetic, and no torch at import.

pytest-benchmark's own comparison is switched off before it starts, since it passes where nothing could be compared.
Its fixture, its table and its JSON stay. ``config._benchmarksession`` is the one private thing used of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from perfgate.errors import PerfgateError
from perfgate.options import add_options
from perfgate.stash import (
    BROKEN,
    COLLECTED,
    DESELECTED,
    FAILURE,
    GATE,
    GROUPS,
    LIMITS,
    OWN_CACHE,
    RECORD,
    TERMINAL,
    VERDICTS,
    group_of,
    is_benchmark,
    is_worker,
)

if TYPE_CHECKING:
    from perfgate.gate import Gate
    from perfgate.measure.step import Step
    from perfgate.results.record import Record

MARKERS = {
    "gpu": "needs a CUDA GPU; skipped with that reason elsewhere",
    "multigpu": "needs at least two CUDA GPUs",
    "compile": "compiles code, which takes seconds to minutes and, on a CPU, a C++ compiler",
    "loader": "starts worker processes",
    "slow": "takes long on a CPU; leave out with -m 'not slow'",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--perfgate-...``."""
    add_options(parser)


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
    config.stash[COLLECTED] = config.stash[GROUPS] = frozenset()
    config.stash[BROKEN] = False
    try:
        gate = config.stash[GATE] = _make_gate(config)
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error
    option = config.option
    _tell_children(config)
    config.stash[LIMITS] = option.benchmark_compare_fail or []
    _distribute(config, gate)
    option.benchmark_compare, option.benchmark_compare_fail = [], None
    option.benchmark_save = option.benchmark_autosave = None
    option.benchmark_quiet = option.benchmark_quiet or option.perfgate_smoke  # its table of single rounds says nothing


def _tell_children(config: pytest.Config) -> None:
    """Put what only the subject understands into the environment, where it and every child process look."""
    option = config.option
    patch = pytest.MonkeyPatch()
    if option.perfgate_data:
        patch.setenv("PERFGATE_DATA", str(option.perfgate_data.absolute()))
    if option.perfgate_workload:
        patch.setenv("PERFGATE_WORKLOAD", option.perfgate_workload)
        patch.setenv("PERFGATE_WORKLOAD_FOLDER", str(config.invocation_params.dir))  # children start elsewhere
    config.add_cleanup(patch.undo)


def _make_gate(config: pytest.Config) -> Gate:
    from perfgate import settings, wishes
    from perfgate.gate import Gate

    chosen = settings.load(config.rootpath)
    return Gate(wishes.from_options(config.option, config.rootpath, chosen.results), chosen)


def _distribute(config: pytest.Config, gate: Gate) -> None:
    """Register what this process is besides, or instead of, a session of its own: it takes turns, works, controls."""
    if config.option.perfgate_turns is not None:
        from perfgate.turn_hooks import TurnHooks
        from perfgate.turns import Taken

        gate.turns = turns = Taken(config.option.perfgate_turns)
        config.pluginmanager.register(TurnHooks(turns, gate, is_benchmark))
    elif is_worker(config):
        from perfgate.workers import WorkerHooks

        config.pluginmanager.register(WorkerHooks(config, gate), "perfgate-worker")
    elif gate.wishes.workers:
        from perfgate.workers import ControllerHooks

        hooks = ControllerHooks(config, gate, lambda names: _announce(config, gate, names))
        config.pluginmanager.register(hooks, "perfgate-controller")
    elif gate.wishes.plan:
        from perfgate.planning import PlanHooks

        config.pluginmanager.register(PlanHooks(gate), "perfgate-plan")
    else:
        config.stash[TERMINAL] = os.dup(2)  # nothing is captured yet
        config.add_cleanup(lambda: os.close(config.stash[TERMINAL]))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of devices and files."""
    if GATE in config.stash:
        config.stash[GATE].close()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember what was left out on purpose: it is not gone."""
    for item in items:
        item.config.stash.setdefault(DESELECTED, set()).add(item.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before measuring: find the baseline, try the results folder, keep others away, leave out what is done."""
    if GATE not in config.stash:
        return
    benchmarks = [item for item in items if is_benchmark(item)]
    gate = config.stash[GATE]
    config.stash[COLLECTED] = frozenset(item.nodeid for item in benchmarks)
    config.stash[GROUPS] = frozenset(map(group_of, benchmarks))
    if config.option.collectonly or config.option.perfgate_turns is not None:
        return
    try:
        _prepare(config, gate, benchmarks)
    except PerfgateError as error:
        raise pytest.UsageError(str(error)) from error
    worker = config.pluginmanager.get_plugin("perfgate-worker")
    done = worker.done if worker else gate.done
    items[:] = [item for item in items if item.nodeid not in done]


def _prepare(config: pytest.Config, gate: Gate, benchmarks: list[pytest.Item]) -> None:
    if not any("measure" in item.fixturenames for item in benchmarks) and not _asked_to_save(config, gate):  # type: ignore[attr-defined]
        gate.save_nothing()  # another project's suite is not written to unless asked
    if is_worker(config):
        return
    if benchmarks and gate.wishes.expect:
        gate.check_expected()
    if gate.wishes.compare and not benchmarks:
        raise pytest.UsageError("--benchmark-compare: no benchmark was collected; are the paths and -k right?")
    if not benchmarks or not (gate.wishes.save or gate.wishes.compare or gate.wishes.smoke or gate.wishes.plan):
        return
    gate.prepare()
    _announce(config, gate, [item.nodeid for item in benchmarks])


def _announce(config: pytest.Config, gate: Gate, names: Iterable[str]) -> None:
    from perfgate.report.announcement import announce
    from perfgate.report.text import line

    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        lines = announce(
            gate.wishes,
            gate.baseline,
            gate.machine.slug,
            set(names),
            calibrated=bool(gate.ledger.entries),
            unfinished=[file.name for file in gate.waiting],
        )
        for each in lines:
            reporter.write_line(line(each))


def _asked_to_save(config: pytest.Config, gate: Gate) -> bool:
    return bool(gate.wishes.compare or gate.wishes.label or config.option.perfgate_results)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Take the devices that will be measured on, and start watching."""
    config = session.config
    gate = config.stash.get(GATE, None)
    config.stash[BROKEN] = bool(session.testsfailed)
    benchmarks = [item for item in session.items if is_benchmark(item)]
    if gate is None or not benchmarks or config.option.collectonly or gate.wishes.plan:
        return
    from perfgate.opening import open_session

    open_session(config, gate, benchmarks)


def pytest_enter_pdb(config: pytest.Config) -> None:
    """Whoever debugs has all the time there is."""
    if GATE in config.stash:
        config.stash[GATE].resources.end()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot run, with the reason; fail what has no device to itself."""
    gate = item.config.stash.get(GATE, None)
    if gate is not None and gate.lost and not gate.open and is_benchmark(item):
        pytest.fail(gate.lost, pytrace=False)
    wanted = 2 if item.get_closest_marker("multigpu") else 1 if item.get_closest_marker("gpu") else 0
    if not wanted:
        return
    import torch

    on_cpu = gate is not None and gate.device.type == "cpu"
    found = 0 if on_cpu else torch.cuda.device_count()
    if wanted > 1 and gate is not None and gate.share:
        pytest.skip("needs two CUDA GPUs, and a worker has one: run it without -n")
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
    from perfgate.planning import stop

    gate = request.config.stash[GATE]

    def measure_once(step: Step, against: Step | None = None) -> Record | None:
        _skip_unsuitable(gate, step, against)
        if gate.wishes.plan:
            stop()
        if benchmark.disabled:
            step.build(gate.device)
            benchmark.pedantic(step.run)
            step.release()
            return None
        try:
            record = _measure(gate, benchmark, step, against, request.node.nodeid)
        except PerfgateError as error:
            pytest.fail(f"{error.code}: {error}", pytrace=False)
        except Exception as error:
            if getattr(error, "skip", False):  # see Step.build: only trying shows that it cannot run
                pytest.skip(str(error))
            raise
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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watch a benchmark from its set-up to its end."""
    gate = item.config.stash.get(GATE, None)
    if gate is None or not is_benchmark(item) or not gate.open:
        return (yield)
    try:
        gate.begin(item.nodeid)
    except PerfgateError as error:
        _cannot_keep(item, error)
    try:
        return (yield)
    finally:
        gate.resources.end()


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, to have the last word on the fixture
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Take the record of a test that passed; remember why another has none."""
    report = yield
    gate = item.config.stash.get(GATE, None)
    if gate is not None and is_benchmark(item) and not gate.wishes.plan:
        from perfgate import outcomes

        try:
            fault = outcomes.take(gate, item, report, item.stash.get(RECORD, None), call.excinfo and call.excinfo.value)
        except PerfgateError as error:
            _cannot_keep(item, error)
        else:
            if fault and gate.suffer(fault, isolated=is_worker(item.config)):
                item.session.shouldstop = gate.lost
    return report


def _cannot_keep(item: pytest.Item, error: PerfgateError) -> None:
    """Stop, where what comes next would be lost."""
    item.config.stash[FAILURE] = str(error)
    item.session.shouldfail = str(error)


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> Any:
    """With ``-v``, show what was found instead of PASSED."""
    found = getattr(report, "perfgate", "")
    return ("passed", ".", found) if found and report.when == "call" and report.passed else None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Save and judge."""
    config = session.config
    gate = config.stash.get(GATE, None)
    if gate is None or is_worker(config) or config.option.perfgate_turns is not None:  # its controller judges
        return
    if gate.wishes.plan:
        return
    from perfgate.closing import finish

    finish(session, gate, exitstatus)
    session.exitstatus = gate.resources.signals.exit_status or session.exitstatus


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the report."""
    rehearsal = config.pluginmanager.get_plugin("perfgate-plan")
    if rehearsal:
        rehearsal.report(terminalreporter, config)
    elif GATE in config.stash and config.option.perfgate_turns is None and not is_worker(config):
        from perfgate.closing import print_report

        print_report(terminalreporter, config)
