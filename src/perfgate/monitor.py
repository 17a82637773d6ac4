"""The monitor: a process of its own that sees a measuring process hang or die, and says so.

A hang in native code holds Python's lock, so that nothing inside the process can end it; this can. It is a script that
needs the standard library only, started by :mod:`perfgate.watch`, and reads one JSON object per line:

    {"begin": name, "seconds": limit}   a benchmark begins
    {"end": true}                       it has ended
    {"journal": path}                   where results are kept
    {"bye": true}                       all is well: leave
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import sys
import time
from typing import Any

DUMP_SECONDS = 1.0  # for the process to write its stack down
GRACE_SECONDS = 5.0  # between asking it to end and killing it
GLANCE_SECONDS = 0.5
SHOWN_FRAMES = 12  # of the stack, innermost first


class Monitor:
    """What is known of the watched process."""

    def __init__(self, pid: int, number: int, stack: str, *, quiet: bool, controller: int = 0) -> None:
        """``number`` is the signal that makes it write to the file ``stack``; ``quiet`` lets others tell.

        ``controller`` is the process that it must not outlive; 0 for none.
        """
        self.pid, self.number, self.stack, self.quiet = pid, number, stack, quiet
        self.name, self.seconds, self.journal = "", 0.0, ""
        self.deadline: float | None = None
        self.controller = controller

    def run(self) -> None:
        """Watch until the process says goodbye, hangs or dies."""
        pending = b""
        while True:
            ready, _, _ = select.select([0], [], [], GLANCE_SECONDS)
            received = os.read(0, 65536) if ready else None
            *lines, pending = (pending + (received or b"")).split(b"\n")
            if any(list(map(self.hear, map(json.loads, lines)))):
                return None
            if received == b"" or (not ready and os.getppid() != self.pid):  # loaders' workers may hold the pipe open
                return self.tell_of_death()
            if self.controller and parent_of(self.pid) not in {0, self.controller}:
                return self.end_orphan()
            if self.deadline is not None and time.monotonic() > self.deadline:
                return self.end_hang()

    def hear(self, message: dict[str, Any]) -> bool:
        """Take one message; whether it was the last."""
        if "begin" in message:
            self.name, self.seconds = message["begin"], message["seconds"]
            self.deadline = time.monotonic() + self.seconds
        elif "journal" in message:
            self.journal = message["journal"]
        elif "end" in message:
            self.name, self.deadline = "", None
        return "bye" in message

    def end_hang(self) -> None:
        """Have the stack written, keep the verdict, and end the process with all that it started."""
        reason = f"worked for more than {self.seconds:g} s without an end (--perfgate-limit)"
        self._append(self.stack, f"hung: {reason}\n")
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, self.number)
            time.sleep(DUMP_SECONDS)
        family = [self.pid, *(each for each in descendants(self.pid) if each != os.getpid())]
        event = {"event": "outcome", "id": self.name, "word": "unjudged", "code": "hung", "reason": reason}
        if self.journal:
            self._append(self.journal, json.dumps(event) + "\n")
        self.say(f"{self.name} {reason}; it was at:\n{self._stack()}")
        for number, wait in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, 0.0)):
            for each in family:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(each, number)
            until = time.monotonic() + wait
            while time.monotonic() < until and os.getppid() == self.pid:
                if select.select([0], [], [], GLANCE_SECONDS)[0] and b'"end"' in os.read(0, 65536):
                    self.name, self.deadline = "", None
                    return self.run()  # it heard, and takes its time to save what it has
        return self._forget()

    def end_orphan(self) -> None:
        """A worker whose controller was killed measures for nobody, and in the way of the next session."""
        for each in [self.pid, *(each for each in descendants(self.pid) if each != os.getpid())]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)

    def tell_of_death(self) -> None:
        """The process ended without a goodbye."""
        if self.name:
            self.say(f"the process ended in the middle of {self.name}")
        self._forget()

    def _forget(self) -> None:
        """Remove the stack and its folder, which was made for it: nobody else will."""
        if not self.quiet:
            with contextlib.suppress(OSError):
                os.unlink(self.stack)
                os.rmdir(os.path.dirname(self.stack))

    def say(self, text: str) -> None:
        """Say it on the terminal, unless a controller tells."""
        kept = "\nperfgate: what was measured before is kept; go on with --perfgate-resume" if self.journal else ""
        if not self.quiet:
            with contextlib.suppress(OSError):
                os.write(2, f"\nperfgate: {text}{kept}\n".encode(errors="replace"))

    @staticmethod
    def _append(file: str, text: str) -> None:
        with contextlib.suppress(OSError), open(file, "a", encoding="utf-8") as stream:
            stream.write(text)

    def _stack(self) -> str:
        """The innermost frames of the thread that Python's lock is held by, or of the main one."""
        with contextlib.suppress(OSError), open(self.stack, encoding="utf-8", errors="replace") as stream:
            frames = stream.read().rpartition("Current thread")[2].splitlines()[1:]
            return "\n".join(itertools.takewhile(lambda line: line.startswith("  File "), frames[:SHOWN_FRAMES]))
        return ""


def parent_of(pid: int) -> int:
    """The process that started ``pid``, or whoever took it over; 0 where the kernel does not tell."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", encoding="utf-8") as stream:
        return int(stream.read().rpartition(")")[2].split()[1])
    return 0


def descendants(pid: int) -> list[int]:
    """All processes that ``pid`` started, and those that these started; none where the kernel does not tell."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as stream:
                for child in map(int, stream.read().split()):
                    found += [child, *descendants(child)]
    return found


if __name__ == "__main__":
    watched, number, controller = map(int, sys.argv[1:4])
    Monitor(watched, number, sys.argv[4], quiet=controller != 0, controller=controller).run()
