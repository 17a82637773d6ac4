"""A run against its baseline. One saved run against one new one: a ratio of medians against a threshold, and counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfgate.results.baseline import Baseline
from perfgate.results.record import Measurement, Record, Run
from perfgate.settings import Settings
from perfgate.verdict.estimate import Estimate, median_estimate, ratio_of
from perfgate.verdict.verdicts import Verdict, Word, worst

FEWEST_SAMPLES = 5
SHOWN_KEYS = 3  # of a changed table


@dataclass(frozen=True)
class Comparison:
    """What the rules need to know beside the two measurements."""

    settings: Settings
    same_torch: bool
    """Counts are compared exactly under one torch version only."""


def judge(run: Run, baseline: Baseline, settings: Settings) -> list[Verdict]:
    """At least one verdict per benchmark of the run."""
    if not baseline.runs:
        code = "unreadable-baseline" if baseline.unreadable else "no-baseline"
        return [_unjudged(each.id, code, baseline.absence) for each in run.records]
    verdicts: list[Verdict] = []
    for record in run.records:
        old, source = baseline.newest.get(record.id, (None, run))
        same_torch = source.machine.soft.get("torch") == run.machine.soft.get("torch")
        verdicts += _judge_record(record, old, Comparison(settings, same_torch))
    if run.records and not any(record.id in baseline.newest for record in run.records):
        count = len(run.records)
        reason = f"0 of {count} benchmarks have a baseline: nothing was compared; were they all renamed or moved?"
        verdicts.append(Verdict(id="", word="unjudged", code="nothing-in-common", reason=reason))
    return verdicts


def gone(missing: Collection[str]) -> list[Verdict]:
    """Verdicts on benchmarks that are in the baseline and in the session's scope, and did not run."""
    reason = "in the baseline, but not run"
    return [Verdict(id=name, word="gone", code="gone", reason=reason) for name in sorted(missing)]


def with_verdicts(run: Run, verdicts: Sequence[Verdict]) -> Run:
    """The run with each record's verdict in it, so that what is slower does not become the baseline unnoticed."""
    words = {verdict.id: verdict.word for verdict in reversed(verdicts)}
    records = tuple(dataclasses.replace(record, verdict=words.get(record.id, "")) for record in run.records)
    return dataclasses.replace(run, records=records)


def _judge_record(new: Record, old: Record | None, comparison: Comparison) -> Iterator[Verdict]:
    if old is None:
        yield Verdict(id=new.id, word="new", code="new", reason="not in the baseline")
    elif old.identity != new.identity:
        reason = "its parameters changed, so it is another benchmark than the baseline's of that name"
        yield Verdict(id=new.id, word="new", code="other-parameters", reason=reason)
        yield Verdict(id=new.id, word="gone", code="other-parameters", reason=reason)
    else:
        yield worst(judge_metrics(new, old, comparison))


def judge_metrics(new: Record, old: Record, comparison: Comparison) -> list[Verdict]:
    """One verdict per metric that has a better direction and a value in the baseline."""
    verdicts = []
    for base in old.measurements:
        if base.better == "neither" or not base.values:
            continue
        head = new.measurement(base.metric)
        if head is None or head.unit != base.unit:
            found = "is no longer measured" if head is None else f"has unit {head.unit}, in the baseline {base.unit}"
            verdicts.append(_unjudged(new.id, "metric-differs", f"{base.metric} {found}", base.metric))
        elif base.kind == "counted":
            verdicts.append(_judge_counted(new.id, head, base, comparison))
        else:
            verdicts.append(
                _judge_sampled(new.id, head, base, comparison.settings.threshold_of(base.metric, new.group))
            )
    return verdicts or [_unjudged(new.id, "no-metric", "the baseline holds no metric that could be judged")]


def _judge_sampled(name: str, head: Measurement, base: Measurement, threshold: float) -> Verdict:
    fewest = min(len(head.values), len(base.values))
    if fewest < FEWEST_SAMPLES:
        reason = f"too few samples ({fewest} < {FEWEST_SAMPLES})"
        return _unjudged(name, "too-few-samples", reason, head.metric)
    if min(*head.values, *base.values) <= 0:
        return _unjudged(name, "not-positive", f"{head.metric} has values that are not above 0", head.metric)
    change = ratio_of(median_estimate(head.values), median_estimate(base.values))
    if head.better == "higher":
        change = Estimate(1 / change.value, 1 / change.high, 1 / change.low)
    word = _word(change, threshold)
    reason = f"{head.metric} changed by {change.value - 1:+.1%} (limit {threshold:.0%})"
    return Verdict(id=name, word=word, code=word, reason=reason, metric=head.metric, change=change, threshold=threshold)


def _word(change: Estimate, threshold: float) -> Word:
    if change.value >= 1 + threshold and change.low > 1:
        return "slower"
    if change.value <= 1 / (1 + threshold) and change.high < 1:
        return "faster"
    too_wide = change.high / change.low > (1 + threshold) ** 2
    return "unsure" if too_wide else "same"


def _judge_counted(name: str, head: Measurement, base: Measurement, comparison: Comparison) -> Verdict:
    new, old = head.values[0], base.values[0]
    allowance = comparison.settings.allowance_of(base.metric)
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
    if word != "same" and not comparison.same_torch:
        return Verdict(
            id=name,
            word="same",
            code="other-torch",
            metric=head.metric,
            reason=f"{reason}; torch changed, so counts only inform",
        )
    return Verdict(
        id=name, word=word, code=f"count-{word}", reason=reason, metric=head.metric, change=change, threshold=allowance
    )


def _increases(head: Mapping[str, int], base: Mapping[str, int]) -> list[str]:
    """Keys of a table that grew, largest increase first, as ``+2 aten::mm(float32)``."""
    grown = {key: count - base.get(key, 0) for key, count in head.items() if count > base.get(key, 0)}
    return [f"+{grown[key]} {key}" for key in sorted(grown, key=lambda key: (-grown[key], key))]


def _unjudged(name: str, code: str, reason: str, metric: str = "") -> Verdict:
    return Verdict(id=name, word="unjudged", code=code, reason=reason, metric=metric)
