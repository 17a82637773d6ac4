"""How often a rule calls a clean change slower, and how often it names what is slower, by simulation.

``python -m perfgate.verdict.power [--suites N] [--seed S] [--outliers P]`` prints a table per noise level. *Alarm* is
the share of clean suites with any red benchmark, *power* the share of truly slower benchmarks that are named, where 3
of the 60 are. *Cost* is what a clean suite takes on average per benchmark, in pairs of processes (``ab``) or in
processes of head (against saved runs), and *times* what that is of the first stage alone. Alpha is 0.05 over the suite,
the threshold 3 %.

Assumed:

- 60 benchmarks. The log time of a process is normal around the benchmark's level; *noise* is the typical standard
  deviation of the log ratio of a pair, so a process has it over the root of 2. Benchmarks scatter around that by a
  factor whose log is normal with deviation 0.4. This includes the error of the median over rounds.
- 2 % of processes (``--outliers``) are slow by 10 to 20 % throughout a benchmark, independently from benchmark to
  benchmark.
- Between two runs the machine changes by 1 % (normal), the same for all benchmarks: every rule that compares runs made
  one after the other sees this. With the canary subtracted 0.3 % is left, different for each benchmark, and the same
  for all processes of one session, so that measuring again does not average it out.
- A pair takes its rounds alternately and sees no drift. Pairs and processes are independent; nothing favours the side
  that starts first; the head's noise is the base's.
- Rules on rounds get 20 of them. Rounds share their process's deviation and add one of the same size, skewed upwards.
  asv gets two processes of 10 rounds a side, criterion and google/benchmark one of 20 (more rounds: more alarms).
- bencher and conbench see 20 saved runs as they are. The textbook's five pairs are as good as ours.
- Ours decide on fresh data only: the second stage's mean contains nothing of the first, except that the saved runs are
  the same, for which Holm counts the whole suite there. The second stage knows the first's scatter of variances and
  outliers, but for the rows *no suite*, where candidates stand alone; no ledger.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from rich.console import Console
from rich.progress import track

from perfgate.verdict import peers, simulation
from perfgate.verdict.rules import Booleans, Evidence, Limits, Suite, of_groups, of_pairs, promising, proven, suite_of
from perfgate.verdict.simulation import BENCHMARKS, SLOWED, Suites, draw, history, pairs, rounds, session

NOISES = (0.007, 0.015, 0.03)
CHANGES = (0.03, 0.05, 0.07, 0.10)
ALPHA, THRESHOLD = 0.05, 0.03
LIMITS = Limits(np.full(BENCHMARKS, THRESHOLD), np.full(BENCHMARKS, ALPHA))
SUITES = 1000  # of clean ones: the standard error of an alarm of 2 % is 0.4 %
SLOWED_SHARE = 4  # a quarter of them per change, 750 slower benchmarks: the standard error of a power of 95 % is 0.8 %
STAGES: Mapping[int, Sequence[int]] = {2: (4,), 4: (4, 8), 6: (8,)}
HISTORIES, CONFIRMATIONS = (20, 5, 3, 1), (1, 3, 5)
LOOKBACK = 20  # runs that bencher and conbench look at


@dataclass(frozen=True)
class Outcome:
    """What a rule said about many suites."""

    red: Booleans
    """Suites x benchmarks."""
    first: float = 0.0
    """Pairs or processes per benchmark of the first stage; 0 where the cost is not compared."""
    extra: float = 0.0
    """Those of the second stage, per benchmark of the suite, on average."""


@dataclass(frozen=True)
class Row:
    """One line of the table: shares from 0 to 1."""

    rule: str
    alarm: float
    power: tuple[float, ...]
    """One per change."""
    first: float
    extra: float


Family = Callable[[np.random.Generator, Suites], dict[str, Outcome]]
"""Rules that are tried on the same data."""


def one_saved_run(rng: np.random.Generator, suites: Suites) -> dict[str, Outcome]:
    """Rules that compare the rounds of a saved run with those of a new one."""
    base = rounds(rng, suites, history(rng, suites, 1, canary=False))
    head = rounds(rng, suites, session(rng, suites, 1, canary=False))
    return {
        "pytest-benchmark median:5%": Outcome(peers.compare_fail_median(base, head)),
        "pytest-benchmark min:5%": Outcome(peers.compare_fail_min(base, head)),
        "Mann-Whitney on rounds p<.05": Outcome(peers.u_test(base, head)),
        "criterion p<.05 and 1 %": Outcome(peers.criterion(base, head)),
    }


def two_processes(rng: np.random.Generator, suites: Suites) -> dict[str, Outcome]:
    """asv, which starts each benchmark twice."""
    base = rounds(rng, suites, session(rng, replace(suites, truth=0 * suites.truth), 2, canary=False))
    head = rounds(rng, suites, session(rng, suites, 2, canary=False))
    return {"asv continuous p<.002 and 1.1": Outcome(peers.asv_continuous(base, head))}


def long_history(rng: np.random.Generator, suites: Suites) -> dict[str, Outcome]:
    """Rules that compare one new run with the last twenty."""
    past = np.exp(history(rng, suites, LOOKBACK, canary=False))
    new = np.exp(session(rng, suites, 1, canary=False))[..., 0]
    return {
        f"bencher t-test, last {LOOKBACK}": Outcome(peers.bencher(past, new)),
        f"conbench z>5, last {LOOKBACK}": Outcome(peers.conbench(past, new)),
    }


def five_pairs(rng: np.random.Generator, suites: Suites) -> dict[str, Outcome]:
    """The textbook on five pairs."""
    return {"5 pairs, paired t, Holm, 3 %": Outcome(peers.paired_t(pairs(rng, suites, 5), THRESHOLD, ALPHA))}


def stages(first: int, seconds: Sequence[int]) -> Family:
    """``perfgate ab``: ``first`` pairs of everything, then each of ``seconds`` fresh pairs of the candidates."""

    def tried(rng: np.random.Generator, suites: Suites) -> dict[str, Outcome]:
        screens, fresh = pairs(rng, suites, first), pairs(rng, suites, max(seconds))
        rows = [candidates(of_pairs(screen.tolist())) for screen in screens]
        scatters = [suite_of(screen.tolist()) for screen in screens]

        def second(size: int, known: Sequence[Suite | None]) -> Outcome:
            again = [
                of_pairs(new[found, :size].tolist(), suite=suite)
                for new, found, suite in zip(fresh, rows, known, strict=True)
            ]
            return concluded(rows, again, first, size)

        outcomes = {f"ours: ab {first}+{size}": second(size, scatters) for size in seconds}
        size = max(seconds)
        outcomes[f"ours: ab {first}+{size}, no suite"] = second(size, [None] * len(screens))
        return outcomes

    return tried


def saved(runs: int) -> Family:
    """``--benchmark-compare``: one process against ``runs`` saved ones, then fresh ones of the candidates."""

    def tried(rng: np.random.Generator, suites: Suites) -> dict[str, Outcome]:
        past, new = history(rng, suites, runs, canary=True), session(rng, suites, 1 + max(CONFIRMATIONS), canary=True)
        rows = [candidates(of_groups(old.tolist(), one.tolist())) for old, one in zip(past, new[..., :1], strict=True)]
        scatters = [suite_of(old.tolist()) for old in past]

        def second(size: int) -> Outcome:
            again = [
                of_groups(old[found].tolist(), fresh[found].tolist(), suite=suite)
                for old, fresh, found, suite in zip(past, new[..., 1 : 1 + size], rows, scatters, strict=True)
            ]
            return concluded(rows, again, 1, size, family=BENCHMARKS)

        return {f"ours: history {runs}, then {size} fresh": second(size) for size in CONFIRMATIONS}

    return tried


def candidates(screen: Evidence) -> list[int]:
    """Rows of one suite that are measured again."""
    return [int(row) for row in np.flatnonzero(promising(screen, LIMITS))]


def concluded(rows: Sequence[list[int]], again: Sequence[Evidence], first: int, size: int, family: int = 0) -> Outcome:
    """The second stage's verdict on the candidates of each suite, and what it took."""
    red = np.zeros((len(rows), BENCHMARKS), bool)
    for suite, (found, evidence) in enumerate(zip(rows, again, strict=True)):
        red[suite, found] = proven(evidence, LIMITS.at(found), family)
    return Outcome(red, first, size * sum(map(len, rows)) / red.size)


FAMILIES: Sequence[Family] = (
    one_saved_run,
    two_processes,
    long_history,
    five_pairs,
    *(stages(first, seconds) for first, seconds in STAGES.items()),
    *(saved(runs) for runs in HISTORIES),
)


def rows_of(
    family: Family, noise: float, suites: int, seed: Sequence[int], outliers: float = simulation.OUTLIERS
) -> list[Row]:
    """The lines of a family's rules at one noise level."""
    rng = np.random.default_rng(seed)
    clean = family(rng, draw(rng, suites, noise, 0.0, outliers))
    share = max(suites // SLOWED_SHARE, 1)
    slow = [family(rng, draw(rng, share, noise, change, outliers)) for change in CHANGES]
    return [
        Row(
            rule=rule,
            alarm=float(outcome.red.any(axis=1).mean()),
            power=tuple(float(each[rule].red[:, :SLOWED].mean()) for each in slow),
            first=outcome.first,
            extra=outcome.extra,
        )
        for rule, outcome in clean.items()
    ]


def table(noise: float, rows: Sequence[Row]) -> str:
    """The rows of one noise level as plain text."""
    head = f"{'rule':<36}{'alarm':>8}" + "".join(f"{change:>7.0%}" for change in CHANGES) + f"{'cost':>8}{'times':>7}"
    lines = [f"noise of a pair {noise:.1%}", head, "-" * len(head)]
    for row in rows:
        cost = f"{row.first + row.extra:>8.2f}{1 + row.extra / row.first:>7.2f}" if row.first else ""
        lines.append(f"{row.rule:<36}{row.alarm:>8.1%}" + "".join(f"{each:>7.0%}" for each in row.power) + cost)
    return "\n".join(line.rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table per noise level."""
    parser = argparse.ArgumentParser(
        prog="python -m perfgate.verdict.power", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--suites", type=int, default=SUITES, help="clean suites per rule; a quarter per change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--outliers", type=float, default=simulation.OUTLIERS, help="share of processes, default 0.02")
    given = parser.parse_args(arguments)
    start = time.perf_counter()
    cases = [(level, number) for level in range(len(NOISES)) for number in range(len(FAMILIES))]
    rows: list[list[Row]] = [[] for _ in NOISES]
    console = Console(stderr=True)
    for level, number in track(cases, "simulating", console=console, transient=True, disable=not sys.stderr.isatty()):
        seed = given.seed, level, number
        rows[level] += rows_of(FAMILIES[number], NOISES[level], given.suites, seed, given.outliers)
    tables = [table(noise, found) for noise, found in zip(NOISES, rows, strict=True)]
    drawn = f"{given.suites} clean suites and {given.suites // SLOWED_SHARE} per change for each rule"
    spent = f"{drawn}, {given.outliers:.1%} outliers, seed {given.seed}, {time.perf_counter() - start:.0f} s"
    print("\n\n".join([*tables, spent]))  # noqa: T201


if __name__ == "__main__":
    main()
