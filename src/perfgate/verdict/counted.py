"""Counted metrics: exact, so that any change is a finding, whatever the noise of the machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from perfgate.results.record import Measurement, Record
from perfgate.settings import Settings
from perfgate.verdict.estimate import Estimate
from perfgate.verdict.matching import mismatch
from perfgate.verdict.verdicts import Verdict, Word, unjudged

SHOWN_KEYS = 3  # of a changed table


def judge_counted(record: Record, base: Measurement, settings: Settings, torches: str) -> Verdict:
    """One count of ``record`` against ``base``. ``torches`` tells how the versions of torch differ; empty where not.

    Across versions of torch counts inform and never gate: another version dispatches other operators.
    """
    different = mismatch(record, base)
    head = record.measurement(base.metric)
    if different or head is None:
        return different or unjudged(record.id, "metric-differs", base.metric, base.metric)
    new, old = head.values[0], base.values[0]
    if not (math.isfinite(new) and math.isfinite(old)):
        return unjudged(record.id, "not-finite", f"{base.metric} is no finite number: {old} -> {new}", base.metric)
    allowance = settings.allowance_of(base.metric, record.group, record.id)
    increases = _increases(head.table, base.table)
    grew = new - old if head.better == "lower" else old - new
    word: Word = "same"
    if abs(grew) > allowance * abs(old):
        word = "slower" if grew > 0 else "faster"
    elif increases and not allowance:
        word = "slower"  # as many in all, but of other kinds: float32 where bfloat16 was, say
    change = Estimate(*[(new / old if head.better == "lower" else old / new)] * 3) if new > 0 and old > 0 else None
    detail = f" ({', '.join(increases[:SHOWN_KEYS])})" if increases else ""
    reason = f"{head.metric} {old:,.0f} -> {new:,.0f}{detail}"
    code = f"count-{word}"
    if word != "same" and torches:
        word, code, reason = "same", "other-torch", f"{reason}; torch changed ({torches}), so counts only inform"
    return Verdict(
        id=record.id, word=word, code=code, reason=reason, metric=head.metric, change=change, threshold=allowance
    )


def agreed(verdicts: Sequence[Verdict]) -> Verdict:
    """What several processes say about one count, if they say the same."""
    words = {each.word for each in verdicts}
    if len(words) == 1:
        return verdicts[0]
    last = verdicts[-1]
    reason = f"{last.metric} differs from process to process: {'; '.join(sorted({each.reason for each in verdicts}))}"
    return unjudged(last.id, "count-varies", reason, last.metric)


def _increases(head: Mapping[str, int], base: Mapping[str, int]) -> list[str]:
    """Keys of a table that grew, largest increase first, as ``+2 aten::mm(float32)``."""
    grown = {key: count - base.get(key, 0) for key, count in head.items() if count > base.get(key, 0)}
    return [f"+{grown[key]} {key}" for key in sorted(grown, key=lambda key: (-grown[key], key))]
