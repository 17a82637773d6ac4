"""Signals that ask a session to end: in child processes, which they may end."""

import signal
import subprocess
import sys
import threading

import pytest

from perfgate.signals import Signals

CHILD = """
import signal, sys, time
from perfgate.signals import Signals
numbers = [int(word) for word in sys.argv[2:]]
if sys.argv[1] == "ignoring":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
signals = Signals()
signals.install()
for number in numbers:
    try:
        signal.raise_signal(number)
        print("went on", flush=True)
    except KeyboardInterrupt:
        print(f"interrupted {signals.received} {signals.exit_status}", flush=True)
signals.restore()
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
"""


def child(*words):
    """How it ended and what it said."""
    command = [sys.executable, "-c", CHILD, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_the_first_signal_interrupts(number, status):
    """The exit status is the one that shells know; SIGINT's is pytest's own."""
    assert child("-", int(number)) == (0, [f"interrupted {int(number)} {status}", "True"])


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_second_signal_ends_at_once(first, second):
    """Nobody has to wait for a clean-up that hangs."""
    code, said = child("-", int(first), int(second))
    assert code == -second
    assert len(said) == 1


def test_what_this_process_was_told_to_ignore_stays_ignored():
    """As under nohup."""
    assert child("ignoring", int(signal.SIGHUP), int(signal.SIGTERM))[1] == ["went on", "interrupted 15 143", "True"]


def test_handlers_are_put_back():
    """Whatever they were."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signals = Signals()
    signals.install()
    signals.install()
    assert signal.getsignal(signal.SIGTERM) != before[signal.SIGTERM]
    signals.restore()
    signals.restore()
    assert {each: signal.getsignal(each) for each in before} == before
    assert signals.exit_status == 0


def test_in_a_thread_of_another_program_signals_are_left_alone():
    """Only the main thread may install handlers, and they are the other program's."""
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=Signals().install)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before
