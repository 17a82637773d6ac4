"""What controller and workers say to each other; sessions with real ones are in tests/faults/test_pr.py."""

import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from perfgate.deaths import Death
from perfgate.errors import UnsavableRun
from perfgate.harvest import Harvest
from perfgate.shares import VARIABLE
from perfgate.stash import COLLECTED, DESELECTED, FAILURE, GROUPS
from perfgate.verdict.verdicts import unjudged
from perfgate.workers import RESTARTS, ControllerHooks, WorkerHooks
from tests.conftest import PROCESS, record

A = "benches/test_a.py::test_a"


@pytest.fixture
def gate():
    """A session's state, of which only the harvest is real."""
    made = Mock(done=set(), reported=set(), lost="", poisoned="", harvest=Harvest())
    made.wishes = SimpleNamespace(workers=2, compare=False, resume=False, save=True)
    made.baseline.records = {A: record()}
    made.limit.return_value = 120.0
    made.device.type = "cpu"
    return made


@pytest.fixture
def config():
    """pytest's, with nothing but a scheduler."""
    made = Mock(stash=pytest.Stash(), option=SimpleNamespace(maxworkerrestart=None))
    made.stash[COLLECTED], made.stash[GROUPS], made.stash[DESELECTED] = frozenset(), frozenset(), set()
    made.distributed = SimpleNamespace(shouldstop=False, nodemanager=Mock())
    made.pluginmanager.get_plugin.side_effect = {"dsession": made.distributed}.get
    return made


@pytest.fixture
def controller(config, gate):
    """The hooks of the session that distributes."""
    made = ControllerHooks(config, gate, Mock())
    yield made
    made.pytest_unconfigure()


@pytest.fixture
def worker(config, gate, tmp_path):
    """The hooks of a process that measures."""
    told = json.dumps({"done": ["b"], "limits": {A: 5.0}, "folder": str(tmp_path)})
    config.workerinput = {"perfgate": told, "workerid": "gw3"}
    return WorkerHooks(config, gate)


def report(**fields):
    """A test's report."""
    made = pytest.TestReport(nodeid=A, location=("", 0, ""), keywords={}, outcome="passed", longrepr=None, when="call")
    made.__dict__.update(fields)
    return made


def crash(controller, death=None, *, began=True, scheduler=None):
    """The report of a worker that died in a test, which is known to be a benchmark."""
    controller._config.stash[COLLECTED] = frozenset({A})
    crashed = report(outcome="failed", when="???", longrepr="crashed", node=Mock())
    crashed.node.gateway.id = "gw0"
    if death:
        controller._deaths["gw0"] = death
    if began:
        controller.pytest_runtest_logstart(A)
    controller.pytest_handlecrashitem(A, crashed, scheduler or Mock())
    return crashed


@pytest.mark.parametrize(("given", "used"), [(None, RESTARTS), ("0", "0"), ("7", "7")])
def test_workers_are_replaced_as_long_as_there_are_benchmarks(config, gate, given, used):
    """Unless somebody said how often."""
    gate.wishes.compare = True
    config.option.maxworkerrestart = given
    ControllerHooks(config, gate, Mock()).pytest_unconfigure()
    assert config.option.maxworkerrestart == used


def test_other_suites_keep_the_limit_of_xdist(config, gate):
    """Theirs is not to crash a thousand times."""
    ControllerHooks(config, gate, Mock()).pytest_unconfigure()
    assert config.option.maxworkerrestart is None


def test_each_worker_gets_its_number(controller):
    """Whatever else was in its environment stays."""
    specs = [SimpleNamespace(env={"OTHER": "1"}) for _ in range(2)]
    controller.pytest_xdist_setupnodes(specs)
    assert [spec.env[VARIABLE] for spec in specs] == ["0/2", "1/2"]
    assert specs[0].env["OTHER"] == "1"


def test_what_a_controller_tells_a_worker_understands(controller, config, gate, tmp_path):
    """Limits from the baseline, which only the controller reads."""
    node = SimpleNamespace(workerinput={"workerid": "gw1"})
    controller.pytest_configure_node(node)
    config.workerinput = node.workerinput
    hooks = WorkerHooks(config, gate)
    assert gate.limits == {A: 120.0}
    assert hooks.stack.name == "gw1.stack"
    assert hooks.stack.parent.is_dir()


def test_a_worker_that_was_told_nothing_works_all_the_same(config, gate):
    """Of a controller without the plugin."""
    config.workerinput = {}
    hooks = WorkerHooks(config, gate)
    assert (hooks.done, hooks.stack) == (set(), None)


def test_what_a_worker_measured_comes_with_the_report(worker, controller, gate):
    """Once; and the other end has the same then."""
    gate.harvest.start(A)
    gate.harvest.measured_by(PROCESS)
    gate.harvest.take(record(A), None)
    first, second = report(), report()
    worker.pytest_runtest_logreport(first)
    worker.pytest_runtest_logreport(second)
    assert len(first.perfgate_events) == 3
    assert not hasattr(second, "perfgate_events")
    gate.harvest = Harvest()
    controller.pytest_runtest_logreport(first)
    controller.pytest_runtest_logreport(second)
    assert gate.harvest.records == (record(A),)
    assert list(gate.harvest.processes.values()) == [PROCESS]


def test_what_was_collected_is_told_once(worker, controller, config, gate):
    """With the first numbers."""
    config.stash[COLLECTED], config.stash[GROUPS], config.stash[DESELECTED] = frozenset({A}), frozenset({"amp"}), {"b"}
    sent = []
    for _ in range(2):
        gate.harvest.start(A)
        sent.append(report())
        worker.pytest_runtest_logreport(sent[-1])
    assert [hasattr(each, "perfgate_session") for each in sent] == [True, False]
    config.stash[COLLECTED], config.stash[GROUPS], config.stash[DESELECTED] = frozenset(), frozenset(), set()
    controller.pytest_runtest_logreport(sent[0])
    assert (config.stash[COLLECTED], config.stash[GROUPS], config.stash[DESELECTED]) == ({A}, {"amp"}, {"b"})


@pytest.mark.parametrize("event", ['{"event": "fly"}', '{"event": "record", "key": "k", "record": {}, "stock": null}'])
def test_nonsense_from_a_worker_stops_the_session(controller, config, event):
    """What comes next would be lost as well."""
    controller.pytest_runtest_logreport(report(perfgate_events=[event], worker_id="gw0"))
    assert "gw0 sent" in config.stash[FAILURE]
    assert config.distributed.shouldstop == config.stash[FAILURE]


def test_a_lost_device_stops_all_workers(worker, controller, gate, config):
    """The reason comes with the report."""
    gate.lost = "device-lost: because"
    sent = report()
    worker.pytest_runtest_logreport(sent)
    gate.lost = ""
    controller.pytest_runtest_logreport(sent)
    assert gate.lost == config.distributed.shouldstop == "device-lost: because"


def test_what_pytest_shows_as_failed_is_not_shown_twice(controller, gate):
    """Not as a verdict as well."""
    controller.pytest_runtest_logreport(report(outcome="failed"))
    assert gate.reported == {A}


def test_a_crash_is_unjudged_with_how_and_where(controller, gate):
    """And failed with the stack."""
    stack = '  File "/p/test_a.py", line 7 in test_a'
    shown = crash(controller, Death(code="crashed", reason="was ended by SIGSEGV", stack=stack))
    verdict = gate.harvest.outcomes[A]
    assert (verdict.word, verdict.code) == ("unjudged", "crashed")
    assert verdict.reason == "the worker was ended by SIGSEGV at test_a.py:7"
    assert shown.failed
    assert stack in shown.longrepr


def test_a_crash_of_which_nothing_is_known_is_one_all_the_same(controller, gate):
    """The kernel has forgotten."""
    assert crash(controller).failed
    assert gate.harvest.outcomes[A].reason == "the worker died"


def test_a_crash_that_cannot_be_kept_stops_the_session(controller, gate, config):
    """The disk is full: a sentence, and no error inside of pytest."""

    def full(_):
        raise UnsavableRun("full")

    gate.harvest.sink = full
    assert crash(controller).failed
    assert config.stash[FAILURE] == config.distributed.shouldstop == "full"


def test_a_worker_that_died_between_two_tests_costs_none(controller, gate):
    """Another worker runs what it was given next."""
    scheduler = Mock()
    assert crash(controller, began=False, scheduler=scheduler).passed
    scheduler.mark_test_pending.assert_called_once_with(A)
    assert not gate.harvest.outcomes


def test_a_test_that_no_worker_lives_to_begin_is_told(controller, gate):
    """Moved once, it is not moved for ever."""
    crash(controller, began=False)
    assert crash(controller, began=False).failed
    assert gate.harvest.outcomes[A].code == "crashed"


def test_what_is_a_benchmark_may_be_told_after_it_crashed(controller, gate, config):
    """Other tests that crash are none of perfgate's business."""
    config.stash[COLLECTED] = config.stash[GROUPS] = frozenset()
    controller._crashes[A] = unjudged(A, "crashed", "because")
    controller._enter_crashes()
    assert not gate.harvest.outcomes
    about = json.dumps({"collected": [A], "groups": [], "deselected": [], "save": True})
    controller.pytest_runtest_logreport(report(perfgate_session=about))
    assert gate.harvest.outcomes[A].code == "crashed"


def test_where_the_scheduler_cannot_run_it_again_it_is_told(controller, gate):
    """Of ``--dist loadfile``: nothing passes that did not run."""
    scheduler = Mock()
    scheduler.mark_test_pending.side_effect = NotImplementedError
    assert crash(controller, began=False, scheduler=scheduler).failed
    assert gate.harvest.outcomes[A].code == "crashed"


def test_a_worker_that_left_on_purpose_is_not_reported_again(controller, gate):
    """It told itself what happened."""
    assert crash(controller, Death(code="left", reason="out of memory", stack="")).passed
    assert not gate.harvest.outcomes


def test_how_a_worker_died_is_read_where_it_wrote(controller, monkeypatch):
    """Before xdist asks for it."""
    monkeypatch.setattr("perfgate.deaths.find_out", lambda pid, file: (pid, file.name))
    folder = Path(controller._folder.name)
    (folder / "gw0.pid").write_text("42", encoding="ascii")
    for name in ("gw0", "gw1"):
        node = Mock()
        node.gateway.id = name
        controller.pytest_testnodedown(node, "Not properly terminated")
    assert controller._deaths == {"gw0": (42, "gw0.stack")}


def test_ending_workers_needs_none(controller, config):
    """What comes now needs their memory."""
    controller.end_workers()
    config.distributed.nodemanager.teardown_nodes.assert_called_once_with()
    config.pluginmanager.get_plugin.side_effect = {}.get
    controller.end_workers()


def test_nothing_stays_behind(config, gate):
    """Stacks and process ids."""
    hooks = ControllerHooks(config, gate, Mock())
    folder = Path(hooks._folder.name)
    assert folder.is_dir()
    hooks.pytest_unconfigure()
    assert not folder.exists()
