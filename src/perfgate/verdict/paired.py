"""Base and head in pairs of processes: from records to verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from perfgate.results.ledger import Ledger
from perfgate.results.record import Measurement, Record
from perfgate.settings import Settings
from perfgate.turns import BLOCK
from perfgate.verdict.counted import agreed, judge_counted
from perfgate.verdict.matching import judgeable, mismatch, other_parameters
from perfgate.verdict.noisy import (
    FLAGGED_PART,
    Question,
    Screen,
    Second,
    by_metric,
    decide,
    noise_known,
    problem_with,
    question_of,
    screen,
)
from perfgate.verdict.rules import Evidence, of_pairs, suite_of
from perfgate.verdict.statistics import Floats
from perfgate.verdict.verdicts import Accept, Verdict, by_benchmark, unchanged, unjudged

Key = tuple[str, str]
"""Benchmark and metric."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What one pair of processes measured."""

    base: Mapping[str, Record]
    head: Mapping[str, Record]
    canaries: Mapping[str, float] = field(default_factory=dict)
    """Log of what the canary took in each side's process, by side; of what is known."""

    @property
    def common(self) -> list[str]:
        """Benchmarks that both measured, with the same parameters."""
        return [name for name in self.head if name in self.base and name not in self.renewed]

    @property
    def renewed(self) -> list[str]:
        """Benchmarks that bear the same name and are others."""
        both = (name for name in self.head if name in self.base)
        return [name for name in both if self.head[name].identity != self.base[name].identity]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What to judge by."""

    settings: Settings
    ledger: Ledger
    torches: str = ""
    """How the two sides' versions of torch differ; empty where they do not."""
    first: int = 0
    """Pairs of the first stage that were planned; 0 where it does not matter how many there are."""
    fresh: int
    """Pairs of the second stage; 0 where the first decides alone."""


def log_ratio(base: Measurement, head: Measurement) -> float:
    """By how much head is worse, as the logarithm of a ratio: 0.05 is about 5 %.

    Rounds that alternated are compared with the round beside them in time, four at a time, and the median of those is
    taken; where the numbers of rounds differ they did not alternate, and medians are compared.
    """
    old, new = (np.log(np.asarray(each.values)) for each in (base, head))
    sign = -1.0 if head.better == "higher" else 1.0
    block = BLOCK // 2 if head.kind == "paired" else BLOCK  # a speedup is of two rounds already
    if len(old) != len(new) or len(new) < block:
        return sign * float(np.median(new) - np.median(old))
    whole = len(new) - len(new) % block
    blocks: Floats = (new - old)[:whole].reshape(-1, block).mean(axis=1)
    return sign * float(np.median(blocks))


@dataclass
class Series:
    """The log ratios of one question, one per pair."""

    question: Question
    values: list[float]


def series_of(pairs: Iterable[Pair]) -> tuple[dict[Key, Series], dict[Key, Verdict]]:
    """Log ratios of every noisy metric by benchmark and metric, and verdicts on what cannot be judged."""
    found: dict[Key, Series] = {}
    problems: dict[Key, Verdict] = {}
    for pair in pairs:
        for name in pair.common:
            base, head = pair.base[name], pair.head[name]
            for old in judgeable(base):
                if old.kind == "counted":
                    continue
                key = (name, old.metric)
                problem = mismatch(head, old) or problem_with(base, old.metric) or problem_with(head, old.metric)
                new = head.measurement(old.metric)
                if problem or new is None:
                    problems[key] = problem or unjudged(name, "metric-differs", old.metric, old.metric)
                else:
                    series = found.setdefault(key, Series(question_of(head, new), []))
                    series.values.append(log_ratio(old, new))
    return {key: each for key, each in found.items() if key not in problems}, problems


def first_stage(pairs: Sequence[Pair], rules: Rules) -> Screen:
    """Which benchmarks may have changed and are worth fresh pairs."""
    series, _ = series_of(pairs)
    questions = [each.question for each in series.values()]
    evidence = _evidence(list(series.values()), list(series.values()), rules)
    return screen(questions, evidence, rules.settings)


def _evidence(chosen: Sequence[Series], whole: Sequence[Series], rules: Rules) -> Evidence:
    """Evidence of some series, whose variances are drawn towards those of the ``whole`` suite's."""

    def estimate(rows: Sequence[int]) -> Evidence:
        metric = chosen[rows[0]].question.metric
        suite = suite_of([each.values for each in whole if each.question.metric == metric])
        known = noise_known(rules.ledger, [chosen[row].question for row in rows], "pair")
        return of_pairs([chosen[row].values for row in rows], known, suite)

    return by_metric([each.question for each in chosen], estimate)


def judge_pairs(
    first: Sequence[Pair], second: Sequence[Pair], rules: Rules, accept: Accept = unchanged
) -> list[Verdict]:
    """A verdict per benchmark that both sides have: of its worst metric. Only fresh pairs decide on candidates.

    ``accept`` may turn the verdict on a metric into another one, before the worst metric speaks for its benchmark.
    """
    everything = [*first, *second]
    series, problems = series_of(first)
    found = first_stage(first, rules)
    planned = _planned(found, series, rules.fresh) if rules.fresh else None
    fresh, fresh_problems = series_of(second)
    last = _second(found, series, fresh, rules) if rules.fresh and found.nominated else None
    noisy = [
        fresh_problems.get((each.id, each.metric), each) if each.code == "no-data" else each
        for each in decide(found, last, planned)
    ]
    disturbed = _disturbed(everything)
    disturbed |= _lost(first, rules.first, names_measured(first))
    disturbed |= _lost(second, rules.fresh, found.candidates)
    certain = [*_renewed(everything), *_counts(everything, rules), *disturbed.values()]
    undisturbed = [each for each in (*problems.values(), *noisy) if each.id not in disturbed]
    known = {each.id for each in (*certain, *undisturbed)}
    silent = dict.fromkeys(name for pair in everything for name in pair.common if name not in known)
    certain += [unjudged(name, "no-metric", "it has no metric that could be judged") for name in silent]
    return by_benchmark(map(accept, [*certain, *undisturbed]))


def _second(first: Screen, series: Mapping[Key, Series], fresh: Mapping[Key, Series], rules: Rules) -> Second:
    again = [_again(first.questions[row], fresh) for row in first.nominated]
    evidence = _evidence(again, list(series.values()), rules)
    return Second(evidence=evidence, how=[f"{len(each.values)} fresh pairs" if each.values else "" for each in again])


def _renewed(pairs: Sequence[Pair]) -> Iterator[Verdict]:
    for name in dict.fromkeys(name for pair in pairs for name in pair.renewed):
        yield from other_parameters(name)


def _again(question: Question, fresh: Mapping[Key, Series]) -> Series:
    """Fresh values of a candidate; none where no fresh pair measured it."""
    return fresh.get((question.id, question.metric), Series(question, []))


def _planned(first: Screen, series: Mapping[Key, Series], fresh: int) -> Evidence:
    """The errors of so many fresh pairs, at the variance that the first ones showed."""
    counts = np.array([len(each.values) for each in series.values()], float)
    known = first.evidence
    error = known.standard_error * np.sqrt(counts / fresh)
    return Evidence(known.mean, error, known.degrees - counts + fresh)


def _counts(pairs: Sequence[Pair], rules: Rules) -> Iterator[Verdict]:
    found: dict[Key, list[Verdict]] = {}
    for pair in pairs:
        for name in pair.common:
            for old in judgeable(pair.base[name]):
                if old.kind == "counted":
                    verdict = judge_counted(pair.head[name], old, rules.settings, rules.torches)
                    found.setdefault((name, old.metric), []).append(verdict)
    return (agreed(each) for each in found.values())


def names_measured(pairs: Sequence[Pair]) -> set[str]:
    """Benchmarks that any pair measured."""
    return {name for pair in pairs for name in pair.common}


def _lost(pairs: Sequence[Pair], planned: int, names: Collection[str]) -> dict[str, Verdict]:
    """Benchmarks that too few of the planned pairs measured: what is left may be what survived by luck."""
    result = {}
    for name in names:
        count = sum(name in pair.common for pair in pairs)
        if count < planned * (1 - FLAGGED_PART):
            result[name] = unjudged(name, "pairs-lost", f"only {count} of {planned} pairs measured it")
    return result


def _disturbed(pairs: Sequence[Pair]) -> dict[str, Verdict]:
    """Benchmarks that were disturbed in too many of their processes."""
    flags: dict[str, list[tuple[str, ...]]] = {}
    for pair in pairs:
        for name in pair.common:
            flags.setdefault(name, []).append((*pair.base[name].flags, *pair.head[name].flags))
    result = {}
    for name, each in flags.items():
        disturbed = [one for one in each if one]
        if len(disturbed) > FLAGGED_PART * len(each):
            reason = f"{len(disturbed)} of {len(each)} pairs were disturbed: {disturbed[-1][0]}"
            result[name] = unjudged(name, "flagged", reason)
    return result
