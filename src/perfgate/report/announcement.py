"""What is said before measuring: the machine, the baseline that was found or why there is none, the expected time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.report import numbers
from perfgate.results.baseline import Baseline

if TYPE_CHECKING:
    from perfgate.wishes import Wishes


def announce(wishes: Wishes, baseline: Baseline, machine: str, expected: int) -> Iterator[str]:
    """Lines for the terminal."""
    yield f"perfgate: {expected} benchmarks on {machine}"
    for problem in baseline.problems:
        yield f"perfgate: passed over: {problem}"
    if not wishes.compare:
        return
    if baseline.absence:
        yield f"perfgate: {baseline.absence}"
        yield (
            "perfgate: nothing will be judged; this run becomes the baseline of the next"
            if wishes.save
            else ("perfgate: nothing will be judged. Make a baseline: pytest benches/")
        )
    for run in baseline.runs:
        dirty = ", dirty tree" if run.commit.get("dirty") == "yes" else ""
        count = f"{len(run.records)} benchmarks"
        yield f"perfgate: baseline {Path(run.source).name} (commit {run.commit['id'][:12]}{dirty}, {count})"
    if baseline.seconds():
        yield f"perfgate: measuring those took {numbers.duration(baseline.seconds())}"
