"""The monitor ends what nothing inside a process can end, says where it was, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfgate.deaths import find_out
from perfgate.monitor import Monitor, descendants
from perfgate.results.journal import Journal, read_journal
from perfgate.watch import LIMIT_SECONDS, SHORTEST_SECONDS, limit_of
from tests.perfgate.results.test_journal import SESSION

OPENING = """
import itertools, os, signal, subprocess, sys, time
from pathlib import Path
from perfgate.watch import Watch
stack, journal = Path(sys.argv[1]), Path(sys.argv[2])
watch = Watch(stack, terminal=None if sys.argv[3] == "quiet" else 2)
watch.journal(journal)
print(watch._process.pid, flush=True)
"""
NATIVE = "sum(itertools.repeat(1, 10**12))"
PYTHON = "while True: time.sleep(0.01)"


@pytest.fixture
def journal(tmp_path):
    """A journal in which nothing is yet."""
    made = Journal.create(tmp_path / "machine", SESSION)
    made.close()
    return made.file


@pytest.fixture
def watched(tmp_path, journal):
    """Starts a process that is watched while it runs some code; ends it."""
    started = []

    def start(code, *, mode="aloud"):
        (tmp_path / "watched.py").write_text(OPENING + code, encoding="utf-8")
        command = [sys.executable, tmp_path / "watched.py", tmp_path / "stack", journal, mode]
        process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        process.monitor = int(process.stdout.readline())
        return process

    yield start
    for each in started:
        each.kill()
        each.communicate()


def is_gone(pid):
    """Whether there is no such process, or only what its parent has not yet asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ends(pid):
    """Whether the process ends by itself within a minute."""
    deadline = time.monotonic() + 60
    while not is_gone(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return is_gone(pid)


@pytest.mark.parametrize(
    ("past", "wished", "limit"),
    [
        (None, None, LIMIT_SECONDS),
        (0.0, None, LIMIT_SECONDS),
        (1.0, None, SHORTEST_SECONDS),
        (60.0, None, 600.0),
        (60.0, 3.0, 3.0),
        (None, 0.5, 0.5),
    ],
)
def test_the_limit_of_a_benchmark(past, wished, limit):
    """What was wished, else by what it took before, else long."""
    assert limit_of(past, wished) == limit


@pytest.mark.parametrize("hang", [NATIVE, PYTHON], ids=["native", "python"])
def test_a_hang_is_ended_kept_and_told_with_its_line(watched, tmp_path, journal, hang):
    """In native code, where no signal handler of Python's ever runs, as elsewhere."""
    lines = len(OPENING.splitlines())
    process = watched(f"watch.begin('the benchmark', 0.2)\n{hang}\n")
    _, said = process.communicate()
    assert process.returncode == -signal.SIGTERM
    assert "the benchmark worked for more than 0.2 s without an end (--perfgate-limit)" in said
    assert f'watched.py", line {lines + 2} in <module>' in said
    assert "--perfgate-resume" in said
    (event,) = read_journal(journal).events
    assert (event["id"], event["code"], event["word"]) == ("the benchmark", "hung", "unjudged")
    assert ends(process.monitor)
    assert not (tmp_path / "stack").exists()  # told, and of no more use


def test_a_process_that_ignores_to_be_asked_or_is_stopped_is_killed_with_all_that_it_started(watched, tmp_path):
    """Nobody is left to hold the GPU: neither children nor theirs, in whichever session."""
    grandchild = "import subprocess, time; p = subprocess.Popen(['sleep', '1000'], start_new_session=True); "
    process = watched(
        f"""
child = subprocess.Popen(
    [sys.executable, "-c", "{grandchild}print(p.pid, flush=True); time.sleep(1000)"],
    stdout=subprocess.PIPE, text=True,
)
print(child.pid, child.stdout.readline().strip(), flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
watch.begin("the benchmark", 0.2)
os.kill(os.getpid(), signal.SIGSTOP)
"""
    )
    family = list(map(int, process.stdout.readline().split()))
    assert not any(map(is_gone, family))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert all(map(ends, [*family, process.monitor]))


def test_a_benchmark_in_time_is_left_alone(watched, tmp_path, journal):
    """And so is what comes between two, and whoever debugs."""
    process = watched(
        """
for name in ("a", "b"):
    watch.begin(name, 60.0)
    watch.end()
watch.begin("c", 0.3)
watch.end()
time.sleep(1.5)
watch.close()
print("closed", flush=True)
"""
    )
    assert process.communicate()[0] == "closed\n"
    assert process.returncode == 0
    assert is_gone(process.monitor)
    assert (tmp_path / "stack").read_text(encoding="utf-8") == ""
    assert read_journal(journal).events == ()


def test_the_time_of_one_benchmark_is_not_counted_for_the_next(watched):
    """Each has its own."""
    code = "for _ in range(3):\n    watch.begin('a', 1.0)\n    time.sleep(0.5)\nwatch.end()\nwatch.close()\n"
    process = watched(code)
    process.communicate()
    assert process.returncode == 0


def test_a_death_in_the_middle_is_told(watched):
    """Nothing else would say which benchmark it was."""
    process = watched("watch.begin('the benchmark', 60.0)\nos.kill(os.getpid(), signal.SIGKILL)\n")
    _, said = process.communicate()
    assert "the process ended in the middle of the benchmark" in said
    assert "--perfgate-resume" in said
    assert ends(process.monitor)


def test_a_death_is_told_also_where_a_child_holds_the_pipe(watched):
    """A loader's worker may live on for a while."""
    process = watched(
        """
watch.begin("the benchmark", 60.0)
pid = os.fork()
if not pid:
    time.sleep(1000)
print(pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    child = int(process.stdout.readline())
    assert ends(process.monitor)
    os.kill(child, signal.SIGKILL)
    assert "ended in the middle of the benchmark" in process.communicate()[1]


def test_where_a_controller_tells_the_monitor_is_silent_about_a_death(watched):
    """It is told once."""
    process = watched("watch.begin('the benchmark', 60.0)\nos.kill(os.getpid(), signal.SIGKILL)\n", mode="quiet")
    assert process.communicate()[1] == ""
    assert ends(process.monitor)


def test_where_a_controller_tells_the_monitor_leaves_it_the_stack_of_a_hang(watched, tmp_path):
    """With the line, and what the limit was."""
    process = watched(f"watch.begin('the benchmark', 0.2)\n{PYTHON}\n", mode="quiet")
    assert process.communicate()[1] == ""
    assert ends(process.monitor)
    death = find_out(0, tmp_path / "stack")
    assert (death.code, death.place) == ("hung", f" at watched.py:{len(OPENING.splitlines()) + 2}")
    assert "0.2 s" in death.reason


def test_a_worker_whose_controller_was_killed_is_ended(tmp_path, journal):
    """It would measure for nobody, and beside the next session."""
    file = tmp_path / "worker.py"
    file.write_text(f"{OPENING}print(os.getpid(), flush=True)\ntime.sleep(1000)\n", encoding="utf-8")
    words = ["sh", "-c", '"$@" & wait', "sh", sys.executable, file, tmp_path / "stack", journal, "quiet"]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) as controller:
        monitor, worker = int(controller.stdout.readline()), int(controller.stdout.readline())
        assert not is_gone(worker)
        controller.kill()
    assert ends(worker)
    assert ends(monitor)


def test_the_terminals_interrupt_is_not_for_the_monitor(watched):
    """It is in a session of its own."""
    process = watched("input()\nwatch.close()\n")
    assert os.getsid(process.monitor) == process.monitor
    process.communicate("\n")
    assert process.returncode == 0


def test_a_monitor_that_was_killed_does_no_harm(watched):
    """Measuring goes on without."""
    process = watched("input()\nwatch.begin('a', 60.0)\nwatch.end()\nwatch.close()\nprint('closed', flush=True)\n")
    os.kill(process.monitor, signal.SIGKILL)
    assert process.communicate("\n")[0] == "closed\n"
    assert process.returncode == 0


def test_nobody_hears_of_a_death_between_two_benchmarks(capfd):
    """Whatever ended the process then says so itself."""
    monitor = Monitor(os.getpid(), 0, "", quiet=False)
    monitor.hear({"begin": "a", "seconds": 60.0})
    monitor.hear({"end": True})
    monitor.tell_of_death()
    assert capfd.readouterr().err == ""


def test_descendants_are_found_through_all_generations():
    """Those of every thread."""
    code = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'input()']); print(p.pid, flush=True); p.wait()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        grandchild = int(child.stdout.readline())
        assert {child.pid, grandchild} <= set(descendants(os.getpid()))
        child.communicate(b"\n")
    assert descendants(child.pid) == []
