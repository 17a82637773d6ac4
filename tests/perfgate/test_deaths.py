"""How a measuring process died: told by the kernel, and by the file that it left."""

import os
import signal
import subprocess
import sys

import pytest

from perfgate import deaths
from perfgate.deaths import Death, find_out, innermost, signal_name

DUMP = """Fatal Python error: Segmentation fault

Thread 0x00007f1 (most recent call first):
  File "/p/threading.py", line 1 in wait

Current thread 0x00007f2 (most recent call first):
  File "/p/benches/test_a.py", line 7 in test_a
  File "/p/pytest.py", line 2 in run

Extension modules: torch._C (total: 1)
"""


def ended(code):
    """A child that ended, and was not waited for."""
    return subprocess.Popen([sys.executable, "-c", f"import os; {code}"])


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("os.kill(os.getpid(), 11)", "was ended by SIGSEGV"),
        ("os.kill(os.getpid(), 9)", "was ended by SIGKILL (often the kernel, for want of memory)"),
        ("os.abort()", "was ended by SIGABRT"),
        ("os._exit(3)", "ended with exit code 3"),
        ("os._exit(0)", "ended with exit code 0"),
    ],
)
def test_the_kernel_tells_how_it_ended(tmp_path, code, reason):
    """The child is still there for its parent."""
    process = ended(code)
    assert find_out(process.pid, tmp_path / "none") == Death(code="crashed", reason=reason, stack="")
    assert process.wait() == process.returncode
    assert process.returncode is not None


def test_what_the_kernel_has_forgotten_cannot_be_told(tmp_path):
    """Somebody waited for it already, or nobody knows its id."""
    process = ended("os._exit(3)")
    process.wait()
    assert find_out(process.pid, tmp_path / "none").reason == "died"
    assert find_out(0, tmp_path / "none").reason == "died"


def test_a_process_that_lives_on_is_no_death(tmp_path, monkeypatch):
    """Only its connection is closed."""
    monkeypatch.setattr(deaths, "WAIT_SECONDS", 0.01)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert find_out(process.pid, tmp_path / "none").reason == "closed its connection without ending"
        process.communicate(b"\n")


def test_a_crash_has_its_stack(tmp_path):
    """Of the thread that crashed, with its place."""
    (tmp_path / "stack").write_text(DUMP, encoding="utf-8")
    process = ended("os.kill(os.getpid(), 11)")
    death = find_out(process.pid, tmp_path / "stack")
    process.wait()
    assert death.stack.splitlines() == [
        '  File "/p/benches/test_a.py", line 7 in test_a',
        '  File "/p/pytest.py", line 2 in run',
    ]
    assert death.place == " at test_a.py:7"


def test_a_hang_is_told_by_the_monitor(tmp_path):
    """What the process was ended with does not matter then."""
    (tmp_path / "stack").write_text(f"hung: worked for ever\n{DUMP}", encoding="utf-8")
    death = find_out(os.getpid(), tmp_path / "stack")
    assert (death.code, death.reason, death.place) == ("hung", "worked for ever", " at test_a.py:7")


def test_leaving_on_purpose_is_told_by_the_process(tmp_path):
    """It is no crash, and has no stack."""
    (tmp_path / "stack").write_text(f"{DUMP}left: out of memory\n", encoding="utf-8")
    assert find_out(os.getpid(), tmp_path / "stack") == Death(code="left", reason="out of memory", stack="")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("", ""),
        ("nonsense\n", ""),
        (DUMP, "/p/benches/test_a.py"),
        ('Stack (most recent call first):\n  File "/p/a.py", line 1 in a\n', "/p/a.py"),
        ('Thread 0x1 (most recent call first):\n  File "/p/b.py", line 1 in b\n', "/p/b.py"),
        (DUMP.replace("Current thread", "Thread"), "/p/benches/test_a.py"),
    ],
)
def test_the_innermost_frames_are_chosen(text, first):
    """Of the current thread, else of the main one, which faulthandler writes last."""
    frames = innermost(text)
    assert frames.startswith(f'  File "{first}"') if first else frames == ""


def test_a_deep_stack_is_cut():
    """The innermost frames tell."""
    text = "Current thread 0x1 (most recent call first):\n" + '  File "/p/a.py", line 1 in a\n' * 100
    assert len(innermost(text).splitlines()) == deaths.SHOWN_FRAMES


def test_where_there_is_no_stack_there_is_no_place():
    """Nothing is invented."""
    assert Death(code="crashed", reason="died", stack="").place == ""


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGBUS, "SIGBUS"), (43, "signal 43")]
)
def test_signals_have_names(number, name):
    """But for real-time ones."""
    assert signal_name(number) == name
