"""A measuring process from its controller's end: heard out while it works, given up on when it dies, hangs or lies."""

import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

import perfgate
from perfgate.pairs import side as sides
from perfgate.pairs.side import Launch, Side
from perfgate.turns import NOBODY_WAITS
from tests.conftest import record

PRELUDE = """
import json, os, signal, subprocess, sys, time
from perfgate.turns import Taken
turns = Taken(int(sys.argv[-1].removeprefix("--perfgate-turns=")))
"""
LIFE = """
for name in turns.collected(["t.py::a", "t.py::b"], {"u.py": "SyntaxError"}, {"slug": "m"}):
    turns.start(name)
    for number in range(turns.agree(3)):
        turns.before_round()
    turns.after_rounds()
    turns.tell("record", {**json.loads(os.environ["RECORD"]), "id": name})
    turns.tell("outcome", {"id": "t.py::c", "word": "skipped", "code": "skipped", "reason": "no GPU"})
turns.tell("about", {"process": {"canary": {}}})
turns.tell("modules", {"own": {"x.y": "/x/y.py"}, "installed": {}})
turns.finish()
"""


def launch(folder, script, limit_seconds=30.0):
    """A process that runs the script, with ``turns`` at hand."""
    return Launch(
        name="head",
        command=[sys.executable, "-c", PRELUDE + dedent(script)],
        folder=folder,
        environment={
            **os.environ,
            "PYTHONPATH": str(Path(perfgate.__file__).parents[1]),
            "RECORD": json.dumps(dataclasses.asdict(record())),
        },
        log=folder / "head.log",
        limit_seconds=limit_seconds,
    )


def gone(pid):
    """Whether the process has ended, within a few seconds; nobody may have reaped it."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


def test_a_normal_life(tmp_path):
    """It collects, measures what it is told to, and ends by itself."""
    with Side(launch(tmp_path, LIFE)) as side:
        assert (side.ids, side.problems, side.machine) == (
            ["t.py::a", "t.py::b"],
            {"u.py": "SyntaxError"},
            {"slug": "m"},
        )
        side.go(ids=["t.py::b"])
        assert side.at("start", "t.py::b")
        side.go()
        assert side.wished_rounds == 3
        side.go(rounds=2)
        for _ in range(2):
            assert side.at("round", "t.py::b")
            side.go()
        assert side.at("after")
        side.go()
        assert side.at("finish")
        side.finish()
        assert side._process.returncode == 0
    assert list(side.records) == ["t.py::b"]
    assert side.records["t.py::b"].measurement("wall_seconds").values == (0.01,) * 6
    assert side.outcomes["t.py::c"]["reason"] == "no GPU"
    assert (side.about, side.modules) == ({"process": {"canary": {}}}, {"x.y": "/x/y.py"})
    assert side.death is None


def test_the_place_and_the_benchmark_are_told_apart(tmp_path):
    """Waiting at the start of another benchmark is not waiting at the start of this one."""
    with Side(launch(tmp_path, LIFE)) as side:
        side.go(ids=["t.py::a"])
        assert side.at("start")
        assert side.at("start", "t.py::a")
        assert not side.at("start", "t.py::b")
        assert not side.at("round")


def test_the_time_it_held_the_turn_is_counted(tmp_path):
    """Not the time in which it waited."""
    with Side(launch(tmp_path, LIFE)) as side:
        before = side.working_seconds
        time.sleep(0.05)
        assert side.working_seconds == before > 0
        side.go(ids=[])
        assert side.working_seconds > before


def test_dying_before_it_has_collected(tmp_path):
    """Said with the exit code and the last lines of its output."""
    with Side(launch(tmp_path, "print('no such option'); sys.exit(4)")) as side:
        pass
    assert (side.death.at, side.death.code) == ("", "crashed")
    assert "head ended with exit code 4" in side.death.reason
    assert "no such option" in side.death.reason


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was ended by SIGSEGV"),
        ("sys.exit(3)", "ended with exit code 3"),
        ("os.kill(os.getpid(), 40)", "was ended by"),
    ],
)
def test_dying_in_a_round(tmp_path, how, said):
    """What it measured before stays; the benchmark it died at is named."""
    script = LIFE.replace("turns.before_round()", f"turns.before_round()\n        if name == 't.py::b': {how}")
    with Side(launch(tmp_path, script)) as side:
        side.go(ids=["t.py::a", "t.py::b"])
        while not side.death and not side.at("finish"):
            side.go(**({"rounds": 1} if side.at("agree") else {}))
    assert (side.death.at, side.death.code) == ("t.py::b", "crashed")
    assert said in side.death.reason
    assert list(side.records) == ["t.py::a"]
    assert not side.at("round")


def test_dying_while_it_waits_for_the_end(tmp_path):
    """Killed for want of memory, for example: everything is told already, and nothing is raised."""
    script = LIFE.replace("turns.finish()", "turns._send({'at': 'finish', 'id': ''}); os._exit(9)")
    with Side(launch(tmp_path, script)) as side:
        side.go(ids=[])
        assert side.at("finish")
        side._process.wait(10)
        side.finish()
    assert side.modules == {"x.y": "/x/y.py"}


def test_a_dead_process_takes_no_turn(tmp_path):
    """And its death stays the first one."""
    with Side(launch(tmp_path, "sys.exit(3)")) as side:
        death = side.death
        side.go(rounds=3)
        side.finish()
    assert side.death is death
    assert not side.at("collected")


def test_a_process_that_hangs_is_ended(tmp_path):
    """After the limit, with the option that changes it."""
    script = "turns.collected(['a'], {}, {}); turns.start('a'); time.sleep(60)"
    with Side(launch(tmp_path, script, limit_seconds=0.5)) as side:
        side.go(ids=["a"])
        side.go()
        assert gone(side._process.pid)
    assert (side.death.at, side.death.code) == ("a", "hung")
    assert "--limit" in side.death.reason


def test_a_hang_in_native_code_shows_where_it_is(tmp_path):
    """It holds Python's lock, and is aborted for its stack."""
    script = """
    import faulthandler, itertools
    faulthandler.enable()
    def stuck():
        sum(itertools.repeat(1, 10**13))
    turns.collected(['a'], {}, {}); turns.start('a'); stuck()
    """
    with Side(launch(tmp_path, script, limit_seconds=0.5)) as side:
        side.go(ids=["a"])
        side.go()
    assert side.death.code == "hung"
    assert "in stuck" in side.death.reason


def test_a_limit_of_less_than_a_second_is_not_called_0_seconds(tmp_path):
    """Nothing works for less."""
    with Side(launch(tmp_path, "time.sleep(60)", limit_seconds=0.2)) as side:
        pass
    assert "more than 0 s" not in side.death.reason


def test_a_process_that_will_not_end_is_killed(tmp_path, monkeypatch):
    """Once it was asked to."""
    monkeypatch.setattr(sides, "GRACE_SECONDS", 0.2)
    message = {"at": "collected", "protocol": 1, "ids": [], "problems": {}, "machine": {}}
    script = f"signal.signal(signal.SIGTERM, signal.SIG_IGN); turns._send({message}); time.sleep(60)"
    with Side(launch(tmp_path, script)) as side:
        pass
    assert side._process.returncode == -9


def test_another_protocol_is_refused(tmp_path):
    """Base's perfgate may be an older one."""
    message = {"at": "collected", "protocol": 99, "ids": [], "problems": {}, "machine": {}}
    with Side(launch(tmp_path, f"turns._wait({message})")) as side:
        pass
    assert side.death.code == "protocol"
    assert "protocol 99" in side.death.reason


def test_another_protocol_may_have_other_fields(tmp_path):
    """Only the number is looked at."""
    with Side(launch(tmp_path, "turns._wait({'at': 'collected', 'protocol': 99, 'benchmarks': []})")) as side:
        pass
    assert side.death.code == "protocol"


@pytest.mark.parametrize(
    "content", ['{"id": 3}', "{**json.loads(os.environ['RECORD']), 'seconds': 'long'}", "{}", "[]"]
)
def test_a_malformed_record_ends_it(tmp_path, content):
    """Named by its field; nothing of it is kept."""
    script = f"turns.collected([], {{}}, {{}}); turns.tell('record', {content}); turns.finish()"
    with Side(launch(tmp_path, script)) as side:
        side.go(ids=[])
    assert side.death.code == "protocol"
    assert "what head sent" in side.death.reason
    assert side.records == {}


@pytest.mark.parametrize(
    "sent", ["b'no JSON'", "b'\\xff\\xfe'", "b'[]'", "b'{}'", 'b\'{"tell": "outcome", "content": {}}\'', "b'3'"]
)
def test_what_is_no_message_ends_it(tmp_path, sent):
    """Without an exception in the controller: the benchmark's own code can write to any descriptor."""
    script = f"turns.collected([], {{}}, {{}}); turns._connection.send_bytes({sent}); turns.finish()"
    with Side(launch(tmp_path, script)) as side:
        side.go(ids=[])
    assert side.death.code == "protocol"


def test_much_output_goes_to_the_log(tmp_path):
    """And stops nobody; of a death, the last lines are shown, without empty ones."""
    script = "print('x' * 100 + '\\n' * 3, flush=True)\n" * 3
    script += "sys.stdout.write('y' * 3_000_000 + '\\n'); print('\\n'.join(map(str, range(99)))); sys.exit(5)"
    with Side(launch(tmp_path, script)) as side:
        pass
    assert side.launch.log.stat().st_size > 3_000_000
    lines = side.death.reason.splitlines()
    assert lines[0] == "head ended with exit code 5; its last lines:"
    assert [line.strip() for line in lines[1:]] == [str(number) for number in range(87, 99)]


def test_output_that_is_no_text_is_shown_all_the_same(tmp_path):
    """As far as it can be."""
    with Side(launch(tmp_path, "sys.stdout.buffer.write(b'\\xff\\xfe end\\n'); sys.exit(5)")) as side:
        pass
    assert "end" in side.death.reason


def test_what_it_started_ends_with_it(tmp_path):
    """Loader workers, for example."""
    script = """
        worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        turns.collected([str(worker.pid)], {}, {})
    """
    with Side(launch(tmp_path, script)) as side:
        worker = int(side.ids[0])
    assert gone(side._process.pid)
    assert gone(worker)


def test_what_it_left_behind_ends_with_it(tmp_path):
    """It ended by itself, its worker did not."""
    script = """
        worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        turns.collected([str(worker.pid)], {}, {})
        turns.finish()
    """
    with Side(launch(tmp_path, script)) as side:
        worker = int(side.ids[0])
        side.go(ids=[])
        side.finish()
        assert side._process.returncode == 0
    assert gone(worker)


def test_a_crash_is_seen_although_a_forked_worker_lives(tmp_path):
    """A fork holds the connection open, so that its end alone does not tell."""
    script = """
        turns.collected(["a"], {}, {})
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGSEGV)
    """
    with Side(launch(tmp_path, script, limit_seconds=3.0)) as side:
        side.go(ids=["a"])
    assert side.death.code == "crashed"
    assert "SIGSEGV" in side.death.reason


def test_without_its_controller_it_ends(tmp_path):
    """At once, with a status of its own, whatever it waits for."""
    with Side(launch(tmp_path, LIFE)) as side:
        side._connection.close()
        assert side._process.wait(20) == NOBODY_WAITS == 75


def test_telling_a_controller_that_is_gone_ends_it_too(tmp_path):
    """Nobody would hear its results."""
    script = """
        turns.collected([], {}, {})
        for _ in range(10_000):
            turns.tell("modules", {"own": {"x": "x" * 100_000}, "installed": {}})
    """
    with Side(launch(tmp_path, script)) as side:
        side._connection.send_bytes(b'{"ids": []}')
        side._connection.close()
        assert side._process.wait(20) == NOBODY_WAITS


def test_a_program_that_is_not_there_is_a_death(tmp_path):
    """Not an exception: a wrong --head-python is the user's to correct."""
    wrong = dataclasses.replace(launch(tmp_path, ""), command=[str(tmp_path / "no-such-python")])
    with Side(wrong) as side:
        pass
    assert side.death.code == "crashed"
    assert "no-such-python" in side.death.reason


def test_a_program_that_cannot_be_run_leaves_nothing_open(tmp_path):
    """A retry must not run out of descriptors; a warning would be an error here."""
    before = len(os.listdir("/proc/self/fd"))
    wrong = dataclasses.replace(launch(tmp_path, ""), command=[str(tmp_path)])
    try:
        with Side(wrong):
            pass
    except OSError:
        pass
    assert len(os.listdir("/proc/self/fd")) == before
