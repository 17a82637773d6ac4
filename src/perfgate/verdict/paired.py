"""Base and head in pairs of processes: from records to verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from perfgate.results.ledger import Ledger
from perfgate.results.record import Measurement, Record
from perfgate.settings import Settings
from perfgate.verdict.counted import agreed, judge_counted
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
from perfgate.verdict.verdicts import Verdict, unjudged, worst

BLOCK = 4
"""Rounds that belong together: within them each side goes first twice, once with either order of the plain twin."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What one pair of processes measured."""

    base: Mapping[str, Record]
    head: Mapping[str, Record]
    canaries: Mapping[str, float] = field(default_factory=dict)
    """Log of what the canary took in each side's process, by side; of what is known."""

    @property
    def common(self) -> list[str]:
        """Benchmarks that both measured."""
        return [name for name in self.head if name in self.base]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What to judge by."""

    settings: Settings
    ledger: Ledger
    torches: str = ""
    """How the two sides' versions of torch differ; empty where they do not."""
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


def series_of(pairs: Iterable[Pair]) -> tuple[dict[tuple[str, str], Series], list[Verdict]]:
    """Log ratios of every noisy metric by benchmark and metric, and verdicts on what cannot be judged."""
    found: dict[tuple[str, str], Series] = {}
    problems: dict[tuple[str, str], Verdict] = {}
    for pair in pairs:
        for name in pair.common:
            base, head = pair.base[name], pair.head[name]
            for new, old in _judged(head, base):
                key = (name, new.metric)
                problem = problem_with(base, old) or problem_with(head, new)
                if problem:
                    problems[key] = problem
                    continue
                question = question_of(head, new)
                found.setdefault(key, Series(question, [])).values.append(log_ratio(old, new))
    return {key: each for key, each in found.items() if key not in problems}, list(problems.values())


def _judged(head: Record, base: Record) -> Iterator[tuple[Measurement, Measurement]]:
    """Noisy metrics with a better direction that both have, in the same unit."""
    for old in base.measurements:
        new = head.measurement(old.metric)
        if old.kind != "counted" and old.better != "neither" and old.values and new and new.unit == old.unit:
            yield new, old


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


def judge_pairs(first: Sequence[Pair], second: Sequence[Pair], rules: Rules) -> list[Verdict]:
    """A verdict per benchmark that both sides have: of its worst metric. Only fresh pairs decide on candidates."""
    series, problems = series_of(first)
    found = first_stage(first, rules)
    verdicts = [*problems, *_counts([*first, *second], rules)]
    fresh, _ = series_of(second)
    if rules.fresh and found.nominated:
        again = [_again(found.questions[row], fresh) for row in found.nominated]
        evidence = _evidence(again, list(series.values()), rules)
        how = f"{max(len(each.values) for each in again)} fresh pairs"
        verdicts += decide(found, Second(evidence=evidence, how=how), _planned(found, series, rules.fresh))
    else:
        verdicts += decide(found, None, _planned(found, series, rules.fresh) if rules.fresh else None)
    flagged = _flagged([*first, *second])
    by_name: dict[str, list[Verdict]] = {}
    for each in verdicts:
        by_name.setdefault(each.id, []).append(each)
    for pair in [*first, *second]:
        for name in pair.common:
            by_name.setdefault(name, [unjudged(name, "no-metric", "no metric that could be judged")])
    return [flagged.get(name) or worst(each) for name, each in by_name.items()]


def _again(question: Question, fresh: Mapping[tuple[str, str], Series]) -> Series:
    """Fresh values of a candidate; none where no fresh pair measured it."""
    return fresh.get((question.id, question.metric), Series(question, []))


def _planned(first: Screen, series: Mapping[tuple[str, str], Series], fresh: int) -> Evidence:
    """The errors of so many fresh pairs, at the variance that the first ones showed."""
    counts = np.array([len(each.values) for each in series.values()], float)
    known = first.evidence
    error = known.standard_error * np.sqrt(counts / fresh)
    return Evidence(known.mean, error, known.degrees - counts + fresh)


def _counts(pairs: Sequence[Pair], rules: Rules) -> Iterator[Verdict]:
    found: dict[tuple[str, str], list[Verdict]] = {}
    for pair in pairs:
        for name in pair.common:
            head = pair.head[name]
            for old in pair.base[name].measurements:
                if old.kind == "counted" and old.better != "neither" and old.values:
                    verdict = _count(head, old, rules)
                    found.setdefault((name, old.metric), []).append(verdict)
    return (agreed(each) for each in found.values())


def _count(head: Record, old: Measurement, rules: Rules) -> Verdict:
    new = head.measurement(old.metric)
    if new is None:
        return unjudged(head.id, "metric-differs", f"{old.metric} is no longer measured", old.metric)
    return judge_counted(head, new, old, rules.settings, rules.torches)


def _flagged(pairs: Sequence[Pair]) -> dict[str, Verdict]:
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
