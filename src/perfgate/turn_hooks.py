"""pytest's hooks in a measuring process that takes turns: run what the controller picks, when it says, and tell it all.

Registered by the plugin for ``--perfgate-turns``, which only perfgate's own commands give.
"""

from __future__ import annotations

import dataclasses
import sys
import sysconfig
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from perfgate.gate import Gate
from perfgate.turns import Taken


class TurnHooks:
    """The session as its controller sees it."""

    def __init__(self, turns: Taken, gate: Gate, is_benchmark: Callable[[pytest.Item], bool]) -> None:
        """``is_benchmark`` tells which collected tests to measure; all others are left out."""
        self._turns, self._gate, self._is_benchmark = turns, gate, is_benchmark
        self._problems: dict[str, str] = {}
        self._told_about = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected here is no reason to measure nothing."""
        if report.failed:
            lines = str(report.longrepr).strip().splitlines()
            last = next((line for line in reversed(lines) if line.startswith("E ")), lines[-1] if lines else "")
            self._problems[report.nodeid] = last.removeprefix("E").strip()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Offer what was collected; keep what the controller wants, in its order."""
        found = {item.nodeid: item for item in items if self._is_benchmark(item)}
        measured = any("measure" in item.fixturenames for item in found.values())  # type: ignore[attr-defined]
        machine = {**dataclasses.asdict(self._gate.machine), "devices": self._gate.devices()} if measured else {}
        items[:] = [found[name] for name in self._turns.collected(list(found), self._problems, machine)]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Wait for the turn; afterwards, tell what came of it."""
        self._turns.start(item.nodeid)
        result = yield
        self._tell(item.nodeid)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Tell what was imported; end only when told to: ending takes time, too."""
        if self._gate.wishes.describe:
            self._gate.describe_process()
        self._tell_about()
        self._turns.tell("modules", _modules())
        self._turns.finish()

    def _tell(self, name: str) -> None:
        self._tell_about()
        finished = self._gate.harvest.finished.get(name)
        if finished:
            self._turns.tell("record", dataclasses.asdict(finished.record))
        outcome = self._gate.harvest.outcomes.get(name)
        if outcome:
            told = {key: getattr(outcome, key) for key in ("id", "word", "code", "reason")}
            self._turns.tell("outcome", told)

    def _tell_about(self) -> None:
        """The state of this process, once it was looked at."""
        if not self._told_about and self._gate.process:
            self._turns.tell("about", {"process": dataclasses.asdict(self._gate.process)})
            self._told_about = True


def _modules() -> dict[str, dict[str, str]]:
    """Names and files of loaded modules: ``own`` ones and those of ``installed`` packages, without Python's own."""
    python = [Path(sysconfig.get_path(each)).resolve() for each in ("stdlib", "platstdlib")]
    found: dict[str, dict[str, str]] = {"own": {}, "installed": {}}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        path = Path(file).resolve() if file else None
        if path and {"site-packages", "dist-packages"} & set(path.parts):
            found["installed"][name] = str(path)
        elif path and not any(path.is_relative_to(folder) for folder in python):
            found["own"][name] = str(path)
    return found
