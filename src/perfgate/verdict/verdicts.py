"""Verdicts: the words, what stands beside them, and the exit code they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from perfgate.verdict.estimate import Estimate

Word = Literal["same", "faster", "slower", "unsure", "new", "gone", "unjudged", "failed", "skipped"]
SEVERITY: tuple[Word, ...] = ("failed", "slower", "unjudged", "gone", "unsure", "new", "faster", "skipped", "same")
"""Worst first: the order of reports, and which word a benchmark gets whose metrics have several."""
FAILING_CODES = {"nothing-in-common", "unreadable-baseline", "stock-limit", "no-measurement"}
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


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict that stands for all of a benchmark's metrics."""
    return min(verdicts, key=lambda each: SEVERITY.index(each.word))


def tally(verdicts: Iterable[Verdict]) -> Mapping[Word, int]:
    """How many verdicts each word has, worst first, without zeros."""
    words = [each.word for each in verdicts]
    return {word: words.count(word) for word in SEVERITY if word in words}


def is_failure(verdict: Verdict, *, strict: bool) -> bool:
    """Whether this verdict makes the session fail."""
    if verdict.word in {"slower", "failed"} or verdict.code in FAILING_CODES:
        return True
    return strict and (verdict.word in {"gone", "unjudged"} or verdict.code == "skipped-unexpectedly")
