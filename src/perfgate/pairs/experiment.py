"""Pairs of processes, one after the other: everything a stage measures, whatever dies in it."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from perfgate.errors import ComparisonError
from perfgate.pairs.plan import Starter
from perfgate.pairs.proof import Proof
from perfgate.pairs.schedule import take_turns
from perfgate.pairs.side import Death, Side
from perfgate.results.record import Process, Record
from perfgate.verdict.levels import canary_log
from perfgate.verdict.paired import Pair

MOST_RESTARTS = 5  # of one pair, after deaths
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "SIGKILL")


@dataclass
class Heard:
    """What the processes of one side told, over all pairs."""

    ids: dict[str, None] = field(default_factory=dict)
    """Benchmarks collected."""
    problems: dict[str, str] = field(default_factory=dict)
    """Files that could not be collected, and why."""
    outcomes: dict[str, dict[str, str]] = field(default_factory=dict)
    """Why a benchmark had no record in some pair."""
    deaths: dict[str, Death] = field(default_factory=dict)
    """Benchmarks that the process did not survive."""
    about: dict[str, Any] = field(default_factory=dict)
    """State of the last process and what it imported."""
    machine: dict[str, Any] = field(default_factory=dict)
    loaded: dict[str, str] = field(default_factory=dict)
    """Names and files of the modules that it had loaded in the end, but for Python's own."""
    own: set[str] | None = None
    """Benchmarks in this side's own suite; ``None`` where it is the same as the other's."""

    def reasons(self) -> Iterator[tuple[str, str]]:
        """Benchmarks without a record, and why."""
        yield from ((name, each["reason"]) for name, each in self.outcomes.items())
        yield from ((name, each.reason) for name, each in self.deaths.items())


@dataclass
class Experiment:
    """Measures pairs."""

    starters: Sequence[Starter]
    """Of base and head."""
    prove: Proof
    say: Callable[[str], None]
    """Shows a line of progress."""
    tick: Callable[[str], None]
    """Called before each benchmark with its id."""
    expect: Callable[[Side, Sequence[str]], None]
    """Called once, with a process that has collected and the benchmarks to run."""
    alternating: bool
    heard: dict[str, Heard] = field(default_factory=lambda: {"base": Heard(), "head": Heard()})
    alone: set[str] = field(default_factory=set)
    """Benchmarks that do not fit beside their other side, and are measured one after the other."""
    met: bool = False
    """Whether a process has collected yet."""
    measured: bool = False
    """Whether one has measured anything yet."""
    deaths: int = 0
    """Processes that died."""
    working_seconds: float = 0.0
    """How long measuring processes held the turn."""

    def pair(self, number: int, only: Collection[str] | None = None) -> Pair:
        """One pair: all benchmarks, or those in ``only``, in an order of its own, the same on both sides.

        Raises:
            ComparisonError: where a process cannot even start, or imported other code than it should.
        """
        starters = self.starters if number % 2 == 0 else self.starters[::-1]
        records: dict[str, dict[str, Record]] = {"base": {}, "head": {}}
        for group in [starters] if self.alternating else [[each] for each in starters]:
            self._measure(group, number, lambda name: name not in self.alone and (not only or name in only), records)
        if self.alternating:
            self._set_crowded_apart()
            late = {name for name in self.alone if not only or name in only}
            for starter in starters if late else ():
                self._measure([starter], number, late.__contains__, records)
        return Pair(base=records["base"], head=records["head"], canaries=self._canaries())

    def _canaries(self) -> dict[str, float]:
        """What the canary took in the last process of each side, of those that read it."""
        processes = {name: Process(**each.about["process"]) for name, each in self.heard.items() if each.about}
        return {name: canary_log(each, each.canary) for name, each in processes.items() if each.canary}

    def _measure(
        self,
        group: Sequence[Starter],
        number: int,
        wanted: Callable[[str], bool],
        records: Mapping[str, dict[str, Record]],
    ) -> None:
        """Processes that live together; started again for the rest where one of them dies."""
        done: set[str] = set()

        def left(name: str) -> bool:
            return wanted(name) and name not in done and not any(name in each.deaths for each in self.heard.values())

        for _ in range(1 + MOST_RESTARTS):
            known = self.known
            if known and not any(map(left, known)):
                return
            sides = self._session(group, number, left)
            for side in sides:
                self._hear(side, records[side.launch.name])
            if not any(side.death and side.ids for side in sides):  # one that collected nothing would die again
                return
            done |= set.intersection(*(set(side.records) | set(side.outcomes) for side in sides))

    @property
    def known(self) -> list[str]:
        """Benchmarks that either side has collected."""
        return list(dict.fromkeys(name for each in self.heard.values() for name in each.ids))

    def _session(self, group: Sequence[Starter], number: int, left: Callable[[str], bool]) -> list[Side]:
        with ExitStack() as stack:
            sides = [stack.enter_context(Side(each.launch(number))) for each in group]
            for side in sides:
                self._meet(side)
            names = sorted({name for side in sides for name in side.ids if left(name)})
            if not self.met:
                self.met = True
                self.expect(sides[0], names)
            random.Random(number).shuffle(names)  # noqa: S311 - an order, not a secret
            take_turns(sides, names, self.tick)
        return sides

    def _meet(self, side: Side) -> None:
        """What a process says before it measures."""
        self._check_alive(side)
        heard = self.heard[side.launch.name]
        heard.ids.update(dict.fromkeys(side.ids))
        heard.problems.update(side.problems)
        heard.machine = side.machine or heard.machine
        machines = [each.machine.get("hard") for each in self.heard.values() if each.machine]
        if any(each != machines[0] for each in machines):
            raise ComparisonError(f"base and head do not see the same machine: {machines[0]} and {machines[-1]}")

    def _check_alive(self, side: Side) -> None:
        """A process that can collect nothing is no accident, as long as none has measured anything."""
        if side.death and not side.ids and not self.measured:
            raise ComparisonError(f"nothing could be measured: {side.death.reason}")

    def _hear(self, side: Side, records: dict[str, Record]) -> None:
        heard = self.heard[side.launch.name]
        self._check_alive(side)
        self.prove(side)
        records.update(side.records)
        self.measured = self.measured or bool(side.records)
        heard.outcomes.update(side.outcomes)
        heard.about = side.about or heard.about
        heard.loaded.update({**side.installed, **side.modules})
        self.working_seconds += side.working_seconds
        self.deaths += side.death is not None
        if side.death and side.death.at:
            heard.deaths[side.death.at] = side.death
            self.say(f"{side.launch.name} died at {side.death.at}; the pair goes on without it")
        elif side.death:
            self.say(f"a process ended before its first benchmark: {side.death.reason}")

    def _set_crowded_apart(self) -> None:
        """Benchmarks that failed for want of memory beside their other side get another chance without it."""
        crowded = {
            name
            for each in self.heard.values()
            for name, reason in each.reasons()
            if any(sign in reason for sign in OUT_OF_MEMORY)
        } - self.alone
        for each in self.heard.values() if crowded else ():
            each.outcomes = {name: found for name, found in each.outcomes.items() if name not in crowded}
            each.deaths = {name: found for name, found in each.deaths.items() if name not in crowded}
        if crowded:
            self.alone |= crowded
            self.say(f"{len(crowded)} benchmarks do not fit into memory together: measured one after the other")
