"""Progress on standard error: lines, and on a terminal the benchmark that runs."""

from __future__ import annotations

import sys

from perfgate.pairs.progress import Progress
from perfgate.report.numbers import duration

CLEAR = "\r\x1b[2K"
LONGEST = 70  # characters of a name that is overwritten by the next


class Lines(Progress):
    """A line per event."""

    def expected(self, benchmarks: int, pairs: int, seconds: float | None) -> None:
        """How long it will take, if that is known."""
        what = f"{benchmarks} benchmarks, {pairs} pairs of processes"
        if seconds is None:
            self.note(f"{what}; how long that takes is known after the first pair")
        else:
            self.note(f"{what}: about {duration(seconds)}, and more for what may have changed")

    def begins(self, name: str) -> None:
        """Overwritten by the next, and only where somebody watches."""
        if sys.stderr.isatty():
            print(f"{CLEAR}perfgate: {name:.{LONGEST}}", end="", file=sys.stderr, flush=True)

    def pair_done(self, number: int, pairs: int, seconds: float) -> None:
        """With the time left."""
        left = seconds / number * (pairs - number)
        more = f"; about {duration(left)} to go" if number < pairs else ""
        self.note(f"pair {number} of {pairs} after {duration(seconds)}{more}")

    def second_stage(self, candidates: int, pairs: int) -> None:
        """How many, and what decides."""
        self.note(f"{candidates} may have changed: {pairs} fresh pairs of them decide")

    def fresh_pair_done(self, number: int, pairs: int) -> None:
        """Counted."""
        self.note(f"fresh pair {number} of {pairs}")

    def note(self, text: str) -> None:
        """A line of its own."""
        print(f"{CLEAR if sys.stderr.isatty() else ''}perfgate: {text}", file=sys.stderr, flush=True)
