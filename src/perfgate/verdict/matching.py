"""Whether two measurements are of the same thing."""

from __future__ import annotations

from collections.abc import Iterator

from perfgate.results.record import Measurement, Record
from perfgate.verdict.verdicts import Verdict, unjudged


def judgeable(record: Record) -> Iterator[Measurement]:
    """Metrics with a value and a better direction."""
    return (each for each in record.measurements if each.better != "neither" and each.values)


def mismatch(record: Record, base: Measurement) -> Verdict | None:
    """Why ``record`` has nothing to compare with ``base``; ``None`` where it has."""
    head = record.measurement(base.metric)
    if head is None:
        return unjudged(record.id, "metric-differs", f"{base.metric} is no longer measured", base.metric)
    for field in ("unit", "kind", "better"):
        now, before = getattr(head, field), getattr(base, field)
        if now != before:
            reason = f"{base.metric} has {field} {now}, in the baseline {before}"
            return unjudged(record.id, "metric-differs", reason, base.metric)
    return None


def other_parameters(name: str) -> list[Verdict]:
    """Verdicts on a benchmark that bears the name of another one."""
    reason = "its parameters changed, so it is another benchmark than the baseline's of that name"
    return [Verdict(id=name, word=word, code="other-parameters", reason=reason) for word in ("new", "gone")]
