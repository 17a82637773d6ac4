"""How a measuring process died: its signal from the kernel, and the stack that it left in its file."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

WAIT_SECONDS = 5.0  # between the end of a process's pipe and its own
GLANCE_SECONDS = 0.05
SHOWN_FRAMES = 12
LEFT = "left: "
"""First word of the line that a process writes which ends on purpose, to be replaced by a fresh one."""
HUNG = "hung: "


@dataclass(frozen=True, kw_only=True)
class Death:
    """The end of a process."""

    code: str
    """``left`` (on purpose), ``hung`` or ``crashed``."""
    reason: str
    """As a sentence that begins with a verb."""
    stack: str
    """Python's frames, innermost first; empty where none was left."""

    @property
    def place(self) -> str:
        """The innermost frame, as `` at test_a.py:7``; empty where there is none."""
        found = re.search(r'File "(.*)", line (\d+)', self.stack)
        return f" at {Path(found[1]).name}:{found[2]}" if found else ""


def find_out(pid: int, file: Path) -> Death:
    """How the child ``pid`` died, which wrote its last words to ``file``. The child stays for its parent to reap."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    words = [line for line in text.splitlines() if line.startswith((LEFT, HUNG))]
    if words and words[-1].startswith(LEFT):
        return Death(code="left", reason=words[-1].removeprefix(LEFT), stack="")
    if words:
        return Death(code="hung", reason=words[-1].removeprefix(HUNG), stack=innermost(text))
    return Death(code="crashed", reason=_ended(pid), stack=innermost(text))


def innermost(text: str) -> str:
    """The frames of the thread that faulthandler's dump is about."""
    blocks = re.split(r"^(?=(?:Current thread|Thread|Stack) )", text, flags=re.MULTILINE)
    dumped = [each for each in blocks if each.startswith(("Current thread", "Thread", "Stack"))]
    chosen = next((each for each in dumped if each.startswith("Current thread")), dumped[-1] if dumped else "")
    frames = [line for line in chosen.splitlines() if line.startswith("  File ")]
    return "\n".join(frames[:SHOWN_FRAMES])


def _ended(pid: int) -> str:
    """By which signal or with which exit code; what the kernel has forgotten cannot be told."""
    if not pid or not hasattr(os, "waitid"):
        return "died"
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        try:
            found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return "died"
        if found is not None:
            killed = found.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
            return (
                f"was ended by {signal_name(found.si_status)}" if killed else f"ended with exit code {found.si_status}"
            )
        time.sleep(GLANCE_SECONDS)
    return "closed its connection without ending"


def signal_name(number: int) -> str:
    """``SIGSEGV`` of 11, with what often sends it."""
    try:
        name = signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"
    return f"{name} (often the kernel, for want of memory)" if name == "SIGKILL" else name
