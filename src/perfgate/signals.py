"""Signals that ask a session to end: it saves what it has, then ends with the signal's exit status."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Any

EXIT_STATUS = 128
"""Exit status of a process that a signal ended is this plus the signal's number, as shells have it."""
GRACEFUL = [each for each in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, each)]


class Signals:
    """Handlers from :meth:`install` to :meth:`restore`. The first signal interrupts, the second ends at once."""

    def __init__(self) -> None:
        """Nothing is installed yet."""
        self.received = 0
        """Number of the first signal; 0 where there was none."""
        self._before: Mapping[int, Any] = {}

    @property
    def exit_status(self) -> int:
        """Of a session that was ended by SIGTERM or SIGHUP; 0 where pytest's own status stands."""
        return EXIT_STATUS + self.received if self.received not in (0, signal.SIGINT) else 0

    def install(self) -> None:
        """Take the signals over, but for those that somebody told this process to ignore (``nohup``)."""
        if threading.current_thread() is not threading.main_thread() or self._before:
            return  # pytest runs in a thread of another program, whose signals these are
        numbers = [getattr(signal, name) for name in GRACEFUL]
        wanted = [each for each in numbers if signal.getsignal(each) not in (signal.SIG_IGN, None)]
        self._before = {each: signal.signal(each, self._handle) for each in wanted}

    def restore(self) -> None:
        """Put back what was there before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.received:  # results are in the journal: nothing is lost by ending without cleaning up
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.received = number
        raise KeyboardInterrupt
