"""Verdicts on benchmarks of which some process had no number."""

from __future__ import annotations

from collections.abc import Sequence

from perfgate.pairs.experiment import Heard
from perfgate.verdict.verdicts import Verdict, Word, unjudged


def unmeasured(base: Heard, head: Heard, judged: Sequence[Verdict]) -> list[Verdict]:
    """The judged verdicts, replaced where a side failed or died, and more for benchmarks and files without any."""
    by_name: dict[str, Verdict] = {each.id: each for each in judged}
    for name in {**base.ids, **head.ids, **dict.fromkeys(sorted((base.own or set()) | (head.own or set())))}:
        verdict = _verdict(name, base, head, by_name.get(name))
        if verdict is not None:
            by_name[name] = verdict
    files = [
        Verdict(id=file, word="failed", code="not-collected", reason=f"cannot be collected: {reason}")
        for file, reason in head.problems.items()
    ]
    return [*files, *by_name.values()]


def _verdict(name: str, base: Heard, head: Heard, judged: Verdict | None) -> Verdict | None:
    """What is to be said instead of the judgement; ``None`` where it stands.

    A failure of head always counts; an accident replaces no regression.
    """
    found = head.outcomes.get(name)
    if found and found["word"] == "failed":
        return _told(name, found)
    death = head.deaths.get(name) or base.deaths.get(name)
    if death and not (judged and judged.word == "slower"):
        return unjudged(name, death.code, death.reason)
    return None if judged else _without_number(name, base, head)


def _without_number(name: str, base: Heard, head: Heard) -> Verdict:
    """Why no pair measured it on both sides."""
    found, before = head.outcomes.get(name), base.outcomes.get(name)
    if not _has(head, name) or not _has(base, name):
        return _one_sided(name, base, head)
    if found and found["word"] == "skipped" and not before:
        return Verdict(id=name, word="skipped", code="skipped-unexpectedly", reason=found["reason"])
    if before and before["word"] == "failed" and not found:
        return _failing_in_base(name, base, f"fails in base: {before['reason']}")
    if found or before:
        return _told(name, found or before or {})
    why = base.problems.get(name.partition("::")[0], "")
    return unjudged(name, "not-measured", f"base cannot run it: {why}" if why else "no pair measured it")


def _has(side: Heard, name: str) -> bool:
    """Whether the side's own benchmarks, where they were looked at, or else those it collected have this one."""
    return name in (side.own if side.own is not None else side.ids)


def _failing_in_base(name: str, base: Heard, reason: str) -> Verdict:
    """New where head mended or brought it; not judged where base has it in a form of its own."""
    if base.own is not None and name in base.own:
        return unjudged(name, "base-cannot-run", f"{reason}; base has a benchmark of that name of its own")
    return Verdict(id=name, word="new", code="fails-in-base", reason=reason)


def _one_sided(name: str, base: Heard, head: Heard) -> Verdict:
    if not _has(head, name):
        return Verdict(id=name, word="gone", code="gone", reason="head has no such benchmark")
    why = base.problems.get(name.partition("::")[0], "")
    return Verdict(id=name, word="new", code="new", reason=f"not in base{f': {why}' if why else ''}")


def _told(name: str, outcome: dict[str, str]) -> Verdict:
    words: dict[str, Word] = {"failed": "failed", "skipped": "skipped"}
    return Verdict(id=name, word=words.get(outcome["word"], "unjudged"), code=outcome["code"], reason=outcome["reason"])
