"""Why, for every verdict that is not plainly fine."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from perfgate.report import text
from perfgate.report.table import STYLES
from perfgate.verdict.verdicts import SEVERITY, Verdict

FINE = frozenset({"same", "new", "faster"})
WORTH_TELLING = {"accepted", "other-torch", "fails-in-base"}
"""Codes of verdicts that are fine and still to be told."""


def reasons(verdicts: Sequence[Verdict], fine: Collection[str] = FINE) -> Iterator[str]:
    """Lines, worst first; equal reasons together. Verdicts whose word is ``fine`` need none."""
    found: dict[tuple[int, str], list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.word not in fine or verdict.code in WORTH_TELLING:
            found.setdefault((SEVERITY.index(verdict.word), verdict.reason), []).append(verdict)
    for (_, reason), group in sorted(found.items()):
        names = [each.id for each in group if each.id]
        word = group[0].word
        where = f" {text.name(names[0])}" if len(names) == 1 else f" {len(names)} benchmarks" if names else ""
        yield f"[{STYLES.get(word, 'default')}]{word}[/]{where}: {text.sentence(reason)}"
