"""The plan of a session as lines for a terminal of 80 columns, or for a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from perfgate.plan import Plan, Planned
from perfgate.report import numbers, text

NARROWEST = 40
WIDEST_GROUP = 40
HEADINGS = {"skip": "skipped", "broken": "fail before they measure", "unseen": "listed only"}
NONE = "(no group)"


def lines(plan: Plan, *, columns: int, verbose: bool) -> Iterator[str]:
    """The whole plan; ``verbose`` names each benchmark."""
    width = max(columns, NARROWEST) - 1  # a full line wraps in some terminals
    yield from _table(plan)
    yield from _reasons(plan, width)
    if verbose:
        yield from _each(plan)
    yield ""
    yield from textwrap.wrap(_total(plan), width)


def _table(plan: Plan) -> Iterator[str]:
    rows = [(text.plain(group or NONE), members) for group, members in plan.groups()]
    wide = min(max((len(group) for group, _ in rows), default=0), WIDEST_GROUP)
    if rows:
        yield f"{'group':{wide}}  {'run':>4}  {'skip':>4}  about"
    for group, members in rows:
        run = sum(each.runs for each in members)
        name = group if len(group) <= wide else f"{group[: wide - 3]}..."
        yield f"{name:{wide}}  {run:>4}  {len(members) - run:>4}  {_about(plan, members) if run else '-'}"


def _about(plan: Plan, members: Sequence[Planned]) -> str:
    estimate = plan.estimate(members)
    return "unknown" if estimate.seconds is None else numbers.duration(estimate.seconds)


def _reasons(plan: Plan, width: int) -> Iterator[str]:
    for state in ("skip", "broken", "unseen"):
        found = plan.reasons(state)  # type: ignore[arg-type]
        if found:
            yield ""
            yield f"{HEADINGS[state]}:"
        for reason, count in found:
            yield from textwrap.wrap(
                text.line(reason), width, initial_indent=f"{count:>5}  ", subsequent_indent=" " * 7
            )


def _each(plan: Plan) -> Iterator[str]:
    for group, members in plan.groups():
        yield ""
        yield f"{text.plain(group or NONE)}:"
        for each in members:
            known = numbers.duration(each.seconds) if each.runs and each.seconds is not None else ""
            yield f"  {'run' if each.runs else each.state:6}  {known:>10}  {text.plain(each.name)}"


def _total(plan: Plan) -> str:
    running, estimate = len(plan.running), plan.estimate(plan.benchmarks)
    if not plan.benchmarks:
        return "PLAN no benchmark is selected: look at the paths, -k and -m"
    told = f"PLAN {running} of {len(plan.benchmarks)} benchmarks would run"
    if plan.others:
        told += f", and {plan.others} tests that are none"
    if not running:
        return told
    if estimate.seconds is None:
        return f"{told}; how long is unknown: none of them has a saved run on this machine"
    told += f", in about {numbers.duration(estimate.seconds)}"
    if estimate.guessed == running and not any(each.seconds for each in plan.benchmarks):
        return f"{told} (none was ever measured here: guessed from the time budgets of [tool.perfgate])"
    if estimate.guessed:
        told += f" ({estimate.guessed} were never measured here and count as the median of the others)"
    return told
