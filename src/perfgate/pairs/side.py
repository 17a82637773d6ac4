"""One measuring process, seen from its controller: it works when told to, and is heard out or given up on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import Pipe
from pathlib import Path
from typing import IO, Any, Self

from perfgate.deaths import innermost, signal_name
from perfgate.errors import UnreadableRun
from perfgate.results.document import parse_record
from perfgate.results.record import Record
from perfgate.turns import PROTOCOL

GRACE_SECONDS = 5.0  # between asking a process to end and killing it
GLANCE_SECONDS = 1.0  # between looks at whether a silent process is still there
SHOWN_LINES = 12  # of the output of a process that died


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How to start a measuring process."""

    name: str
    """``base``, ``head`` or what else to call it."""
    command: Sequence[str]
    """Up to the option that names the descriptor, which is appended."""
    folder: Path
    environment: Mapping[str, str]
    log: Path
    """Where its output goes."""
    limit_seconds: float
    """Longest work without handing back the turn."""


@dataclass(frozen=True)
class Death:
    """How a process ended before its time."""

    at: str
    """Benchmark it worked on; empty where it had not begun one."""
    code: str
    """``crashed``, ``hung`` or ``protocol``."""
    reason: str


@dataclass
class Side:
    """A process that takes turns. Its results arrive while it works and stay when it dies."""

    launch: Launch
    ids: list[str] = field(default_factory=list)
    """Benchmarks collected."""
    problems: dict[str, str] = field(default_factory=dict)
    """Files that could not be collected, and why."""
    machine: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    """State of the process and what it imported."""
    modules: dict[str, str] = field(default_factory=dict)
    """Names and files of the modules it had loaded in the end, but for those of Python and of installed packages."""
    installed: dict[str, str] = field(default_factory=dict)
    """Those of installed packages."""
    records: dict[str, Record] = field(default_factory=dict)
    outcomes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Why a benchmark has no record: word, code and reason."""
    death: Death | None = None
    working_seconds: float = 0.0
    """How long it held the turn."""
    _resources: ExitStack = field(default_factory=ExitStack)
    _process: subprocess.Popen[bytes] = field(init=False)
    _started: bool = False

    def __enter__(self) -> Self:
        """Start the process and wait until it has collected; where it cannot be started, it is dead."""
        self._message: dict[str, Any] = {}
        with ExitStack() as stack:
            ours, theirs = map(stack.enter_context, Pipe())
            output = stack.enter_context(self.launch.log.open("ab"))
            try:
                self._process = self._start(theirs.fileno(), output)
            except OSError as error:
                what = error.filename or self.launch.command[0]
                self.death = Death("", "crashed", f"{self.launch.name} cannot be started: {what}: {error.strerror}")
                return self
            self._started = True
            theirs.close()
            self._resources = stack.pop_all()
        self._connection = ours
        self._listen()
        return self

    def _start(self, descriptor: int, output: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.launch.command, f"--perfgate-turns={descriptor}"],
            cwd=self.launch.folder,
            env=dict(self.launch.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[descriptor],
            start_new_session=True,  # so that its loader workers can be ended with it
        )

    def __exit__(self, *_: object) -> None:
        """End the process, whatever it is doing."""
        self._resources.close()
        self._end()

    def at(self, place: str, name: str = "") -> bool:
        """Whether it waits at ``place``, of the benchmark ``name`` if given."""
        return self._message.get("at") == place and (not name or self._message.get("id") == name)

    @property
    def wished_rounds(self) -> int:
        """What it asked for at "agree"."""
        return int(self._message["rounds"])

    def go(self, **answer: Any) -> None:
        """Give it the turn, and wait until it hands it back, ends or hangs."""
        with contextlib.suppress(OSError):  # dead: listening will tell
            self._connection.send_bytes(json.dumps(answer).encode())
        self._listen()

    def finish(self) -> None:
        """Let it end by itself."""
        if self.at("finish"):
            started = time.perf_counter()
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # it is ended in any case
                self._connection.send_bytes(b"{}")
                self._process.wait(self.launch.limit_seconds)
            self.working_seconds += time.perf_counter() - started

    def _listen(self) -> None:
        """Take messages until one waits for an answer."""
        name = str(self._message.get("id", ""))
        started = time.perf_counter()
        self._message = {}
        while not self.death and not self._message:
            try:
                if self._connection.poll(GLANCE_SECONDS):
                    self._take(json.loads(self._connection.recv_bytes()), name)
                elif self._process.poll() is not None and not self._connection.poll():
                    raise EOFError
                elif time.perf_counter() - started > self.launch.limit_seconds:
                    limit = f"{self.launch.limit_seconds:g} s"
                    self._give_up("hung", f"worked for more than {limit} without an end (--limit){self._stack()}", name)
            except (EOFError, OSError):
                self._give_up("crashed", self._how_it_ended(), name)
            except (ValueError, KeyError, TypeError, UnreadableRun) as error:
                self._give_up("protocol", f"sent what is no message: {type(error).__name__}: {error}", name)
        self.working_seconds += time.perf_counter() - started

    def _take(self, message: dict[str, Any], name: str) -> None:
        if "at" not in message:
            self._hear(message["tell"], message["content"])
            return
        if message["at"] == "collected":
            if message["protocol"] != PROTOCOL:
                reason = (
                    f"speaks protocol {message['protocol']} of perfgate, and this is {PROTOCOL}: update one of them"
                )
                self._give_up("protocol", reason, name)
                return
            self.ids, self.problems = list(message["ids"]), dict(message["problems"])
            self.machine = dict(message["machine"])
        self._message = message

    def _hear(self, kind: str, content: dict[str, Any]) -> None:
        if kind == "about":
            self.about = dict(content)
        elif kind == "modules":
            self.modules, self.installed = dict(content["own"]), dict(content["installed"])
        elif kind == "outcome":
            self.outcomes[content["id"]] = {key: str(content[key]) for key in ("id", "word", "code", "reason")}
        else:
            record = parse_record(content, f"what {self.launch.name} sent")
            self.records[record.id] = record

    def _give_up(self, code: str, reason: str, name: str = "") -> None:
        self._end()
        self._message = {}
        self.death = Death(name, code, f"{self.launch.name} {reason}")

    def _how_it_ended(self) -> str:
        try:
            status = self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its connection without ending"
        ended = f"was ended by {signal_name(-status)}" if status < 0 else f"ended with exit code {status}"
        lines = self.launch.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        tail = [line for line in lines if line.strip()][-SHOWN_LINES:]
        return "\n  ".join([f"{ended}; its last lines:", *tail]) if tail else ended

    def _stack(self) -> str:
        """Where a process that hangs is, in native code, too: pytest has faulthandler write it when it is aborted."""
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.kill(self._process.pid, signal.SIGABRT)
            self._process.wait(GRACE_SECONDS)
        text = self.launch.log.read_text(encoding="utf-8", errors="replace")
        frames = innermost(text.rpartition("Fatal Python error: Aborted")[2])
        return f"; it was at:\n{frames}" if frames else ""

    def _end(self) -> None:
        """Ask the process and everything it started to end, then make it."""
        if not self._started:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None and number == signal.SIGTERM:
                continue
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(GRACE_SECONDS)
