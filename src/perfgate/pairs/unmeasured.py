"""Verdicts on benchmarks of which some process had no number."""

from __future__ import annotations

from collections.abc import Sequence

from perfgate.pairs.experiment import Heard
from perfgate.verdict.verdicts import Verdict, Word, unjudged


def unmeasured(base: Heard, head: Heard, judged: Sequence[Verdict]) -> list[Verdict]:
    """The judged verdicts, replaced where a side failed or died, and more for benchmarks and files without any."""
    by_name: dict[str, Verdict] = {each.id: each for each in judged}
    for name in {**base.ids, **head.ids}:
        verdict = _verdict(name, base, head, judged=name in by_name)
        if verdict is not None:
            by_name[name] = verdict
    files = [
        Verdict(id=file, word="failed", code="not-collected", reason=f"cannot be collected: {reason}")
        for file, reason in head.problems.items()
    ]
    return [*files, *by_name.values()]


def _verdict(name: str, base: Heard, head: Heard, *, judged: bool) -> Verdict | None:
    """What is to be said instead of the judgement; ``None`` where it stands."""
    death = head.deaths.get(name) or base.deaths.get(name)
    if death:
        return unjudged(name, death.code, death.reason)
    if name not in head.ids or name not in base.ids:
        return _one_sided(name, base, head)
    found, before = head.outcomes.get(name), base.outcomes.get(name)
    if found and found["word"] == "skipped" and not before:
        return Verdict(id=name, word="skipped", code="skipped-unexpectedly", reason=found["reason"])
    if before and before["word"] == "failed" and not found:
        return Verdict(id=name, word="new", code="fails-in-base", reason=f"fails in base: {before['reason']}")
    if found or before:
        return _told(name, found or before or {})
    return None if judged else unjudged(name, "not-measured", "no pair measured it")


def _one_sided(name: str, base: Heard, head: Heard) -> Verdict:
    if name not in head.ids:
        return Verdict(id=name, word="gone", code="gone", reason="head has no such benchmark")
    found = head.outcomes.get(name)
    if found and found["word"] == "failed":
        return _told(name, found)
    why = base.problems.get(name.partition("::")[0], "")
    return Verdict(id=name, word="new", code="new", reason=f"not in base{f': {why}' if why else ''}")


def _told(name: str, outcome: dict[str, str]) -> Verdict:
    words: dict[str, Word] = {"failed": "failed", "skipped": "skipped"}
    return Verdict(id=name, word=words.get(outcome["word"], "unjudged"), code=outcome["code"], reason=outcome["reason"])
