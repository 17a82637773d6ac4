"""The report of a comparison of two sides: changed rows, why, what was visible, what to do, one verdict line."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table

from perfgate.report import numbers, text
from perfgate.report.page import page
from perfgate.report.reasons import FINE, reasons
from perfgate.report.table import STYLES
from perfgate.verdict.verdicts import PASSED, REGRESSED, SEVERITY, Verdict, exit_code, is_failure, tally

UNCHANGED = {"same", "new", "skipped", "gone"}
MOST_ROWS = 20
WIDE_COLUMNS = 110  # from here on a row holds a whole benchmark id beside its figures; else the reasons tell all
ENDINGS = {0: ("green", "PASS"), 1: ("red", "FAIL"), 3: ("yellow", "NOT JUDGED")}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What there is to tell."""

    title: str
    verdicts: Sequence[Verdict]
    strict: bool
    notes: Sequence[str] = ()
    advice: Sequence[str] = ()
    """What to do next, where something is not fine."""

    identical: bool = False
    """Whether nothing that runs differs, so that nothing had to be measured."""

    @property
    def exit_code(self) -> int:
        """Of the command."""
        if self.identical:
            return REGRESSED if any(is_failure(each, strict=self.strict) for each in self.verdicts) else PASSED
        return exit_code(self.verdicts, strict=self.strict)


def render(comparison: Comparison, *, columns: int, colour: bool) -> str:
    """The report as text for a terminal of so many columns."""
    return page(_blocks(comparison, columns), columns=columns, colour=colour)


def _blocks(comparison: Comparison, columns: int) -> Iterator[RenderableType]:
    yield f"[bold]{text.sentence(comparison.title)}[/bold]"
    yield from (text.sentence(each) for each in comparison.notes)
    wide = columns >= WIDE_COLUMNS
    changed = [each for each in comparison.verdicts if each.word not in UNCHANGED and each.change is not None]
    changed.sort(key=lambda each: (SEVERITY.index(each.word), -(each.change.value if each.change else 1.0)))
    if changed and wide:
        yield ""
        yield _table(changed[:MOST_ROWS])
        if len(changed) > MOST_ROWS:
            yield f"  and {len(changed) - MOST_ROWS} more"
    yield ""
    yield from reasons(comparison.verdicts, fine=FINE if wide else FINE - {"faster"})
    yield from seen(comparison.verdicts)
    code = comparison.exit_code
    if comparison.identical and not code:
        yield "[bold green]PASS[/] nothing that runs differs; nothing was measured"
        return
    yield from (text.sentence(each) for each in comparison.advice if code)
    counts = ", ".join(f"{count} {word}" for word, count in tally(comparison.verdicts).items()) or "nothing compared"
    style, word = ENDINGS[code]
    yield f"[bold {style}]{word}[/] {counts}"


def _table(verdicts: Sequence[Verdict]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=True, header_style="dim")
    table.add_column("", ratio=1, overflow="fold")
    for title in ("metric", "worse by [95 %]", "limit", "visible", "verdict"):
        table.add_column(title, justify="left" if title in {"metric", "verdict"} else "right", no_wrap=True)
    for each in verdicts:
        table.add_row(text.name(each.id), text.name(each.metric), *cells(each), styled(each))
    return table


def cells(verdict: Verdict) -> tuple[str, str, str]:
    """Change with interval, limit, and the smallest change that was visible."""
    change = verdict.change
    worse = numbers.UNKNOWN
    if change is not None:
        worse = numbers.change(change.value)
        if change.low != change.high:
            worse += f" \\[{numbers.percent(change.low)}, {numbers.percent(change.high)}]"
    limit = numbers.UNKNOWN if verdict.threshold is None else numbers.fraction(verdict.threshold)
    return worse, limit, numbers.fraction(verdict.detectable) if verdict.detectable is not None else "exact"


def styled(verdict: Verdict) -> str:
    """The word, coloured; its meaning does not depend on that."""
    return f"[{STYLES.get(verdict.word, 'default')}]{verdict.word}[/]"


def seen(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What size of change this comparison could see."""
    noisy = [each for each in verdicts if each.detectable is not None]
    if not noisy:
        return
    sizes = sorted(each.detectable for each in noisy if each.detectable is not None)
    worst = max(noisy, key=lambda each: each.detectable or 0.0)
    largest = numbers.fraction(sizes[-1]) if math.isfinite(sizes[-1]) else "none at all"
    yield (
        f"visible changes (4 of 5 times): {numbers.fraction(statistics.median(sizes))} in the median benchmark, "
        f"{largest} in {text.name(worst.id)}"
    )
