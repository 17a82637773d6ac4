"""Verdicts on noisy metrics: which to measure again, and the word, interval and detectable change of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from perfgate.results.ledger import Ledger
from perfgate.results.record import Measurement, Record
from perfgate.settings import Settings
from perfgate.verdict.estimate import Estimate
from perfgate.verdict.rules import Booleans, Evidence, Limits, detectable, promising, proven
from perfgate.verdict.statistics import Variance, half_width
from perfgate.verdict.verdicts import Verdict, Word, unjudged

FEWEST_SAMPLES = 5
FLAGGED_PART = 1 / 3
"""More processes than this disturbed, and nothing can be said of the benchmark."""
WIDEST = 100.0  # half of an interval of the logarithm: nothing is known


@dataclass(frozen=True, kw_only=True)
class Question:
    """One noisy metric of one benchmark: did it get worse?"""

    id: str
    group: str
    metric: str
    better: str
    """``lower`` or ``higher``."""
    identity: str
    """Of the benchmark's parameters."""


def question_of(record: Record, measurement: Measurement) -> Question:
    """Whether this metric got worse."""
    return Question(
        id=record.id,
        group=record.group,
        metric=measurement.metric,
        better=measurement.better,
        identity=record.identity,
    )


def noise_known(ledger: Ledger, questions: Sequence[Question], between: Literal["pair", "process"]) -> Variance:
    """What the ledger knows of each: its variance between pairs or processes; nothing of a benchmark that changed."""
    entries = [ledger.entries.get((each.id, each.metric)) for each in questions]
    known = [
        (getattr(entry, f"{between}_deviation") ** 2, float(getattr(entry, f"{between}_degrees")))
        if entry and entry.identity == question.identity
        else (0.0, 0.0)
        for entry, question in zip(entries, questions, strict=True)
    ]
    values, degrees = np.array(known, float).reshape(-1, 2).T
    return Variance(values, degrees)


@dataclass(frozen=True)
class Screen:
    """The first stage: what it knows of each question, and which it nominates for a second look."""

    questions: Sequence[Question]
    limits: Limits
    evidence: Evidence
    slower: Booleans
    faster: Booleans

    @property
    def candidates(self) -> set[str]:
        """Benchmarks to measure again."""
        return {each.id for each, one, two in zip(self.questions, self.slower, self.faster, strict=True) if one or two}

    @property
    def nominated(self) -> list[int]:
        """Positions of the questions that are asked again."""
        return [int(row) for row in np.flatnonzero(self.slower | self.faster)]


@dataclass(frozen=True, kw_only=True)
class Second:
    """The second stage: what fresh data say about the nominated questions, in their order."""

    evidence: Evidence
    how: Sequence[str]
    """What confirmed or did not, such as ``8 fresh pairs``; empty where nothing fresh was measured."""


def problem_with(record: Record, metric: str) -> Verdict | None:
    """Why the samples of this metric cannot be judged; ``None`` where they can."""
    found = record.measurement(metric)
    values, name = found.values if found else (), record.id
    if len(values) < FEWEST_SAMPLES:
        reason = f"{metric}: too few samples ({len(values)} < {FEWEST_SAMPLES})"
        return unjudged(name, "too-few-samples", reason, metric)
    if not all(math.isfinite(value) and value > 0 for value in values):
        return unjudged(name, "not-positive", f"{metric} has values that are not finite and above 0", metric)
    if len(set(values)) == 1:
        reason = f"all {len(values)} samples of {metric} are equal: a clock that does not run shows no change"
        return unjudged(name, "no-variation", reason, metric)
    return None


def screen(questions: Sequence[Question], evidence: Evidence, settings: Settings) -> Screen:
    """Nominate what may have changed, in either direction."""
    limits = Limits(
        np.array([settings.threshold_of(each.metric, each.group, each.id) for each in questions], float),
        np.array([settings.alpha_of(each.group, each.id) for each in questions], float),
    )
    return Screen(questions, limits, evidence, promising(evidence, limits), promising(evidence.negated(), limits))


def by_metric(questions: Sequence[Question], estimate: Callable[[Sequence[int]], Evidence]) -> Evidence:
    """Evidence on all questions, from ``estimate`` of the positions of one metric at a time.

    Times and speedups scatter differently, and each metric's variances are drawn towards their own kind only.
    """
    mean, error, degrees = (np.full(len(questions), np.nan) for _ in range(3))
    for metric in dict.fromkeys(each.metric for each in questions):
        rows = [row for row, each in enumerate(questions) if each.metric == metric]
        found = estimate(rows)
        mean[rows], error[rows], degrees[rows] = found.mean, found.standard_error, found.degrees
    return Evidence(mean, error, degrees)


def decide(first: Screen, second: Second | None, planned: Evidence | None, family: int = 0) -> list[Verdict]:
    """A verdict per question. Without a second stage, the first one decides alone.

    ``planned``: errors that a second stage has or would have had, per question; ``None`` where none is possible.
    ``family``: see :func:`~perfgate.verdict.rules.proven`; where the first stage decides, all questions are one.
    """
    family = family or (0 if second else len(first.questions))
    rows = first.nominated if second else list(range(len(first.questions)))
    final = second.evidence if second else first.evidence
    slower = _proven_rows(first, rows, first.slower, final, family)
    faster = _proven_rows(first, rows, first.faster, final.negated(), family)
    place = {row: number for number, row in enumerate(rows)}
    verdicts = []
    for row in range(len(first.questions)):
        estimate = _interval(final, place[row]) if row in place else _interval(first.evidence, row)
        changed: Word | None = "slower" if row in slower else "faster" if row in faster else None
        again = second is not None and row in place
        last = final.row(place[row]) if again else planned.row(row) if planned else None
        visible = _detectable(first, row, last, family)
        how = second.how[place[row]] if second and again else ""
        verdicts.append(_verdict(first, row, estimate, changed, how, visible))
    return verdicts


def _proven_rows(first: Screen, rows: Sequence[int], nominated: Booleans, final: Evidence, family: int) -> set[int]:
    """Of the questions nominated in one direction, those that the final evidence proves."""
    places = [place for place, row in enumerate(rows) if nominated[row]]
    chosen = [rows[place] for place in places]
    yes = proven(final.at(places), first.limits.at(chosen), family) if places else ()
    return {row for row, one in zip(chosen, yes, strict=True) if one}


def _interval(evidence: Evidence, place: int) -> Estimate | None:
    """The factor by which it got worse, with its interval, infinitely wide where the error is unknown."""
    mean, error, degrees = evidence.row(place)
    if math.isnan(mean):
        return None
    half = min(half_width(error, degrees), WIDEST) if math.isfinite(error) else WIDEST
    return Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def _detectable(first: Screen, row: int, last: tuple[float, float, float] | None, family: int) -> float:
    """As a fraction; a change must pass both stages, the last together with all other candidates (Holm).

    ``last`` is mean, error and degrees of freedom of the second stage; ``None`` where there is none.
    """
    together = family or (max(int(first.slower.sum()), 1) if last else len(first.questions))
    threshold, alpha = float(first.limits.threshold[row]), float(first.limits.alpha[row])
    return detectable(first.evidence.row(row)[1:], last[1:] if last else None, threshold, alpha, together)


def _verdict(first: Screen, row: int, change: Estimate | None, changed: Word | None, how: str, seen: float) -> Verdict:
    question, threshold = first.questions[row], float(first.limits.threshold[row])
    if change is None:
        return unjudged(question.id, "no-data", f"{question.metric}: no process measured it", question.metric)
    large = change.half_width > math.log1p(threshold) or abs(math.log(change.value)) >= math.log1p(threshold)
    word: Word = changed or ("unsure" if large else "same")
    confirmed = f", {'confirmed' if changed else 'not confirmed'} by {how}" if how else ""
    visible = {
        "same": f"; {_size(seen)} would have been seen",
        "unsure": f"; only {_size(seen)} would have been seen" if math.isfinite(seen) else "; no change could be seen",
    }
    reason = f"{_found(question, change)}, limit {threshold:.1%}{confirmed}{visible.get(word, '')}"
    return Verdict(
        id=question.id,
        word=word,
        code=word,
        reason=reason,
        metric=question.metric,
        change=change,
        threshold=threshold,
        detectable=seen,
    )


def _found(question: Question, change: Estimate) -> str:
    """``wall_seconds +5.1 % [+4.0 %, +6.2 %]``: the metric's own direction, whichever is better."""
    low, value, high = change.low, change.value, change.high
    if question.better == "higher":
        low, value, high = 1 / high, 1 / value, 1 / low
    interval = f"[{low - 1:+.1%}, {high - 1:+.1%}]" if change.half_width < WIDEST else "(error unknown)"
    return f"{question.metric} {value - 1:+.1%} {interval}"


def _size(fraction: float) -> str:
    return f"a change of {fraction:.1%}" if math.isfinite(fraction) else "no change"
