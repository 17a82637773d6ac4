"""How much do two processes that run the same code differ, and what makes them differ less?

Measures base against itself with ``perfgate ab``'s own code, ten small real steps in pairs of fresh processes: with and
without huge pages for malloc, rounds one process after the other and alternating (A B B A). Identical code: every
difference is noise. Beside it, how much one process differs from another, as it is and with the canary's reading taken
off. Run it on a quiet machine:

    python tools/pair_noise.py --pairs 8

A pair takes about 25 s on two cores, so the table of 4 x 8 pairs takes about 14 minutes.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from evidence_project import make_project
from perfgate.pairs.ab import compare_commits
from perfgate.pairs.plan import FIRST_PAIRS, FRESH_PAIRS, Wanted
from perfgate.pairs.progress import Progress
from perfgate.results.ledger import Noise
from perfgate.settings import Settings
from perfgate.verdict.calibration import between_processes, calibrate
from perfgate.verdict.paired import Pair, series_of

METRIC = "wall_seconds"
BEYOND = 0.03  # the change a gate should see
CONFIGURATIONS = [(pages, alternating) for pages in ("off", "on") for alternating in (False, True)]


def two_pairs(project: Path, *, huge_pages: str, alternating: bool) -> list[Pair]:
    """Two pairs of base with itself; base starts first in one, second in the other."""
    os.environ["GLIBC_TUNABLES"] = f"glibc.malloc.hugetlb={int(huge_pages == 'on')}"
    wanted = Wanted(project=project, base="base", head="base", first=2, fresh=0, alternating=alternating)
    return compare_commits(wanted, Progress()).first


def row(huge_pages: str, pairs: list[Pair], *, alternating: bool) -> str:
    """One line of the table, over all benchmarks and pairs."""
    series, _ = series_of(pairs)
    ratios = [ratio for each in series.values() if each.question.metric == METRIC for ratio in each.values]
    noise = noises(pairs)
    pair = sorted(each.pair_deviation for each in noise)
    raw = statistics.median(each.process_deviation for each in noise)
    times = [each.question for each in series.values() if each.question.metric == METRIC]
    process = statistics.median(between_processes(pairs, each, canary=True)[0] for each in times)
    beyond = sum(abs(ratio) > BEYOND for ratio in ratios)
    rounds = "alternating" if alternating else "in turn"
    return (
        f"{huge_pages:<10}  {rounds:<11}  {statistics.median(pair):>6.1%}  {pair[-1]:>6.1%}"
        f"  {statistics.mean(ratios):>+6.1%}  {beyond:>4} of {len(ratios):<4}  {raw:>7.1%}  {process:>11.1%}"
    )


def noises(pairs: list[Pair]) -> list[Noise]:
    """Of the times."""
    found = calibrate(pairs, Settings(), first=FIRST_PAIRS, fresh=FRESH_PAIRS)
    return [each.noise for each in found if each.noise.metric == METRIC]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=8, help="pairs of processes per row, even (default 8)")
    arguments = parser.parse_args()
    started = time.perf_counter()
    found: dict[tuple[str, bool], list[Pair]] = {each: [] for each in CONFIGURATIONS}
    with tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder), {})
        for _ in range(arguments.pairs // 2):  # rows in turn, so that the machine's mood is spread over all
            for pages, alternating in CONFIGURATIONS:
                found[pages, alternating] += two_pairs(Path(folder), huge_pages=pages, alternating=alternating)
    print(f"{arguments.pairs} pairs of processes, 10 benchmarks, {(time.perf_counter() - started) / 60:.0f} min")
    print("                         standard deviation of a pair                    of a process")
    print("huge pages  rounds       median   worst    mean  beyond 3 %     alone  less canary")
    for (pages, alternating), each in found.items():
        print(row(pages, each, alternating=alternating))


if __name__ == "__main__":
    main()
