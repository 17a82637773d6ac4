"""What a session has measured so far, told and heard as events.

A worker tells its controller, a session its journal, and a journal the session that resumes it: all in the same words,
which :data:`perfgate.results.journal.EVENTS` lists.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perfgate.results.document import parse_record
from perfgate.results.journal import check_event
from perfgate.results.record import Measurement, Process, Record
from perfgate.verdict.verdicts import Verdict

TWICE = 2
KILLERS = {"hung", "crashed", "died-twice"}
"""Codes of benchmarks that would only do again what they did."""
DIED_TWICE = "died-twice", "the session ended twice while it ran: run it by itself, with -n 1"
Sink = Callable[[Mapping[str, Any]], object]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A benchmark with its numbers."""

    record: Record
    key: str
    """Of the process that measured it."""
    stock: Mapping[str, Any] | None
    """pytest-benchmark's document of it."""


@dataclass
class Harvest:
    """Numbers, and reasons where there are none."""

    sink: Sink = lambda _: None
    """Is told every event before anything else happens: when it returns, the event is safe."""
    key: str = field(default_factory=lambda: secrets.token_hex(4))
    """Of this process."""
    processes: dict[str, Process] = field(default_factory=dict)
    finished: dict[str, Finished] = field(default_factory=dict)
    outcomes: dict[str, Verdict] = field(default_factory=dict)
    """Benchmarks without a number: failed, skipped or unjudged, with their reasons."""
    starts: dict[str, int] = field(default_factory=dict)
    """How often each benchmark was begun and not ended."""

    @property
    def empty(self) -> bool:
        """Whether nothing came of any benchmark."""
        return not (self.finished or self.outcomes)

    @property
    def records(self) -> tuple[Record, ...]:
        """All records. Where several processes measured, samples stand at the place of theirs."""
        keys = list(self.processes)
        return tuple(_placed(each, keys) for each in self.finished.values())

    @property
    def stock(self) -> list[Mapping[str, Any]]:
        """pytest-benchmark's documents of them."""
        return [each.stock for each in self.finished.values() if each.stock is not None]

    def start(self, name: str) -> None:
        """A benchmark begins."""
        self._tell({"event": "start", "id": name})

    def measured_by(self, process: Process) -> None:
        """What this process is like; told once, before its first record."""
        if self.key not in self.processes:
            self._tell({"event": "process", "key": self.key, "process": dataclasses.asdict(process)})

    def take(self, record: Record, stock: Mapping[str, Any] | None) -> None:
        """A benchmark has its numbers."""
        self.sink({"event": "record", "key": self.key, "record": dataclasses.asdict(record), "stock": stock})
        self._finish(Finished(record=record, key=self.key, stock=stock))

    def give_up(self, verdict: Verdict) -> None:
        """A benchmark has none."""
        told = {key: getattr(verdict, key) for key in ("id", "word", "code", "reason")}
        self._tell({"event": "outcome", **told})

    def stopped(self) -> None:
        """The session was asked to end: what it was at is not to blame."""
        self._tell({"event": "stopped"})

    def _tell(self, event: Mapping[str, Any]) -> None:
        self.sink(event)
        self._enter(event)

    def hear(self, event: Any, source: str, *, told: bool = True) -> None:
        """An event from somewhere else; it is passed on where ``told``.

        Raises:
            UnreadableRun: where it is none.
            UnsavableRun: where it could not be kept.
        """
        checked = check_event(event, source)
        if told:
            self.sink(checked)
        self._enter(checked)

    def begin_again(self, *, patient: bool = False) -> None:
        """What failed is to be tried again; benchmarks in which the session died twice are not begun a third time.

        ``patient`` tries also those again that hung.
        """
        kept = KILLERS - ({"hung"} if patient else set())
        self.outcomes = {name: each for name, each in self.outcomes.items() if each.code in kept}
        code, reason = DIED_TWICE
        for name, count in list(self.starts.items()):
            if count >= TWICE and name not in self.outcomes:
                self.give_up(Verdict(id=name, word="unjudged", code=code, reason=reason))

    def _enter(self, event: Mapping[str, Any]) -> None:
        enter = getattr(self, f"_enter_{event['event']}", None)
        if enter:
            enter(event)

    def _enter_process(self, event: Mapping[str, Any]) -> None:
        known = {each.name for each in dataclasses.fields(Process)}
        self.processes[event["key"]] = Process(**{key: each for key, each in event["process"].items() if key in known})

    def _enter_start(self, event: Mapping[str, Any]) -> None:
        self.starts[event["id"]] = self.starts.get(event["id"], 0) + 1

    def _enter_stopped(self, _: Mapping[str, Any]) -> None:
        self.starts.clear()

    def _enter_record(self, event: Mapping[str, Any]) -> None:
        record = parse_record(event["record"], "the journal")
        self._finish(Finished(record=record, key=event["key"], stock=event.get("stock")))

    def _finish(self, finished: Finished) -> None:
        name = finished.record.id
        self.finished[name] = finished
        self.outcomes.pop(name, None)  # an earlier attempt failed
        self.starts.pop(name, None)

    def _enter_outcome(self, event: Mapping[str, Any]) -> None:
        name = event["id"]
        self.outcomes[name] = Verdict(**{key: event[key] for key in ("id", "word", "code", "reason")})
        self.finished.pop(name, None)  # its teardown failed
        self.starts.pop(name, None)


def _placed(finished: Finished, keys: list[str]) -> Record:
    """The record with its samples at the place of the process that took them."""
    if len(keys) < 2 or finished.key not in keys:
        return finished.record
    place = keys.index(finished.key)

    def placed(each: Measurement) -> Measurement:
        if each.kind == "counted" or not each.samples:
            return each
        return dataclasses.replace(each, samples=((),) * place + each.samples[:1] + ((),) * (len(keys) - place - 1))

    return dataclasses.replace(
        finished.record, measurements=tuple(placed(each) for each in finished.record.measurements)
    )
