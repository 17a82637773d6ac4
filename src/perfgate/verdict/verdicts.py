"""Verdicts: the words, what stands beside them, and the exit code they add up to."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfgate.results.record import Run
from perfgate.verdict.estimate import Estimate

Word = Literal["same", "faster", "slower", "unsure", "new", "gone", "unjudged", "failed", "skipped"]
PASSED, REGRESSED, USAGE_ERROR, NOT_JUDGED = range(4)
"""Exit codes."""
SEVERITY: tuple[Word, ...] = ("failed", "slower", "unjudged", "gone", "unsure", "new", "faster", "skipped", "same")
"""Worst first: the order of reports, and which word a benchmark gets whose metrics have several."""
ACCEPTED = "accepted"
"""Code of a regression that somebody took on purpose, and the word its record keeps: it begins a new level."""
WORTH_LISTING = {"slower", "unjudged"}
"""Words of which every metric's reason is told, not only the first one's."""
FAULTS = frozenset(
    {
        "compile-cache",
        "crashed",
        "cuda-error",
        "device-lost",
        "died-twice",
        "disk-full",
        "fork-after-cuda",
        "hung",
        "loader-died",
        "loader-hung",
        "not-run",
        "open-files",
        "out-of-memory",
        "processes",
        "shared-memory",
    }
)
"""Codes of benchmarks that the machine kept from giving a number: see :mod:`perfgate.faults`."""
FAILING_CODES = {"nothing-in-common", "unreadable-baseline", "stock-limit", "no-measurement", "only-regressed"} | FAULTS
"""Reasons that fail the session whatever the word: a comparison that cannot happen must not look like a clean one."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is said about one benchmark, with the metric that decided."""

    id: str
    word: Word
    code: str
    """A short stable reason for machines."""
    reason: str
    """The reason as a sentence."""
    metric: str = ""
    """The metric that decided; empty where none did."""
    change: Estimate | None = None
    """Head / base of that metric, above 1 where it got worse; ``None`` where nothing was compared."""
    threshold: float | None = None
    """The change that would have been too much, as a fraction."""
    detectable: float | None = None
    """The smallest change that these data would have shown in four of five cases, as a fraction; ``None`` where
    nothing is uncertain, infinite where none would have been seen."""


Accept = Callable[[Verdict], Verdict]
"""What somebody accepted turns ``slower`` into ``same``; see :mod:`perfgate.verdict.accepted`."""


def unjudged(name: str, code: str, reason: str, metric: str = "") -> Verdict:
    """A verdict that there can be none, and why."""
    return Verdict(id=name, word="unjudged", code=code, reason=reason, metric=metric)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that stands for all of a benchmark's metrics; the reasons of others as bad stand beside its own."""
    ordered = sorted(verdicts, key=_importance)
    others = [each.reason for each in ordered[1:] if each.word == ordered[0].word and each.word in WORTH_LISTING]
    if not others:
        return ordered[0]
    return dataclasses.replace(ordered[0], reason="; ".join([ordered[0].reason, *others]))


def _importance(verdict: Verdict) -> tuple[int, bool, bool]:
    """Worst first. Among equals what was accepted, then a count, which is certain; of what is fine the noisy one."""
    counted = verdict.detectable is None
    return (
        SEVERITY.index(verdict.word),
        verdict.code != ACCEPTED,
        counted if verdict.word == "same" else not counted,
    )


def unchanged(verdict: Verdict) -> Verdict:
    """Accept nothing."""
    return verdict


def by_benchmark(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """One verdict per benchmark, of its worst metric; a benchmark that is new or gone has nothing else to say."""
    grouped: dict[str, list[Verdict]] = {}
    for each in verdicts:
        grouped.setdefault(each.id, []).append(each)
    result: list[Verdict] = []
    for found in grouped.values():
        one_sided = [each for each in found if each.word in {"new", "gone"}]
        result += one_sided or [_with_acceptance(worst(found), found)]
    return result


def _with_acceptance(verdict: Verdict, found: Sequence[Verdict]) -> Verdict:
    """The verdict, marked and telling where a regression of another metric was accepted and nothing else fails."""
    accepted = [each.reason for each in found if each.code == ACCEPTED]
    if not accepted or verdict.code == ACCEPTED or verdict.word in {"slower", "failed"}:
        return verdict
    return dataclasses.replace(verdict, code=ACCEPTED, reason="; ".join([verdict.reason, *accepted]))


def tally(verdicts: Iterable[Verdict]) -> Mapping[Word, int]:
    """How many verdicts each word has, worst first, without zeros."""
    words = [each.word for each in verdicts]
    return {word: words.count(word) for word in SEVERITY if word in words}


def is_failure(verdict: Verdict, *, strict: bool) -> bool:
    """Whether this verdict makes the session fail."""
    if verdict.word in {"slower", "failed"} or verdict.code in FAILING_CODES:
        return True
    return strict and (verdict.word in {"gone", "unjudged"} or verdict.code == "skipped-unexpectedly")


def exit_code(verdicts: Sequence[Verdict], *, strict: bool) -> int:
    """Of ``ab`` and ``compare``: 1 where something regressed or failed, 3 where something could not be judged, else 0.

    Nothing judged at all is 3: a gate that measured nothing does not pass.
    """
    if any(is_failure(each, strict=strict) for each in verdicts if each.word != "unjudged"):
        return REGRESSED
    judged = any(each.word in {"same", "faster", "unsure"} for each in verdicts)
    return NOT_JUDGED if not judged or any(each.word == "unjudged" for each in verdicts) else PASSED


def gone(missing: Collection[str]) -> list[Verdict]:
    """Verdicts on benchmarks that are in the baseline and in the session's scope, and did not run."""
    reason = "in the baseline, but not run"
    return [Verdict(id=name, word="gone", code="gone", reason=reason) for name in sorted(missing)]


def with_verdicts(run: Run, verdicts: Sequence[Verdict], *, accept: bool = False) -> Run:
    """The run with each record's verdict in it, so that what is slower does not become the baseline unnoticed.

    ``accept`` marks what is slower as a level that was accepted and begins a new history.
    """
    words = {verdict.id: _word_to_keep(verdict, accept=accept) for verdict in reversed(verdicts)}
    records = tuple(dataclasses.replace(record, verdict=words.get(record.id, "")) for record in run.records)
    return dataclasses.replace(run, records=records)


def _word_to_keep(verdict: Verdict, *, accept: bool) -> str:
    regressed = verdict.word == "slower" or verdict.code == "only-regressed"
    accepted = verdict.code == ACCEPTED or (accept and regressed)
    if verdict.word == "faster" and verdict.detectable is None:  # a count: times keep their history
        return "same"
    return ACCEPTED if accepted else "slower" if regressed else verdict.word
