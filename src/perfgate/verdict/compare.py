"""Runs against saved runs: verdicts by the history of each benchmark."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from perfgate.results.baseline import Baseline
from perfgate.results.ledger import Ledger
from perfgate.results.record import Measurement, Record, Run
from perfgate.settings import Settings
from perfgate.verdict.changepoints import change_points
from perfgate.verdict.counted import judge_counted
from perfgate.verdict.levels import level, log_value
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
from perfgate.verdict.rules import Evidence, Suite, of_groups, suite_of
from perfgate.verdict.verdicts import Verdict, unjudged, worst

Dated = tuple[Record, Run]
"""A record and the run it is of."""


@dataclass
class Rows:
    """The noisy questions, with the logs of every old and new run: above 0 is worse."""

    questions: list[Question] = field(default_factory=list)
    old: list[list[float]] = field(default_factory=list)
    new: list[list[float]] = field(default_factory=list)


@dataclass
class Comparison:
    """A comparison in the making: what is certain, and what may want a second look."""

    settings: Settings
    ledger: Ledger
    certain: list[Verdict] = field(default_factory=list)
    """Verdicts that no second look changes: counts, what is new, what cannot be judged."""
    rows: Rows = field(default_factory=Rows)
    flagged: dict[str, list[str]] = field(default_factory=dict)
    """Disturbances of the new records."""

    @cached_property
    def screen(self) -> Screen:
        """The first stage, once everything is entered."""
        return screen(self.rows.questions, self._evidence(self.rows.old, self.rows.new), self.settings)

    @property
    def candidates(self) -> set[str]:
        """Benchmarks to measure again: those that may have changed, and those that were disturbed."""
        settled = {each.id for each in self.certain if each.word in {"slower", "failed", "unjudged"}}
        return (self.screen.candidates | set(self.flagged)) - settled

    def verdicts(self, fresh: Sequence[Dated] = (), *, planned: int = 0) -> list[Verdict]:
        """At least one verdict per benchmark. ``fresh``: candidates measured again, which alone decide on them.

        ``planned`` is how many fresh processes there are or would have been; 0 where the first look decides alone.
        """
        first = self.screen
        second = self._second(first, fresh, planned) if planned and first.nominated else None
        noisy = decide(first, second, self._planned(first, planned) if planned else None, len(first.questions))
        by_name: dict[str, list[Verdict]] = {}
        for each in [*self.certain, *noisy]:
            by_name.setdefault(each.id, []).append(each)
        disturbed = self._disturbed(fresh)
        result: list[Verdict] = []
        for name, found in by_name.items():
            alone = [each for each in found if each.word in {"new", "gone"}]
            result += alone or [disturbed.get(name) or worst(found)]
        return result

    def _evidence(
        self, old: Sequence[Sequence[float]], new: Sequence[Sequence[float]], only: Sequence[int] | None = None
    ) -> Evidence:
        """Evidence on the questions ``only`` (all by default); the suite's scatter always comes from all."""
        chosen = range(len(self.rows.questions)) if only is None else only
        questions = [self.rows.questions[row] for row in chosen]

        def estimate(places: Sequence[int]) -> Evidence:
            known = noise_known(self.ledger, [questions[place] for place in places], "process")
            suite = self._suite(questions[places[0]].metric)
            return of_groups([old[place] for place in places], [new[place] for place in places], known, suite)

        return by_metric(questions, estimate)

    def _suite(self, metric: str) -> Suite:
        whole = zip(self.rows.questions, self.rows.old, strict=True)
        return suite_of([old for each, old in whole if each.metric == metric])

    def _second(self, first: Screen, fresh: Sequence[Dated], planned: int) -> Second:
        """What fresh processes say; where one could not be measured again, the first look has to do."""
        rows = first.nominated
        new = [list(_fresh_values(self.rows.questions[row], fresh)) or self.rows.new[row] for row in rows]
        evidence = self._evidence([self.rows.old[row] for row in rows], new, rows)
        return Second(evidence=evidence, how="a fresh process" if planned == 1 else f"{planned} fresh processes")

    def _planned(self, first: Screen, count: int) -> Evidence:
        """The errors of so many fresh processes, at the variance known."""
        known = first.evidence
        shares = [
            (1 / len(old) + 1 / count) / (1 / len(old) + 1 / len(new))
            for old, new in zip(self.rows.old, self.rows.new, strict=True)
        ]
        return Evidence(known.mean, known.standard_error * np.sqrt(shares), known.degrees)

    def _disturbed(self, fresh: Sequence[Dated]) -> dict[str, Verdict]:
        """Benchmarks of which too many processes were disturbed."""
        result = {}
        for name, flags in self.flagged.items():
            again = [record for record, _ in fresh if record.id == name]
            count = len(flags) + sum(bool(record.flags) for record in again)
            if count > FLAGGED_PART * (len(flags) + len(again)):
                result[name] = unjudged(name, "flagged", f"{count} of {len(flags) + len(again)} processes: {flags[0]}")
        return result


def compare(heads: Sequence[Run], baseline: Baseline, settings: Settings, ledger: Ledger) -> Comparison:
    """Compare new runs (usually one) with the baseline's."""
    found = Comparison(settings, ledger)
    names: dict[str, list[Dated]] = {}
    for run in heads:
        for record in run.records:
            names.setdefault(record.id, []).append((record, run))
    if not baseline.runs:
        code = "unreadable-baseline" if baseline.unreadable else "no-baseline"
        found.certain += [unjudged(name, code, baseline.absence) for name in names]
        return found
    matched = 0
    for name, new in names.items():
        matched += _compare_benchmark(found, new, baseline.history(name))
    if names and not matched:
        reason = f"0 of {len(names)} benchmarks have a baseline: nothing was compared; were they all renamed or moved?"
        found.certain.append(unjudged("", "nothing-in-common", reason))
    return found


def _compare_benchmark(found: Comparison, new: Sequence[Dated], old: Sequence[Dated]) -> bool:
    """Enter what there is to say or to ask about one benchmark; whether it has a baseline."""
    record, run = new[-1]
    if not old:
        found.certain.append(Verdict(id=record.id, word="new", code="new", reason="not in the baseline"))
        return False
    newest, source = old[0]
    if newest.identity != record.identity:
        reason = "its parameters changed, so it is another benchmark than the baseline's of that name"
        found.certain += [
            Verdict(id=record.id, word=word, code="other-parameters", reason=reason) for word in ("new", "gone")
        ]
        return True
    before, now = (each.machine.soft.get("torch", "unknown") for each in (source, run))
    torches = f"{before} -> {now}" if before != now else ""
    flags = [flag for each, _ in new for flag in each.flags[:1]]
    if flags:
        found.flagged[record.id] = flags
    judged = 0
    for base in newest.measurements:
        if base.better != "neither" and base.values:
            judged += 1
            _compare_metric(found, new, old, base, torches)
    if not judged:
        found.certain.append(unjudged(record.id, "no-metric", "the baseline holds no metric that could be judged"))
    return True


def _compare_metric(
    found: Comparison, new: Sequence[Dated], old: Sequence[Dated], base: Measurement, torches: str
) -> None:
    record = new[-1][0]
    head = record.measurement(base.metric)
    if head is None or head.unit != base.unit:
        what = "is no longer measured" if head is None else f"has unit {head.unit}, in the baseline {base.unit}"
        found.certain.append(unjudged(record.id, "metric-differs", f"{base.metric} {what}", base.metric))
    elif base.kind == "counted":
        found.certain.append(judge_counted(record, head, base, found.settings, torches))
    else:
        problem = problem_with(record, head) or problem_with(old[0][0], base)
        if problem:
            found.certain.append(dataclasses.replace(problem, id=record.id))
            return
        question = question_of(record, head)
        past = [value for value in (log_value(each, question) for each in level(old)) if value is not None]
        points = change_points(past[::-1])  # oldest first
        found.rows.questions.append(question)
        found.rows.old.append(past[: len(past) - points[-1]] if points else past)
        found.rows.new.append([value for value in (log_value(each, question) for each in new) if value is not None])


def _fresh_values(question: Question, fresh: Sequence[Dated]) -> Iterator[float]:
    for record, run in fresh:
        value = log_value((record, run), question) if record.id == question.id else None
        if value is not None:
            yield value
