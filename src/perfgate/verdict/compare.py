"""Runs against saved runs: verdicts by the history of each benchmark."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from perfgate.results.baseline import Baseline
from perfgate.results.ledger import Ledger
from perfgate.results.record import Measurement, Record, Run
from perfgate.settings import Settings
from perfgate.verdict.counted import agreed, judge_counted
from perfgate.verdict.levels import best_level, canary_helps, canary_parts, level, log_value
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
from perfgate.verdict.rules import Evidence, Suite, of_groups, suite_of
from perfgate.verdict.verdicts import Accept, Verdict, by_benchmark, unchanged, unjudged

ONLY_REGRESSED = (
    "every run that is looked back on was judged slower: mend it, or accept the new level "
    "(--perfgate-accept, or an entry in accepted.toml)"
)
Dated = tuple[Record, Run]
"""A record and the run it is of."""


@dataclass
class Rows:
    """The noisy questions, with the logs of every old and new run: above 0 is worse."""

    questions: list[Question] = field(default_factory=list)
    canary_parts: list[frozenset[str]] = field(default_factory=list)
    """What the canaries of all those runs have in common."""
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
    canary_helps: bool = False
    """Whether the canary's reading is taken off times."""
    new: dict[str, list[Record]] = field(default_factory=dict)
    """The new records of the benchmarks that are compared."""

    @cached_property
    def screen(self) -> Screen:
        """The first stage, once everything is entered."""
        return screen(self.rows.questions, self._evidence(self.rows.old, self.rows.new), self.settings)

    @property
    def candidates(self) -> set[str]:
        """Benchmarks to measure again: those that may have changed, and those that were disturbed."""
        settled = {each.id for each in self.certain if each.word in {"slower", "unjudged"}}
        disturbed = {name for name, records in self.new.items() if any(each.flags for each in records)}
        return (self.screen.candidates | disturbed) - settled

    def verdicts(self, fresh: Sequence[Dated] = (), *, planned: int = 0, accept: Accept = unchanged) -> list[Verdict]:
        """At least one verdict per benchmark. ``fresh``: candidates measured again, which alone decide on them.

        ``planned`` is how many fresh processes there are or would have been; 0 where the first look decides alone.
        ``accept`` may turn the verdict on a metric into another one, before the worst metric speaks for its benchmark.
        """
        first = self.screen
        second = self._second(first, fresh) if planned and first.nominated else None
        noisy = decide(first, second, self._planned(first, planned) if planned else None, len(first.questions))
        disturbed = self._disturbed(fresh)
        undisturbed = [each for each in noisy if each.id not in disturbed]
        return by_benchmark(map(accept, [*self.certain, *disturbed.values(), *undisturbed]))

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

    def _second(self, first: Screen, fresh: Sequence[Dated]) -> Second:
        """What fresh processes say; where one could not be measured again, the first look has to do."""
        rows = first.nominated
        again = [
            _values(question, self.rows.canary_parts[row], [each for each in fresh if each[0].id == question.id])
            for row, question in ((row, self.rows.questions[row]) for row in rows)
        ]
        new = [values or self.rows.new[row] for values, row in zip(again, rows, strict=True)]
        evidence = self._evidence([self.rows.old[row] for row in rows], new, rows)
        return Second(evidence=evidence, how=[_processes(len(values)) for values in again])

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
        for name, records in self.new.items():
            everything = [*records, *(record for record, _ in fresh if record.id == name)]
            flags = [each.flags[0] for each in everything if each.flags]
            if len(flags) > FLAGGED_PART * len(everything):
                result[name] = unjudged(name, "flagged", f"{len(flags)} of {len(everything)} processes: {flags[0]}")
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
    found.canary_helps = canary_helps(baseline.runs)
    matched = 0
    for name, new in names.items():
        if baseline.only_regressed(name):
            found.certain.append(unjudged(name, "only-regressed", ONLY_REGRESSED))
            matched += 1
        else:
            matched += _compare_benchmark(found, new, baseline.history(name), explicit=baseline.explicit)
    if names and not matched:
        reason = f"0 of {len(names)} benchmarks have a baseline: nothing was compared; were they all renamed or moved?"
        found.certain.append(unjudged("", "nothing-in-common", reason))
    return found


def _compare_benchmark(found: Comparison, new: Sequence[Dated], old: Sequence[Dated], *, explicit: bool) -> bool:
    """Enter what there is to say or to ask about one benchmark; whether it has a baseline."""
    record, run = new[-1]
    if not old:
        found.certain.append(Verdict(id=record.id, word="new", code="new", reason="not in the baseline"))
        return False
    newest, source = old[0]
    if any(each.identity != newest.identity for each, _ in new):
        found.certain += other_parameters(record.id)
        return True
    before, now = (each.machine.soft.get("torch", "unknown") for each in (source, run))
    torches = f"{before} -> {now}" if before != now else ""
    found.new[record.id] = [each for each, _ in new]
    judged = list(judgeable(newest))
    for base in judged:
        _compare_metric(found, new, list(old) if explicit else list(level(old)), base, torches)
    if not judged:
        found.certain.append(unjudged(record.id, "no-metric", "the baseline holds no metric that could be judged"))
    return True


def _compare_metric(
    found: Comparison, new: Sequence[Dated], old: Sequence[Dated], base: Measurement, torches: str
) -> None:
    differing = [each for record, _ in new if (each := mismatch(record, base))]
    if differing:
        found.certain.append(differing[0])
    elif base.kind == "counted":
        found.certain.append(agreed([judge_counted(record, base, found.settings, torches) for record, _ in new]))
    else:
        _enter_noisy(found, new, old, base)


def _enter_noisy(found: Comparison, new: Sequence[Dated], old: Sequence[Dated], base: Measurement) -> None:
    record = new[-1][0]
    problem = problem_with(record, base.metric) or problem_with(old[0][0], base.metric)
    if problem:
        found.certain.append(dataclasses.replace(problem, id=record.id))
        return
    question = question_of(record, base)
    parts = canary_parts([run for _, run in (*old, *new)]) if found.canary_helps else frozenset()
    past = _values(question, parts, old)
    found.rows.questions.append(question)
    found.rows.canary_parts.append(parts)
    found.rows.old.append(best_level(past))
    found.rows.new.append(_values(question, parts, new))


def _values(question: Question, parts: frozenset[str], dated: Sequence[Dated]) -> list[float]:
    """The question's value in each run that has one; ``dated`` holds its benchmark only."""
    values = (log_value(each, question, parts) for each in dated)
    return [value for value in values if value is not None]


def _processes(count: int) -> str:
    """How many fresh processes decided, in words; empty for none."""
    return "" if not count else "a fresh process" if count == 1 else f"{count} fresh processes"
