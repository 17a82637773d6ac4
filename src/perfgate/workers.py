"""pytest-xdist: workers that measure, each on its own share of the machine, and the controller that hears them.

Results come with each test's report, so that a worker that dies takes nothing with it. A worker dies on purpose where a
fault has poisoned its process; xdist replaces it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from perfgate import deaths
from perfgate.deaths import Death
from perfgate.errors import PerfgateError, UnsavableRun
from perfgate.shares import LOCKED, Share, environment_of
from perfgate.stash import COLLECTED, DESELECTED, FAILURE, GROUPS, say
from perfgate.verdict.verdicts import Verdict, unjudged

if TYPE_CHECKING:
    from perfgate.gate import Gate

RESTARTS = "1000"
"""xdist gives up after four crashes per worker; here each crash costs its own benchmark and no other."""
LEAVING = 70
"""Exit status of a worker that is to be replaced."""


class ControllerHooks:
    """The session that distributes, hears, saves and judges."""

    def __init__(self, config: pytest.Config, gate: Gate, announce: Callable[[Iterable[str]], None]) -> None:
        """``announce`` says before measuring what was found, given the ids collected."""
        self._config, self._gate, self._announce = config, gate, announce
        self._folder = tempfile.TemporaryDirectory(prefix="perfgate-")
        self._deaths: dict[str, Death] = {}
        self._crashes: dict[str, Verdict] = {}
        """Of benchmarks, or of other tests: only a worker tells which are which."""
        self._started: set[str] = set()
        self._moved: set[str] = set()
        self._prepared = self._announced = False
        self._done: list[str] = []
        if gate.wishes.compare or gate.wishes.resume:  # other suites keep xdist's own limit
            config.option.maxworkerrestart = config.option.maxworkerrestart or RESTARTS
        gate.share = Share(0, gate.wishes.workers)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Before any worker starts: find the baseline, and refuse more workers than there are devices."""
        wishes = self._gate.wishes
        try:
            if wishes.expect:
                self._gate.check_expected()
            if wishes.compare or wishes.resume:
                self._gate.check_share()
                self._prepare()
                self._gate.occupy(all_gpus=True, say=lambda text: say(self._config, text))
        except PerfgateError as error:
            raise pytest.UsageError(str(error)) from error

    def _prepare(self) -> None:
        if not self._prepared:
            self._prepared = True
            self._gate.prepare()
            self._done = sorted(self._gate.done)  # all workers must collect the same, later ones, too
            self._gate.resources.signals.install()

    def pytest_xdist_setupnodes(self, specs: list[Any]) -> None:
        """Give each worker its number, and its GPU if one is sure to be wanted; whatever replaces it inherits them."""
        device = self._gate.device.type if self._prepared else ""
        for number, spec in enumerate(specs):
            spec.env |= environment_of(Share(number, len(specs)), device)
            spec.env |= {LOCKED: "1"} if self._prepared else {}

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker what it need not measure, and how long benchmarks may take."""
        gate = self._gate
        limits = {name: gate.limit(name) for name in gate.baseline.records}
        told = {"done": self._done, "limits": limits, "folder": self._folder.name}
        node.workerinput["perfgate"] = json.dumps(told)

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Say what was found, once."""
        first, self._announced = not self._announced, True
        self._gate.seen.update(ids, self._done)
        if first and self._prepared:
            self._announce([*ids, *self._done])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Remember what has begun: a worker that dies between two tests is not to be blamed on the next."""
        self._started.add(nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear what a worker measured."""
        about = getattr(report, "perfgate_session", None)
        try:
            if about:
                self._hear_about(json.loads(about))
            for text in getattr(report, "perfgate_events", ()):
                self._prepare()
                self._gate.harvest.hear(json.loads(text), f"what {getattr(report, 'worker_id', 'a worker')} sent")
        except PerfgateError as error:
            self._fail(error)
        if report.failed:
            self._gate.reported.add(report.nodeid)
        if getattr(report, "perfgate_stop", ""):
            self._gate.lost = report.perfgate_stop  # type: ignore[attr-defined]
            self._stop(self._gate.lost)

    def _hear_about(self, about: Mapping[str, Any]) -> None:
        stash = self._config.stash
        stash[COLLECTED] = stash[COLLECTED].union(about["collected"])
        stash[GROUPS] = stash[GROUPS].union(about["groups"])
        stash[DESELECTED].update(about["deselected"])
        if not about["save"]:
            self._gate.save_nothing()
        self._enter_crashes()

    def _enter_crashes(self) -> None:
        """Say of benchmarks that died why they have no number."""
        for name in [each for each in self._crashes if each in self._config.stash[COLLECTED]]:
            self._prepare()
            self._gate.harvest.give_up(self._crashes.pop(name))

    def _fail(self, error: PerfgateError) -> None:
        """What comes next would be lost."""
        self._config.stash[FAILURE] = str(error)
        self._stop(str(error))

    def _stop(self, reason: str) -> None:
        """End the session; xdist looks at its own flag only."""
        distributed = self._config.pluginmanager.get_plugin("dsession")
        if distributed is not None:
            distributed.shouldstop = reason

    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Find out how a worker died, before it is asked for."""
        if error:
            file = Path(self._folder.name) / node.gateway.id
            with suppress(OSError, ValueError):
                pid = int((file.with_suffix(".pid")).read_text(encoding="ascii"))
                self._deaths[node.gateway.id] = deaths.find_out(pid, file.with_suffix(".stack"))

    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        """Say what became of the test that a worker died in, or let another worker run it."""
        death = self._deaths.get(report.node.gateway.id, Death(code="crashed", reason="died", stack=""))
        if crashitem not in self._started | self._moved:
            self._moved.add(crashitem)
            with suppress(NotImplementedError, OSError):  # schedulers that keep files together; nobody left to run it
                sched.mark_test_pending(crashitem)
                _silence(report)
                return
        if death.code == "left":
            _silence(report)
            return
        reason = f"the worker {death.reason}"
        where = f"; it was at:\n{death.stack}" if death.stack else ""
        report.longrepr = f"{death.code}: {reason}{where}"
        self._gate.reported.add(crashitem)
        self._crashes[crashitem] = unjudged(crashitem, death.code, reason + death.place)
        try:
            self._enter_crashes()
        except PerfgateError as error:
            self._fail(error)

    def end_workers(self) -> None:
        """Workers that have finished still hold memory, which what comes now may need."""
        manager = getattr(self._config.pluginmanager.get_plugin("dsession"), "nodemanager", None)
        if manager is not None:
            manager.teardown_nodes()

    def pytest_unconfigure(self) -> None:
        """Remove the stacks."""
        self._folder.cleanup()


def _silence(report: Any) -> None:
    """Make xdist's report of a crash one of which nobody hears."""
    report.outcome, report.when, report.longrepr = "passed", "teardown", None


class WorkerHooks:
    """A process that measures for a controller."""

    def __init__(self, config: pytest.Config, gate: Gate) -> None:
        """Reads what the controller told."""
        self._config, self._gate = config, gate
        told = json.loads(config.workerinput.get("perfgate", "{}"))  # type: ignore[attr-defined]
        self.done = set(told.get("done", ()))
        self.folder = Path(told["folder"]) if "folder" in told else None
        self.name = str(config.workerinput.get("workerid", "worker"))  # type: ignore[attr-defined]
        gate.limits = told.get("limits", {})
        self._events: list[str] = []
        self._told = False
        gate.harvest.sink = self._collect

    def _collect(self, event: Mapping[str, Any]) -> None:
        try:
            self._events.append(json.dumps(event, allow_nan=False, default=str))
        except (ValueError, TypeError) as error:
            raise UnsavableRun(f"a benchmark has a value that JSON has not ({error})") from error

    @property
    def stack(self) -> Path | None:
        """Where stacks are written that the controller reads."""
        return self.folder / f"{self.name}.stack" if self.folder else None

    def watch_crashes(self) -> None:
        """Let the controller see where a crash came from."""
        if self.folder and self.stack:
            (self.folder / f"{self.name}.pid").write_text(str(os.getpid()), encoding="ascii")
            self._crashes = self.stack.open("a", encoding="utf-8")
            faulthandler.enable(self._crashes)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send what was measured along with the report."""
        events, self._events = self._events, []
        if events:
            report.perfgate_events = events  # type: ignore[attr-defined]
            if not self._told:
                stash = self._config.stash
                collected, groups, deselected = stash[COLLECTED], stash[GROUPS], stash[DESELECTED]
                about = {
                    "collected": sorted(collected),
                    "groups": sorted(groups),
                    "deselected": sorted(deselected),
                    "save": self._gate.wishes.save,
                }
                report.perfgate_session = json.dumps(about)  # type: ignore[attr-defined]
                self._told = True
        if self._gate.lost:
            report.perfgate_stop = self._gate.lost  # type: ignore[attr-defined]
        elif report.when == "teardown" and report.passed:
            self._leave_poisoned()  # the controller's report of that stands for this one: JUnit wants one of each

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Leave also where the teardown failed."""
        result = yield
        self._leave_poisoned()
        return result

    def _leave_poisoned(self) -> None:
        """After a fault that poisons the process, leave: the next benchmark gets a fresh one."""
        if self._gate.poisoned and self.stack:
            with self.stack.open("a", encoding="utf-8") as file:
                file.write(f"{deaths.LEFT}{self._gate.poisoned}\n")
            self._gate.close()
            os._exit(LEAVING)
