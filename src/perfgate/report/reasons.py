"""Why, for every verdict that is not plainly fine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from perfgate.report import numbers, text
from perfgate.report.table import STYLES
from perfgate.verdict.verdicts import SEVERITY, Verdict

FINE = frozenset({"same", "new", "faster"})
MOST_UNSURE = 3
"""More than these are told in one line: what was visible stands below."""
WORTH_TELLING = {"accepted", "other-torch", "fails-in-base"}
"""Codes of verdicts that are fine and still to be told."""


def reasons(verdicts: Sequence[Verdict], fine: Collection[str] = FINE) -> Iterator[str]:
    """Lines, worst first; equal reasons together. Verdicts whose word is ``fine`` need none."""
    found: dict[tuple[int, str], list[Verdict]] = {}
    unsure = [each for each in verdicts if each.word == "unsure"]
    many = len(unsure) > MOST_UNSURE
    for verdict in verdicts:
        if many and verdict.word == "unsure" and verdict.code not in WORTH_TELLING:
            continue
        if verdict.word not in fine or verdict.code in WORTH_TELLING:
            found.setdefault((SEVERITY.index(verdict.word), verdict.reason), []).append(verdict)
    for (_, reason), group in sorted(found.items()):
        names = [each.id for each in group if each.id]
        word = group[0].word
        where = f" {text.name(names[0])}" if len(names) == 1 else f" {len(names)} benchmarks" if names else ""
        yield f"[{STYLES.get(word, 'default')}]{word}[/]{where}: {text.sentence(reason)}"
    if many:
        limits = sorted({numbers.fraction(each.threshold) for each in unsure if each.threshold is not None})
        yield f"[{STYLES['unsure']}]unsure[/] {len(unsure)} benchmarks: too noisy to tell at {' or '.join(limits)}"
