"""What is said before measuring: the machine, the baseline that was found or why there is none, the expected time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.report import numbers
from perfgate.results.baseline import Baseline

if TYPE_CHECKING:
    from perfgate.wishes import Wishes


ENOUGH_RUNS = 10  # from here on the history itself tells how much it varies
SHOWN_RUNS = 3  # of those that the baseline is made of


def announce(
    wishes: Wishes,
    baseline: Baseline,
    machine: str,
    names: Collection[str],
    *,
    calibrated: bool = True,
    unfinished: Sequence[str] = (),
) -> Iterator[str]:
    """Lines for the terminal; ``names`` are the benchmarks that will run, ``calibrated`` whether there is a ledger.

    ``unfinished`` are the names of journals that killed runs left, newest first.
    """
    yield f"perfgate: {len(names)} benchmarks on {machine}"
    if unfinished and wishes.save:
        more = f" and {len(unfinished) - 1} older" if len(unfinished) > 1 else ""
        yield f"perfgate: a run was killed and left {unfinished[0]}{more}"
        yield "perfgate: go on with it: --perfgate-resume; or make a run of what it has: perfgate recover"
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
    used = [baseline.newest[name] for name in names if name in baseline.newest]
    counts = Counter(run.source for _, run in used)
    sources = [(run, counts[run.source]) for run in baseline.runs if run.source in counts]
    for run, count in sources[:SHOWN_RUNS]:
        dirty = ", dirty tree" if run.commit.get("dirty") == "yes" else ""
        yield f"perfgate: baseline {Path(run.source).name} (commit {run.commit['id'][:12]}{dirty}): {count} benchmarks"
    if len(sources) > SHOWN_RUNS:
        yield f"perfgate: and {len(sources) - SHOWN_RUNS} older runs"
    yield from (f"perfgate: {note}" for note in baseline.notes)
    if len(baseline.runs) > 1:
        yield f"perfgate: the history is {len(baseline.runs)} runs of this machine"
    if 0 < len(baseline.runs) < ENOUGH_RUNS and not calibrated:
        yield "perfgate: so few runs show only large changes of time; perfgate calibrate makes smaller ones visible"
    if used:
        seconds = sum(record.seconds for record, _ in used)
        yield f"perfgate: measuring those {len(used)} took {numbers.duration(seconds)}"
