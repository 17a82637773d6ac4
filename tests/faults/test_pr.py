"""Rows PR-01 to PR-16: processes that are interrupted, hang, crash or share a machine, in sessions that really do."""

import ast
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

import perfgate
from perfgate import cli
from perfgate.results.journal import read_journal
from perfgate.results.store import read
from perfgate.shares import physical_cores, usable_cores
from tests.conftest import SETTINGS, edit, fewer_operators, saved_runs
from tests.perfgate.test_gate import commit, git

COMPARE = ("benches", "--benchmark-compare")
QUICK = ("-p", "no:hypothesispytest")  # whose plugin takes seconds to load
NAME = "benches/test_acts.py::test_{}"
ACTING = """
import itertools, os, signal, time
import pytest, torch
from workloads import MLP
TINY = MLP(batch_size=4, width=8, image_size=4)

def test_first(measure):
    measure(TINY.train_step())

def test_second(measure, request):
    exec(os.environ.get("ACT", ""))
    measure(TINY.train_step())

def test_third(measure):
    measure(TINY.train_step())
"""
HANG = """
from perfgate.stash import GATE
request.config.stash[GATE].resources.watch.begin(request.node.nodeid, 0.5)  # the limit, without waiting for the first benchmark
sum(itertools.repeat(1, 10**12))
"""


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    """No sentence is broken into lines."""
    monkeypatch.setenv("COLUMNS", "300")


@pytest.fixture
def acting(project):
    """A project of three benchmarks, of which the second does what ``ACT`` says."""
    (project.path / "benches" / "test_tiny.py").unlink()
    (project.path / "benches" / "test_acts.py").write_text(ACTING, encoding="utf-8")
    return project


@pytest.fixture
def session(acting, monkeypatch, tmp_path_factory):
    """Runs pytest in a process of its own, in which the second benchmark acts."""
    temporary = tmp_path_factory.mktemp("t")  # what a killed process leaves there is removed with the rest

    def start(*words, act=""):
        with monkeypatch.context() as patch:
            patch.setenv("TMPDIR", str(temporary))
            patch.setenv("ACT", act)
            return acting.runpytest_subprocess("benches", *QUICK, *words)

    return start


def journals(project):
    """What killed sessions left."""
    return sorted((project.path / "results").glob("*/*.journal"))


def names(run):
    """The last words of its benchmarks' names."""
    return [each.id.rpartition("_")[2] for each in run.records]


def verdicts(folder):
    """What was written for machines, by the last word of the name."""
    document = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    return {each["id"].rpartition("_")[2]: each for each in document["verdicts"]}


def failed_cases(folder):
    """How many failures and errors JUnit has, by the last word of the test's name and what stands behind it."""
    cases = ET.parse(folder / "out.xml").iter("testcase")
    bad = [f"{case.get('classname')}.{case.get('name')}" for case in cases for each in case if each.tag != "properties"]
    return Counter(name.rpartition("test_")[2] for name in bad)


def is_gone(pid):
    """Whether there is no such process, or only what its parent has not yet asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def all_end(pids):
    """Whether the processes end by themselves within a minute."""
    deadline = time.monotonic() + 60
    while not all(map(is_gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return all(map(is_gone, pids))


def test_pr_01_an_interrupted_run_is_saved_and_can_be_gone_on_with(acting, session):
    """What was measured is not measured again; in the end there is one complete run and nothing else."""
    result = session(act="os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*interrupted: go on with --perfgate-resume (1 benchmark kept)*"])
    (file,) = saved_runs(acting)
    before = read(file)
    assert (before.status, names(before)) == ("interrupted", ["first"])
    assert len(journals(acting)) == 1
    lonely = acting.runpytest(*COMPARE, "--perfgate-no-save")
    lonely.stdout.fnmatch_lines(["*NOT JUDGED 3 unjudged*"])  # it is no baseline
    result = acting.runpytest("benches", "--perfgate-resume")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*went on with the run of *: 1 benchmark kept*", "*2 passed*"])
    (complete,) = map(read, saved_runs(acting))
    assert (complete.status, complete.stamp) == ("complete", before.stamp)
    assert names(complete) == ["first", "second", "third"]
    assert (
        complete.records[0].measurement("wall_seconds").values == before.records[0].measurement("wall_seconds").values
    )
    assert len(complete.processes) == 2
    assert journals(acting) == []
    again = acting.runpytest("benches", "--perfgate-resume")
    assert again.ret == pytest.ExitCode.USAGE_ERROR
    again.stderr.fnmatch_lines(["*no unfinished run of this machine*leave the option out*"])


def test_pr_02_a_second_interruption_ends_at_once(acting, session):
    """The journal is already on the disk."""
    kill = "os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
    result = session(act=f"try:\n    {kill}\nfinally:\n    {kill}")
    assert result.ret == -signal.SIGINT
    assert saved_runs(acting) == []
    (journal,) = journals(acting)
    assert [event["event"] for event in read_journal(journal).events] == ["start", "process", "record", "start"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_pr_03_a_cancelled_job_saves_what_it_has(acting, session, number, status):
    """As Ctrl-C does; the exit status is the signal's."""
    result = session(act=f"os.kill(os.getpid(), {int(number)}); time.sleep(60)")
    assert result.ret == status
    (file,) = saved_runs(acting)
    assert (read(file).status, names(read(file))) == ("interrupted", ["first"])
    assert len(journals(acting)) == 1


def test_pr_03_a_cancelled_job_with_workers(acting, session):
    """The controller saves what it heard, and its workers end; other workers go on with it."""
    result = session("-n", "1", act="os.kill(os.getppid(), signal.SIGTERM); time.sleep(600)")
    assert result.ret == 143
    (file,) = saved_runs(acting)
    before = read(file)
    assert (before.status, names(before)) == ("interrupted", ["first"])
    result = session("-n", "1", "--perfgate-resume")
    assert result.ret == 0
    (complete,) = map(read, saved_runs(acting))
    assert (complete.status, sorted(names(complete))) == ("complete", ["first", "second", "third"])
    first = next(each for each in complete.records if each.id == NAME.format("first"))
    assert first.measurement("wall_seconds").values == before.records[0].measurement("wall_seconds").values
    assert journals(acting) == []


def test_pr_04_a_killed_run_loses_nothing(acting, session):
    """The next session says so; the rest is measured with the same code only; nobody compares with it meanwhile."""
    git(acting, "init", "--quiet", "--initial-branch=main")
    (acting.path / ".gitignore").write_text("__pycache__\n.*_cache\n.benchmarks\nrunpytest-*\nstd*\n", encoding="utf-8")
    commit(acting, "base")
    result = session(act="os.kill(os.getpid(), signal.SIGKILL)")
    assert result.ret == -signal.SIGKILL
    result.stderr.fnmatch_lines(["*the process ended in the middle of *test_second*", "*--perfgate-resume*"])
    assert saved_runs(acting) == []
    (journal,) = journals(acting)
    heard = next(event for event in read_journal(journal).events if event["event"] == "record")
    bench = acting.path / "benches" / "test_acts.py"
    bench.write_text(f"{ACTING}\n# changed\n", encoding="utf-8")
    other = acting.runpytest("benches", "--perfgate-resume")
    assert other.ret == pytest.ExitCode.USAGE_ERROR
    other.stderr.fnmatch_lines(["*is of other code*go back to it*perfgate recover*"])
    bench.write_text(ACTING, encoding="utf-8")
    lonely = acting.runpytest(*COMPARE, "--perfgate-no-save", "-k", "first")
    lonely.stdout.fnmatch_lines(["*NOT JUDGED*"])
    told = acting.runpytest("benches", "--benchmark-disable", "-k", "first")
    told.stdout.no_fnmatch_line("*a run was killed*")  # nothing is saved there
    result = acting.runpytest("benches", "--perfgate-resume")
    assert result.ret == 0
    (complete,) = map(read, saved_runs(acting))
    assert (complete.status, names(complete)) == ("complete", ["first", "second", "third"])
    taken = next(each for each in heard["record"]["measurements"] if each["metric"] == "wall_seconds")
    assert list(complete.records[0].measurement("wall_seconds").values) == taken["samples"][0]
    assert journals(acting) == []
    acting.runpytest(*COMPARE).stdout.fnmatch_lines(["*PASS 3 same*"])


def test_pr_04_what_a_killed_run_measured_can_be_made_a_run_and_is_no_baseline(acting, session, monkeypatch, capsys):
    """Whoever does not go on loses nothing either, and two deaths in one benchmark are enough."""
    for words in ((), ("--perfgate-resume",)):
        assert session(*words, act="os.kill(os.getpid(), signal.SIGKILL)").ret == -signal.SIGKILL
    (journal,) = journals(acting)
    whole = journal.read_bytes()
    monkeypatch.chdir(acting.path)
    assert cli.main(["recover"]) == 0
    assert "1 benchmarks saved as" in capsys.readouterr().out
    assert journals(acting) == []
    (file,) = saved_runs(acting)
    assert read(file).status == "interrupted"
    result = acting.runpytest(*COMPARE, "--perfgate-no-save")
    result.stdout.fnmatch_lines(["*NOT JUDGED 3 unjudged*"])
    file.unlink()
    journal.write_bytes(whole)
    result = acting.runpytest("benches", "--perfgate-resume")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*test_second: the session ended twice while it ran*-n 1*"])
    (complete,) = map(read, saved_runs(acting))
    assert names(complete) == ["first", "third"]


def test_pr_05_and_06_without_a_worker_a_hang_ends_the_session_and_the_rest_can_be_measured(acting, session):
    """In native code, where nothing inside of the process could end it."""
    result = session(act=HANG)
    assert result.ret == -signal.SIGKILL
    text = "test_second worked for more than 0.5 s without an end (--perfgate-limit); it was at:"
    result.stderr.fnmatch_lines([f"*{text}", '*File "<string>", line 4*', '*test_acts.py", line 11 in test_second'])
    assert saved_runs(acting) == []
    result = acting.runpytest("benches", "--perfgate-resume")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*unjudged*test_second: worked for more than 0.5 s*", "FAIL 1 unjudged*"])
    (complete,) = map(read, saved_runs(acting))
    assert (complete.status, names(complete)) == ("complete", ["first", "third"])


BAD_DAY = """
import itertools, os, signal, subprocess, time
from pathlib import Path
import torch
from torch.utils.data import DataLoader
from workloads import MLP
TINY = MLP(batch_size=4, width=8, image_size=4)

def remember(*pids):
    with Path(os.environ["PIDS"]).open("a") as file:
        file.write(" ".join(map(str, pids)) + " ")

def test_before(measure):
    measure(TINY.train_step())

def test_memory(measure):
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

def test_fresh(measure):
    for _ in range(20):
        os.write(1, bytes(range(256)) * 4096)
        os.write(2, bytes(range(256)) * 4096)
    measure(TINY.train_step())

def test_segv(measure):
    os.kill(os.getpid(), signal.SIGSEGV)

def test_kill(measure):
    batches = iter(DataLoader(list(range(100)), num_workers=2, multiprocessing_context="fork"))
    next(batches)
    remember(*(each.pid for each in batches._workers))
    os.kill(os.getpid(), signal.SIGKILL)

def test_exit(measure):
    os._exit(0)

def test_hang(measure):
    remember(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid)
    sum(itertools.repeat(1, 10**12))

def test_last(measure):
    measure(TINY.train_step())
"""


def line_of(text):
    """The number of the line of the bad day in which this stands."""
    return next(number for number, line in enumerate(BAD_DAY.splitlines(), start=1) if text in line)


@pytest.fixture(scope="module")
def bad_day(tmp_path_factory):
    """One session with a worker, in which nearly everything happens; what came of it."""
    folder = tmp_path_factory.mktemp("bad-day")
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "benches").mkdir()
    (folder / "benches" / "test_day.py").write_text(BAD_DAY, encoding="utf-8")
    outside = {
        "PERFGATE_LOCKS": folder / "locks",
        "PIDS": folder / "pids",
        "GIT_CEILING_DIRECTORIES": folder.parent,
        "COLUMNS": 300,
        "TMPDIR": tmp_path_factory.mktemp("t"),
    }
    words = [*COMPARE, *QUICK, "-n", "1", "--perfgate-limit=20", "--perfgate-json=out.json", "--junitxml=out.xml"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=folder,
        env=os.environ | {key: str(value) for key, value in outside.items()},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    (file,) = (folder / "results").glob("*/*.json")
    return SimpleNamespace(
        folder=folder,
        code=done.returncode,
        text=done.stdout,
        run=read(file),
        said=verdicts(folder),
        left=list((folder / "results").glob("*/*.journal")),
        pids=[int(word) for word in (folder / "pids").read_text(encoding="utf-8").split()],
    )


def test_pr_05_what_hangs_is_unjudged_with_its_stack_and_the_rest_runs(bad_day):
    """The limit is the one that was asked for."""
    hung, line = bad_day.said["hang"], line_of("sum(")
    assert (hung["verdict"], hung["code"]) == ("unjudged", "hung")
    assert f"worked for more than 20 s without an end (--perfgate-limit) at test_day.py:{line}" in hung["reason"]
    assert f'test_day.py", line {line} in test_hang' in bad_day.text
    assert "last" in names(bad_day.run)


def test_pr_06_the_day_ends_red_with_all_that_could_be_measured(bad_day):
    """A run of what there is, no journal, exit 1, and each of the others failed exactly once in JUnit."""
    assert bad_day.code == 1
    assert bad_day.run.status == "complete"
    assert set(names(bad_day.run)) == {"before", "fresh", "last"}
    assert bad_day.left == []
    assert failed_cases(bad_day.folder) == dict.fromkeys(("memory", "segv", "kill", "exit", "hang"), 1)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("segv", f"the worker was ended by SIGSEGV at test_day.py:{line_of('SIGSEGV')}"),
        ("kill", "the worker was ended by SIGKILL (often the kernel, for want of memory)"),
        ("exit", "the worker ended with exit code 0"),
    ],
)
def test_pr_07_a_crash_is_unjudged_with_its_signal(bad_day, name, said):
    """And where it was, if anybody could see it."""
    found = bad_day.said[name]
    assert (found["verdict"], found["code"], found["reason"]) == ("unjudged", "crashed", said)


def test_pr_08_much_output_and_bytes_that_are_no_text_break_nothing(bad_day, project):
    """pytest captures them into files: 40 MB from a worker, and 5 MB from a session that measures itself."""
    assert "fresh" in names(bad_day.run)
    file = project.path / "benches" / "test_tiny.py"
    loud = "import os\n" + file.read_text(encoding="utf-8").replace(
        "def test_plain(measure):", "def test_plain(measure):\n    os.write(1, bytes(range(256)) * 20480)"
    )
    file.write_text(loud, encoding="utf-8")
    project.runpytest("benches", "-k", "plain").assert_outcomes(passed=1, deselected=1)
    assert len(saved_runs(project)) == 1


def test_pr_09_no_child_of_a_killed_process_stays(bad_day):
    """Loader workers see that their parent died; what a hanging benchmark started is ended with it."""
    assert len(bad_day.pids) == 3
    assert all_end(bad_day.pids)


def test_rs_01_session_that_ran_out_of_memory_goes_on_in_a_fresh_process(bad_day):
    """The next benchmark is measured by another process, and each sample stands at the place of its own."""
    memory = bad_day.said["memory"]
    assert (memory["verdict"], memory["code"]) == ("unjudged", "out-of-memory")
    assert "2.00 GiB" in memory["reason"]
    samples = {each.id.rpartition("_")[2]: each.measurement("wall_seconds").samples for each in bad_day.run.records}
    places = {name: [place for place, process in enumerate(each) if process] for name, each in samples.items()}
    assert places["before"] == [0]
    assert len(places["fresh"]) == 1
    assert places["fresh"] != [0]
    assert max(place for each in places.values() for place in each) == len(bad_day.run.processes) - 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ("torch.AcceleratorError('CUDA error: an illegal memory access was encountered')", "cuda-error"),
        ("RuntimeError('CUDA error: GPU is lost')", "device-lost"),
    ],
)
def test_rs_01_session_without_a_fresh_process_stops_and_keeps_what_it_has(acting, monkeypatch, error, code):
    """What did not run says why; the journal stays, and the rest can be measured."""
    with monkeypatch.context() as patch:
        patch.setenv("ACT", f"raise {error}")
        result = acting.runpytest(*COMPARE, "--perfgate-json=out.json", "--junitxml=out.xml")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    found = verdicts(acting.path)
    assert (found["second"]["code"], found["third"]["code"]) == (code, "not-run")
    assert found["third"]["verdict"] == "unjudged"
    assert found["third"]["reason"].startswith(f"not run: {code}: ")
    assert ("with -n 1 a fresh process" in found["third"]["reason"]) == (code == "cuda-error")
    assert failed_cases(acting.path) == {"second": 1, "third.not-run": 1}
    (file,) = saved_runs(acting)
    assert (read(file).status, names(read(file))) == ("interrupted", ["first"])
    assert len(journals(acting)) == 1
    assert acting.runpytest("benches", "--perfgate-resume").ret == 0
    (complete,) = map(read, saved_runs(acting))
    assert names(complete) == ["first", "second", "third"]


def test_rs_01_session_whose_device_is_lost_starts_no_other_worker(session, acting):
    """Also with workers, of which another one would lose it again."""
    words = ("-n", "1", "--benchmark-compare", "--perfgate-json=out.json")
    result = session(*words, act="raise RuntimeError('CUDA error: GPU is lost')")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    found = verdicts(acting.path)
    assert (found["second"]["code"], found["third"]["code"]) == ("device-lost", "not-run")
    (file,) = saved_runs(acting)
    assert read(file).status == "interrupted"


FORKING = """
import torch
from workloads import MLP
from workloads.optimizations import Workers
torch.cuda.is_initialized = lambda: True
from workloads.steps.loading import LoadingStep
step = MLP(batch_size=32, image_size=4).loading_step(Workers(1))
if __name__ == "__main__":
    step.build(torch.device("cpu"))
    facts = step.facts()
    print(step._loader.multiprocessing_context.get_start_method(), facts["this_process"] in facts["workers"])
"""


def test_pr_10_once_cuda_is_initialised_loaders_do_not_fork(tmp_path):
    """Their workers come from a server that never saw CUDA."""
    (tmp_path / "forking.py").write_text(FORKING, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, tmp_path / "forking.py"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.stdout.strip(), done.returncode) == ("forkserver False", 0), done.stderr


def test_pr_11_what_fails_before_or_after_measuring_is_not_saved(project):
    """Neither in the run nor in pytest-benchmark's part of it."""
    (project.path / "benches" / "test_tiny.py").write_text(
        """
import pytest
from workloads import MLP
TINY = MLP(batch_size=4, width=8, image_size=4)

@pytest.fixture
def broken():
    raise ValueError("before")

@pytest.fixture
def breaking():
    yield
    raise ValueError("after")

def test_before(broken, measure):
    measure(TINY.train_step())

def test_after(breaking, measure):
    measure(TINY.train_step())

def test_fine(measure):
    measure(TINY.train_step())
""",
        encoding="utf-8",
    )
    result = project.runpytest(*COMPARE, "--perfgate-json=out.json", "--junitxml=out.xml")
    assert result.ret == 1
    result.assert_outcomes(passed=2, errors=2)
    (file,) = saved_runs(project)
    assert names(read(file)) == ["fine"]
    assert [each["name"] for each in json.loads(file.read_text(encoding="utf-8"))["benchmarks"]] == ["test_fine"]
    found = {name: (each["verdict"], each["code"]) for name, each in verdicts(project.path).items()}
    assert found["before"] == ("failed", "failed-in-setup")
    assert found["after"] == ("failed", "failed-in-teardown")
    assert failed_cases(project.path) == {"before": 1, "after": 1}
    assert journals(project) == []


@pytest.fixture
def one_core():
    """This process and what it starts have one core only."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.skipif(len(physical_cores(usable_cores())) < 2, reason="needs two cores")
def test_pr_12_two_workers_measure_on_cores_of_their_own(project):
    """One run of both, and each sample stands at the place of its process."""
    tiny = project.path / "benches" / "test_tiny.py"
    tiny.with_name("test_more.py").write_text(tiny.read_text(encoding="utf-8"), encoding="utf-8")
    result = project.runpytest_subprocess("benches", *QUICK, "-n", "2")
    assert result.ret == 0
    result.assert_outcomes(passed=4)
    (file,) = saved_runs(project)
    run = read(file)
    assert len(run.records) == 4
    own = [set(each.tunables["affinity"].split(",")) for each in run.processes]
    assert len(own) == 2
    assert own[0].isdisjoint(own[1])
    measurers = Counter()
    for record in run.records:
        samples = record.measurement("wall_seconds").samples
        assert sum(map(bool, samples)) == 1
        measurers[[bool(process) for process in samples].index(True)] += 1
    assert measurers == {0: 2, 1: 2}


def test_pr_12_more_workers_than_devices_are_a_usage_error(project, one_core):
    """Before any starts where it is a gate; without one benchmarks fail with the reason, and the session stops."""
    result = project.runpytest_subprocess(*COMPARE, *QUICK, "-n", "99", "--perfgate-device=cpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*-n 99: each worker needs a core of its own*-n 1 is the most here*"])
    result = project.runpytest_subprocess("benches", *QUICK, "-n", "2", "--perfgate-device=cpu", "-rf")
    assert result.ret == pytest.ExitCode.INTERRUPTED  # no worker could do better
    assert result.parseoutcomes().keys() == {"errors"}
    result.stdout.fnmatch_lines(["*settings: -n 2: each worker needs a core of its own*"])
    assert saved_runs(project) == []


def test_pr_12_a_gate_with_a_worker_judges(project):
    """A regression is exit 1, and one failed case for each; without one it is green."""
    project.runpytest("benches")
    plain = project.runpytest_subprocess(*COMPARE, *QUICK, "-n", "1")
    plain.stdout.fnmatch_lines(["*PASS 2 same*"])
    assert plain.ret == 0
    for file in saved_runs(project):
        edit(file, fewer_operators)
    result = project.runpytest_subprocess(*COMPARE, *QUICK, "-n", "1", "--junitxml=out.xml")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*slower*operators * -> *+1 *", "FAIL 2 slower"])
    assert failed_cases(project.path) == {"plain.count-slower": 1, "amp.count-slower": 1}


def test_pr_12_other_projects_suites_run_as_before(project):
    """A plain ``benchmark`` with ``-n`` is not measured, and nothing is written."""
    (project.path / "benches" / "test_tiny.py").write_text(
        "import sys\ndef test_sum(benchmark):\n"
        "    assert benchmark(sum, range(10)) == 45\n    assert benchmark.disabled\n"
        "def test_plain():\n    assert 'torch' not in sys.modules\n",
        encoding="utf-8",
    )
    result = project.runpytest_subprocess("benches", *QUICK, "-n", "2")
    assert result.ret == 0
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*perfgate*measured*")
    assert not (project.path / "results").exists()


@pytest.mark.parametrize("flag", ["--benchmark-disable", "--benchmark-skip"])
def test_pr_13_a_gate_that_measures_nothing_is_refused(project, flag):
    """Without a gate it says that nothing was measured."""
    assert project.runpytest(*COMPARE, flag).ret == pytest.ExitCode.USAGE_ERROR
    project.runpytest("benches", flag).stdout.fnmatch_lines(["*NOTHING MEASURED 2 *"])
    assert saved_runs(project) == []


def test_pr_14_no_logic_is_in_asserts():
    """``python -O`` leaves them out."""
    for file in Path(perfgate.__file__).parent.rglob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Assert)], file


def test_pr_14_a_regression_is_one_without_asserts(project):
    """``python -O -m pytest``."""
    project.runpytest("benches")
    edit(saved_runs(project)[0], fewer_operators)
    result = project.run(sys.executable, "-O", "-m", "pytest", *COMPARE, *QUICK)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAIL 2 slower"])


def test_pr_15_the_order_of_benchmarks_does_not_matter(project):
    """As a plugin that shuffles would have it: each is compared with itself."""
    project.runpytest("benches")
    hook = "def pytest_collection_modifyitems(items):\n    items.reverse()\n"
    (project.path / "benches" / "conftest.py").write_text(hook, encoding="utf-8")
    result = project.runpytest(*COMPARE, "-v")
    result.stdout.fnmatch_lines(["*::test_amp*", "*::test_plain*", "*PASS 2 same*"])
    assert result.ret == 0
    first, second = map(read, saved_runs(project))
    assert names(first) == names(second)[::-1]


def test_pr_16_a_selection_of_nothing_is_never_green(project):
    """Exit 5 as always; a gate asks whether the name is right."""
    assert project.runpytest("benches", "-k", "xyz").ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result = project.runpytest(*COMPARE, "-k", "xyz")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no benchmark was collected; are the paths and -k right?*"])
