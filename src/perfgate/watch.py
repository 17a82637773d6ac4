"""Watch this process from outside: a limit per benchmark that holds for hangs in native code, too."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfgate import monitor

LIMIT_SECONDS = 900.0
"""For a benchmark of which nothing is known: longer than any compiles."""
SHORTEST_SECONDS = 120.0
TIMES_THE_LAST = 10.0
"""A benchmark may take so many times what it took in the baseline: a busy machine must not look like a hang."""


def limit_of(past_seconds: float | None, wished: float | None) -> float:
    """Seconds that a benchmark may take: what was wished, else by what it took before, else 900."""
    if wished is not None:
        return wished
    if not past_seconds:
        return LIMIT_SECONDS
    return max(SHORTEST_SECONDS, TIMES_THE_LAST * past_seconds)


class Watch:
    """The measuring process's end."""

    def __init__(self, stack: Path, terminal: int | None) -> None:
        """Start the monitor; ``stack`` is where stacks are written.

        ``terminal`` is a descriptor to tell on, ``None`` where a controller tells.
        """
        self._file = stack.open("a", encoding="utf-8")
        self._number = getattr(signal, "SIGRTMIN", signal.SIGUSR2 - 7) + 7
        faulthandler.register(self._number, file=self._file, all_threads=True)
        controller = os.getppid() if terminal is None else 0
        numbers = map(str, (os.getpid(), int(self._number), controller))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", monitor.__file__, *numbers, str(stack)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if terminal is None else terminal,
            start_new_session=True,  # the terminal's Ctrl-C is not for it
        )

    def begin(self, name: str, seconds: float) -> None:
        """A benchmark begins that may take so long."""
        self._tell({"begin": name, "seconds": seconds})

    def end(self) -> None:
        """It has ended, or a debugger has the word."""
        self._tell({"end": True})

    def journal(self, file: Path) -> None:
        """Results are kept in ``file``."""
        self._tell({"journal": str(file)})

    def close(self) -> None:
        """All is well: let the monitor end."""
        self._tell({"bye": True})
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self._process.wait()
        faulthandler.unregister(self._number)
        self._file.close()

    def _tell(self, message: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):  # somebody killed the monitor: measuring goes on without
            self._process.stdin.write(json.dumps(message).encode() + b"\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
