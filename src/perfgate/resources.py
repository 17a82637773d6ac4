"""What a session holds while it measures, and lets go of in the end: devices, signals, and the process that watches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from perfgate import locks
from perfgate.signals import Signals
from perfgate.watch import Watch


@dataclass
class Resources:
    """Nothing is held before it is asked for."""

    signals: Signals = field(default_factory=Signals)
    watch: Watch | None = None
    _held: ExitStack = field(default_factory=ExitStack)

    def occupy(self, devices: Iterable[str], wait_seconds: float, say: Callable[[str], object]) -> None:
        """Keep other suites from the devices, to the session's end.

        Raises:
            DeviceBusy: where one measures there, with who it is.
        """
        self._held.enter_context(locks.hold(devices, wait_seconds, say))

    def watch_over(self, terminal: int) -> None:
        """Watch this process, which nobody controls, and tell on the descriptor ``terminal`` where it hangs or dies."""
        folder = self._held.enter_context(TemporaryDirectory(prefix="perfgate-"))
        self.watch = Watch(Path(folder) / "stack", terminal)
        self.signals.install()

    def begin(self, name: str, limit_seconds: float) -> None:
        """A benchmark begins that may take so long."""
        if self.watch:
            self.watch.begin(name, limit_seconds)

    def end(self) -> None:
        """It has ended, or a debugger has the word."""
        if self.watch:
            self.watch.end()

    def close(self) -> None:
        """Let go of everything."""
        self.signals.restore()
        if self.watch:
            self.watch.close()
            self.watch = None
        self._held.close()
