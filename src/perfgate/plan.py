"""What a session would do: which benchmarks run, which are skipped and why, and how long it takes. Pure."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

State = Literal["run", "unseen", "skip", "broken"]
"""It runs; it runs as far as one can tell without running it; it is skipped; it fails before it measures."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One benchmark."""

    name: str
    """pytest's node id."""
    group: str
    state: State
    reason: str = ""
    """Why it does not run, or what to know of it."""
    seconds: float | None = None
    """What measuring it took last time; ``None`` where nobody knows."""

    @property
    def runs(self) -> bool:
        """Whether it would be measured."""
        return self.state in ("run", "unseen")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """How long some benchmarks take."""

    seconds: float | None
    """``None`` where no benchmark of the session has ever been measured here."""
    guessed: int
    """How many of them have no time of their own and count as the median of those that have."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A whole session."""

    benchmarks: Sequence[Planned]
    others: int = 0
    """Tests that are no benchmarks: they would run, too, and are not looked into."""
    budget_seconds: float | None = None
    """What the settings allow a benchmark to take: the guess where none was ever measured here."""

    @property
    def running(self) -> list[Planned]:
        """Those that would be measured."""
        return [each for each in self.benchmarks if each.runs]

    def groups(self) -> Iterator[tuple[str, list[Planned]]]:
        """Benchmarks by group, in the order in which groups appear."""
        for group in dict.fromkeys(each.group for each in self.benchmarks):
            yield group, [each for each in self.benchmarks if each.group == group]

    def estimate(self, benchmarks: Collection[Planned]) -> Estimate:
        """How long those of ``benchmarks`` take that run."""
        running = [each for each in benchmarks if each.runs]
        known = [each.seconds for each in running if each.seconds is not None]
        everywhere = [each.seconds for each in self.benchmarks if each.seconds is not None]
        guessed = len(running) - len(known)
        if not guessed:
            return Estimate(seconds=sum(known), guessed=0)
        each = statistics.median(everywhere) if everywhere else self.budget_seconds
        return Estimate(seconds=None if each is None else sum(known) + guessed * each, guessed=guessed)

    def reasons(self, state: State) -> list[tuple[str, int]]:
        """Why benchmarks are in this state, the most frequent reason first."""
        return Counter(each.reason for each in self.benchmarks if each.state == state).most_common()
