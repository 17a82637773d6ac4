"""Rows ST-06, ST-07, ST-11 and ST-14 in sessions: locks, journals that were cut, and results that change meanwhile."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from perfgate.results.journal import read_journal
from perfgate.results.store import read
from perfgate.shares import usable_cores
from tests.conftest import edit, fewer_operators, saved_runs
from tests.faults.test_pr import QUICK, acting, journals, names, session, wide  # noqa: F401 - fixtures
from tests.perfgate.test_locks import HOLDER

CPU = "--perfgate-device=cpu"


@pytest.fixture
def holder():
    """Another process that measures on one of the cores."""
    device = f"core-{usable_cores()[-1]}"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.device = device
        process.stdout.readline()
        yield process
        process.kill()


def test_st_06_a_second_suite_is_told_who_measures_or_waits(project, holder):
    """It measures nothing beside the first; what needs no device to itself runs all the same."""
    result = project.runpytest("benches", CPU)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{holder.device} is being measured on by process {holder.pid} (*--perfgate-wait*"])
    assert saved_runs(project) == []
    assert journals(project) == []
    assert project.runpytest("benches", CPU, "--perfgate-smoke", "-k", "plain").ret == 0
    result = project.runpytest("benches", CPU, "--perfgate-wait=0.01")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    later = threading.Timer(1.0, holder.kill)
    later.start()
    result = project.runpytest("benches", CPU, "--perfgate-wait=300")
    later.join()
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"*waiting for {holder.device}, which is being measured on by process {holder.pid} *"])
    assert len(saved_runs(project)) == 1


def test_st_07_a_suite_that_was_killed_holds_nothing(project, holder):
    """Its lock file is still there, and says who it was."""
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert project.runpytest("benches", CPU, "-k", "plain").ret == 0


def test_st_07_a_suite_that_ended_holds_nothing(project):
    """In one process as in several: the second session is not the first one's."""
    for _ in range(2):
        assert project.runpytest("benches", CPU, "-k", "plain").ret == 0


def test_st_11_a_journal_with_a_torn_last_line_is_gone_on_with(acting, session):  # noqa: F811
    """All whole lines are used, and the torn one is told."""
    assert session(act="os.kill(os.getpid(), signal.SIGKILL)").ret == -signal.SIGKILL
    (journal,) = journals(acting)
    with journal.open("ab") as stream:
        stream.write(journal.read_bytes().splitlines()[-2][:100])
    result = acting.runpytest("benches", "--perfgate-resume")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*line 6, left out: half written when the session ended*", "*1 benchmark kept*"])
    (complete,) = map(read, saved_runs(acting))
    assert names(complete) == ["first", "second", "third"]
    assert journals(acting) == []


def test_st_11_a_journal_on_a_full_disk_stops_the_session_with_what_it_has(acting, monkeypatch):  # noqa: F811
    """What came next would be lost; the rest can be measured once there is room."""
    monkeypatch.setenv(
        "ACT",
        "def full(*_, error=OSError(28, 'No space left on device')):\n    raise error\nos.fsync = full\n",
    )
    sync = os.fsync
    try:
        result = acting.runpytest("benches")
    finally:
        os.fsync = sync
    assert result.ret != 0
    result.stdout.fnmatch_lines(["FAIL cannot *No space left on device*"])
    (journal,) = journals(acting)
    assert [event["event"] for event in read_journal(journal).events] == ["start", "process", "record", "start"]
    monkeypatch.setenv("ACT", "")
    assert acting.runpytest("benches", "--perfgate-resume").ret == 0
    (complete,) = map(read, saved_runs(acting))
    assert names(complete) == ["first", "second", "third"]


def test_st_14_results_that_change_during_the_run_change_no_verdict(acting, monkeypatch):  # noqa: F811
    """As a checkout of another branch would: baselines were read before the first benchmark."""
    acting.runpytest("benches")
    (baseline,) = saved_runs(acting)
    monkeypatch.setenv("ACT", f"from pathlib import Path; Path({str(baseline)!r}).write_text('<<<<<<< HEAD')")
    result = acting.runpytest("benches", "--benchmark-compare")
    assert result.ret == 0
    result.stdout.fnmatch_lines([f"*baseline {baseline.name}*", "*PASS 3 same*"])
    second = saved_runs(acting)[1]
    baseline.unlink()
    edit(second, fewer_operators)
    monkeypatch.setenv("ACT", f"from pathlib import Path; Path({str(second)!r}).unlink()")
    result = acting.runpytest("benches", "--benchmark-compare")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAIL 3 slower"])
