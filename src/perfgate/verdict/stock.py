"""``--benchmark-compare-fail`` given by a user stays as an extra limit, on the statistics it names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from perfgate.results.baseline import Baseline
from perfgate.results.record import Record
from perfgate.verdict.verdicts import Verdict


class Limit(Protocol):
    """pytest-benchmark's parsed check."""

    def fails(self, current: Any, compared: Any) -> str | None:
        """The reason, where ``current`` exceeds ``compared`` by too much; both map statistics to values."""


def exceeded_limits(limits: Sequence[Limit], records: Iterable[Record], baseline: Baseline) -> list[Verdict]:
    """One failing verdict per benchmark and limit that it exceeds."""
    old = baseline.records
    verdicts = []
    for record in records if limits else ():
        base = old.get(record.id)
        ours, theirs = (
            stock_statistics(record),
            stock_statistics(base) if base and base.identity == record.identity else None,
        )
        reasons = [limit.fails(ours, theirs) for limit in limits] if ours and theirs else []
        verdicts += [
            Verdict(id=record.id, word="slower", code="stock-limit", reason=reason, metric="wall_seconds")
            for reason in reasons
            if reason
        ]
    return verdicts


def stock_statistics(record: Record) -> Any:
    """pytest-benchmark's statistics of the record's times; ``None`` without any."""
    from pytest_benchmark.stats import Stats

    time = record.measurement("wall_seconds")
    if time is None:
        return None
    statistics = Stats()
    for value in time.values:
        statistics.update(value)
    return statistics.as_dict()
