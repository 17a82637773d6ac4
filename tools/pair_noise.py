"""How much do two processes that run the same code differ, and what makes them differ less?

Measures base against itself with ``perfgate ab``'s own code, ten small real steps in pairs of fresh processes: with and
without huge pages for malloc, rounds one process after the other and alternating (A B B A). Identical code: every
difference is noise. Run it on a quiet machine:

    python tools/pair_noise.py --pairs 8

A pair takes about 25 s on two cores, so the table of 4 x 8 pairs takes about 14 minutes.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from pathlib import Path

from evidence_project import make_project
from perfgate.pairs.ab import Voice, compare_commits
from perfgate.pairs.plan import Wanted
from perfgate.verdict.paired import series_of

BEYOND = 0.03  # the change a gate should see
CONFIGURATIONS = [(pages, alternating) for pages in ("off", "on") for alternating in (False, True)]


def log_ratios(project: Path, *, huge_pages: str, alternating: bool) -> list[list[float]]:
    """Log ratios of times of two pairs: one list per benchmark, 0 without noise."""
    os.environ["GLIBC_TUNABLES"] = f"glibc.malloc.hugetlb={int(huge_pages == 'on')}"
    wanted = Wanted(project=project, base="base", head="base", first=2, fresh=0, alternating=alternating)
    series, _ = series_of(compare_commits(wanted, Voice(lambda _: None)).first)
    return [each.values for each in series.values() if each.question.metric == "wall_seconds"]


def row(huge_pages: str, found: list[list[float]], *, alternating: bool) -> str:
    """One line of the table, over all benchmarks and pairs."""
    ratios = [ratio for each in found for ratio in each]
    deviations = sorted(math.sqrt(statistics.fmean(ratio**2 for ratio in each)) for each in found)  # about 0, the truth
    beyond = sum(abs(ratio) > BEYOND for ratio in ratios)
    return (
        f"{huge_pages:<10}  {'alternating' if alternating else 'in turn':<11}  {statistics.median(deviations):>8.1%}  "
        f"{deviations[-1]:>8.1%}  {statistics.mean(ratios):>+6.1%}  {beyond:>5} of {len(ratios)}"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=8, help="pairs of processes per row, even (default 8)")
    arguments = parser.parse_args()
    started = time.perf_counter()
    found: dict[tuple[str, bool], list[list[float]]] = {each: [] for each in CONFIGURATIONS}
    with tempfile.TemporaryDirectory() as folder:
        make_project(Path(folder), {})
        for _ in range(arguments.pairs // 2):  # rows in turn, so that the machine's mood is spread over all
            for configuration in CONFIGURATIONS:
                pages, alternating = configuration
                new = log_ratios(Path(folder), huge_pages=pages, alternating=alternating)
                old = found[configuration] or [[] for _ in new]
                found[configuration] = [before + now for before, now in zip(old, new, strict=True)]
    print(f"{arguments.pairs} pairs of processes, 10 benchmarks, {(time.perf_counter() - started) / 60:.0f} min")
    print("huge pages  rounds         median     worst    mean  beyond 3 %")
    for (pages, alternating), each in found.items():
        print(row(pages, each, alternating=alternating))


if __name__ == "__main__":
    main()
