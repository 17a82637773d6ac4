"""The end of a session: save, judge, tell pytest and machines, print."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from perfgate.errors import PerfgateError
from perfgate.stash import BROKEN, COLLECTED, DESELECTED, FAILURE, GATE, GROUPS, LIMITS, VERDICTS

if TYPE_CHECKING:
    from perfgate.gate import Gate
    from perfgate.results.record import Run
    from perfgate.scope import Scope
    from perfgate.verdict.verdicts import Verdict


def finish(session: pytest.Session, gate: Gate, exitstatus: int) -> None:
    """Save and judge; a regression is exit 1, and a failed case of its own in JUnit."""
    config = session.config
    if config.option.collectonly:
        return
    if gate.harvest.empty:
        expected = gate.wishes.workers or config.stash[COLLECTED]
        if gate.wishes.compare and expected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED  # a gate that measured nothing
        return
    from perfgate import scope
    from perfgate.verdict.stock import exceeded_limits

    interrupted = bool(session.shouldstop or session.shouldfail or exitstatus == pytest.ExitCode.INTERRUPTED)
    collected, deselected = config.stash[COLLECTED], config.stash[DESELECTED]
    _allow_second_look(config, gate)
    found = scope.of(
        config.args,
        config.invocation_params.dir,
        config.rootpath,
        deselected=len(deselected),
        narrowed=_narrowed(config.option) or config.stash[BROKEN],
    )
    known = collected | deselected | gate.seen
    silent = interrupted or found.narrowed
    missing = set() if silent else {name for name in gate.baseline.expected if found.covers(name)} - known
    try:
        if gate.lost or not interrupted:
            interrupted |= gate.give_up_rest(collected - deselected)
        verdicts = _finish(gate, found.as_dict(), missing, interrupted=interrupted)
        verdicts += exceeded_limits(config.stash[LIMITS], gate.harvest.records, gate.baseline)
    except PerfgateError as error:
        config.stash[FAILURE] = str(error)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return
    config.stash[VERDICTS] = verdicts
    if not silent:
        gate.remarks += _idle_limits(gate, found, collected | deselected, config.stash[GROUPS])
    _judged(session, gate, verdicts)


def _finish(gate: Gate, scope: dict[str, Any], missing: set[str], *, interrupted: bool) -> list[Verdict]:
    """A signal while candidates are measured again ends that; what there is is judged and saved."""
    try:
        return gate.finish(scope, missing, interrupted=interrupted)
    except KeyboardInterrupt:
        gate.again = None
        return gate.finish(scope, missing, interrupted=True)


def _idle_limits(gate: Gate, scope: Scope, names: Collection[str], groups: frozenset[str]) -> list[str]:
    from perfgate.idle import Suite, idle_limits

    records = gate.harvest.records
    suite = Suite(
        names=names,
        groups=groups | {each.group for each in records},  # a test may also put itself into one
        metrics={each.metric for record in records for each in record.measurements},
    )
    return list(idle_limits(gate.settings, suite, scope))


def _judged(session: pytest.Session, gate: Gate, verdicts: Sequence[Verdict]) -> None:
    """Failed cases, the exit status, and the verdicts for machines."""
    from perfgate.report.junit import failed_cases
    from perfgate.report.machine import as_json
    from perfgate.verdict.verdicts import is_failure

    failing = [each for each in verdicts if is_failure(each, strict=gate.wishes.strict)]
    for case in failed_cases([each for each in failing if each.id not in gate.reported]):
        session.config.hook.pytest_runtest_logreport(report=case)
    nothing_judged = gate.wishes.compare and not gate.harvest.finished  # all skipped: a gate that measured nothing
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        if failing or nothing_judged:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif gate.wishes.resume:
            session.exitstatus = pytest.ExitCode.OK  # all of it had been measured before
    if gate.wishes.json:
        about = {"command": "pytest", "saved": str(gate.saved or ""), "notes": gate.remarks}
        gate.wishes.json.write_text(as_json(verdicts, exit_code=int(session.exitstatus), about=about), encoding="utf-8")


def _allow_second_look(config: pytest.Config, gate: Gate) -> None:
    """Let the gate measure candidates again in fresh processes."""
    from perfgate.recheck import command, measure_again
    from perfgate.report.text import line

    reporter = config.pluginmanager.get_plugin("terminalreporter")

    def again(names: Collection[str], run: Run) -> tuple[list[Run], list[str]]:
        files = {name.partition("::")[0] for name in names}
        words = command(config.option, config.rootpath, files, config.invocation_params.args)
        write = reporter.write_line if reporter is not None else print
        controller = config.pluginmanager.get_plugin("perfgate-controller")
        if controller is not None:
            controller.end_workers()

        def say(text: str) -> None:
            write(f"perfgate: {line(text)}")

        return measure_again(words, config.rootpath, names, run, say, gate.share)

    gate.again = again


def _narrowed(option: Any) -> bool:
    """Whether options kept tests from being collected without being told by ``pytest_deselected``."""
    return any(getattr(option, name, None) for name in ("lf", "ignore", "ignore_glob", "stepwise"))


def print_report(terminalreporter: Any, config: pytest.Config) -> None:
    """The report, or why there is none."""
    gate = config.stash[GATE]
    failure = config.stash.get(FAILURE, "")
    if failure:
        from perfgate.report.text import line

        terminalreporter.section("perfgate", sep="=")
        terminalreporter.write_line(f"FAIL {line(failure)}", red=True, bold=True)
    if failure or gate.harvest.empty:
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
