"""``results/accepted.toml``: regressions that somebody took on purpose, with a reason, a limit and an end.

[[accepted]]
benchmark = "benches/test_amp.py::test_train_step[amp-bf16-mlp-b128]"
metric = "wall_seconds"
from_commit = "4f0c2a9be1d7"      # the commit that made it worse
reason = "loss scaling checks every gradient now"
limit = 0.08                      # up to 8 % worse
expires = 2027-03-31
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from perfgate.errors import EmptyFile, MissingFile, SettingsError, UnreadableRun
from perfgate.results.reader import read_text, refuse_git_leftovers
from perfgate.verdict.verdicts import ACCEPTED, Accept, Verdict

NAME = "accepted.toml"
FIELDS: dict[str, tuple[type, ...]] = {
    "benchmark": (str,),
    "metric": (str,),
    "from_commit": (str,),
    "reason": (str,),
    "limit": (int, float),
    "expires": (date,),
}
SHORTEST_COMMIT = 7
Since = Callable[[str, str], bool | None]
"""Whether a commit is part of head and not yet of a benchmark's base; ``None`` where git cannot tell."""


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """One entry."""

    benchmark: str
    metric: str
    from_commit: str
    """The commit that made it worse: the entry speaks where head has it and base does not."""
    reason: str
    limit: float
    """Largest change that is accepted, as a fraction."""
    expires: date
    """Last day."""

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            SettingsError: naming the field.
        """
        where = f"{NAME}: entry for {self.benchmark!r}"
        if not 0 < self.limit <= 1:
            raise SettingsError(f"{where}: limit = {self.limit}: a fraction up to 1 is expected (0.05 is 5 %)")
        if len(self.from_commit) < SHORTEST_COMMIT or not all(each in "0123456789abcdef" for each in self.from_commit):
            raise SettingsError(f"{where}: from_commit = {self.from_commit!r}: at least 7 hex digits are expected")
        if not self.reason.strip():
            raise SettingsError(f"{where}: reason: say why it is accepted")


def read_accepted(file: Path) -> list[Accepted]:
    """The entries of the file; none where there is no file, or nothing in it.

    Raises:
        SettingsError: where it cannot be read, naming what is wrong.
    """
    try:
        text = read_text(file)
        refuse_git_leftovers(text, str(file))
        document = tomllib.loads(text)
    except (MissingFile, EmptyFile):
        return []
    except UnreadableRun as error:
        raise SettingsError(str(error)) from error
    except (ValueError, RecursionError) as error:  # an integer of 5,000 digits is no TOMLDecodeError
        raise SettingsError(f"{file}: not readable as TOML: {error}") from error
    tables = document.get("accepted", [])
    if set(document) - {"accepted"} or not isinstance(tables, list):
        raise SettingsError(f"{file}: only [[accepted]] tables are expected")
    wrong = next((each for each in tables if not isinstance(each, dict)), None)
    if wrong is not None:
        raise SettingsError(f"{file}: accepted has {wrong!r}: [[accepted]] tables are expected")
    return [_entry(each, file) for each in tables]


def _entry(table: dict[str, Any], file: Path) -> Accepted:
    where = f"{file.name}: entry for {table.get('benchmark', '(no benchmark)')!r}"
    for key in table.keys() ^ FIELDS.keys():
        raise SettingsError(f"{where}: {key} is {'missing' if key in FIELDS else 'not a field'}")
    for key, wanted in FIELDS.items():
        if type(table[key]) not in wanted:  # a bool is an int, and a time of day a date
            raise SettingsError(f"{where}: {key} has the wrong type: {table[key]!r}")
    return Accepted(**table)


def accepting(entries: Sequence[Accepted], since: Since, today: date) -> Accept:
    """Turns ``slower`` into ``same`` where an entry speaks for this benchmark and metric; else says why none does."""

    def accept(verdict: Verdict) -> Verdict:
        mine = [each for each in entries if (each.benchmark, each.metric) == (verdict.id, verdict.metric)]
        if verdict.word != "slower" or not mine:
            return verdict
        objections = [_objection(each, verdict, since, today) for each in mine]
        for entry, objection in zip(mine, objections, strict=True):
            if not objection:
                note = f"accepted up to {entry.limit:.1%} until {entry.expires}: {entry.reason}"
                return dataclasses.replace(verdict, word="same", code=ACCEPTED, reason=f"{verdict.reason}; {note}")
        return dataclasses.replace(verdict, reason=f"{verdict.reason}; not accepted by {NAME}: {objections[-1]}")

    return accept


def _objection(entry: Accepted, verdict: Verdict, since: Since, today: date) -> str:
    """Why the entry does not speak here; empty where it does."""
    if today > entry.expires:
        return f"the entry expired on {entry.expires}"
    if verdict.change is None or verdict.change.value > 1 + entry.limit:
        return f"it is more than the limit of {entry.limit:.1%}"
    concerned = since(entry.from_commit, verdict.id)
    if concerned is None:
        return f"git cannot tell whether commit {entry.from_commit} is new here (a shallow clone?)"
    return (
        "" if concerned else f"commit {entry.from_commit} is not what is new here: it is in base already or not in head"
    )
