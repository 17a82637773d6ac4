"""What to do about a regression."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from perfgate.verdict.verdicts import Verdict


def advice(verdicts: Sequence[Verdict], sides: str) -> Iterator[str]:
    """Commands to try where something is slower; ``sides`` are what ``perfgate ab`` takes to compare the same."""
    slower = [each.id for each in verdicts if each.word == "slower" and each.id]
    if not slower:
        return
    names = " or ".join(sorted({_test_of(name) for name in slower} - {""}))
    yield f"look closer: perfgate ab {sides} -- -k '{names}'"
    yield "taken on purpose? enter it in results/accepted.toml (README: Gate a change)"


def _test_of(name: str) -> str:
    """``test_a`` of ``benches/test_a.py::test_a[x]``: what pytest's ``-k`` takes, and no shell sees more in."""
    return re.sub(r"\W", "", name.partition("[")[0].rpartition("::")[2])
