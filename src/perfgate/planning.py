"""pytest's hooks for ``--perfgate-plan``: ask each benchmark what it would do, and stop it before it measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from perfgate.plan import Plan, Planned, State
from perfgate.stash import group_of, is_benchmark

if TYPE_CHECKING:
    from perfgate.gate import Gate

UNSEEN = "they use the plain benchmark fixture: whether they skip themselves is not known before they run"


class Reached(BaseException):
    """A benchmark came to its ``measure``; no handler of its own is to catch this."""


def stop(*_: Any, **__: Any) -> NoReturn:
    """What ``measure`` does once a step was found suitable.

    Raises:
        Reached: always.
    """
    raise Reached


class PlanHooks:
    """The session as a rehearsal: nothing is reported test by test."""

    def __init__(self, gate: Gate) -> None:
        """``gate`` knows the baseline, and with it what measuring took."""
        self._gate = gate
        self._found: list[Planned] = []
        self._others = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Run a benchmark as far as its ``measure``, any other test not at all, and tell pytest that this was it."""
        if is_benchmark(item):
            self._found.append(self._look(item, nextitem))
        else:
            self._others += 1
        return True

    def report(self, terminalreporter: Any, config: pytest.Config) -> None:
        """Write the plan."""
        from perfgate.report.plan import lines

        writer = config.get_terminal_writer()
        terminalreporter.section("perfgate plan", sep="=")
        settings = self._gate.settings
        budget = 2 * settings.warmup_seconds + settings.timed_seconds
        plan = Plan(benchmarks=tuple(self._found), others=self._others, budget_seconds=budget)
        for each in lines(plan, columns=writer.fullwidth, verbose=config.option.verbose > 0):
            terminalreporter.write_line(each)

    def _look(self, item: pytest.Item, nextitem: pytest.Item | None) -> Planned:
        state, reason = _rehearse(item, nextitem) if "measure" in item.fixturenames else ("unseen", UNSEEN)  # type: ignore[attr-defined]
        record = self._gate.baseline.records.get(item.nodeid)
        return Planned(
            name=item.nodeid,
            group=group_of(item),
            state=state,  # type: ignore[arg-type]
            reason=reason,
            seconds=(record.seconds or None) if record else None,
        )


def _rehearse(item: pytest.Item, nextitem: pytest.Item | None) -> tuple[State, str]:
    """Set up, call and tear down as pytest does; what came of it."""
    hooks = item.ihook
    reached: list[Reached] = []

    def call() -> None:
        try:
            hooks.pytest_runtest_call(item=item)
        except Reached as error:
            reached.append(error)

    error = _raised(item, "setup", lambda: hooks.pytest_runtest_setup(item=item))
    error = error or _raised(item, "call", call)
    fixture = getattr(item, "funcargs", {}).get("benchmark")
    if fixture is not None:
        fixture.skipped = True  # or it warns that nobody used it
    after = _raised(item, "teardown", lambda: hooks.pytest_runtest_teardown(item=item, nextitem=nextitem))
    found = after or error
    return ("run", "") if reached and not found else _meaning(found)


def _raised(item: pytest.Item, when: Any, phase: Callable[[], None]) -> BaseException | None:
    call = pytest.CallInfo.from_call(phase, when=when, reraise=(pytest.exit.Exception, KeyboardInterrupt))
    item.ihook.pytest_runtest_makereport(item=item, call=call)  # other plugins' fixtures remember their reports
    return call.excinfo.value if call.excinfo else None


def _meaning(error: BaseException | None) -> tuple[State, str]:
    if isinstance(error, (pytest.skip.Exception, pytest.xfail.Exception)):
        return "skip", str(error.msg)
    if error is None:
        return "broken", "the test ended without a measure(step)"
    first = next(iter(str(error).strip().splitlines()), "")
    return "broken", f"{type(error).__name__}: {first}".removeprefix("Failed: ")
