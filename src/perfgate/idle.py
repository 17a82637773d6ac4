"""Limits in ``[tool.perfgate]`` that apply to nothing: a name that was mistyped, or that the suite no longer has."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from perfgate.scope import Scope
from perfgate.settings import Settings, fits

SHARED_KEYS = {"threshold", "alpha"}
TYPO = 0.9  # similarity at which one metric is another one mistyped: compile_seconds is not warm_compile_seconds, 0.86


@dataclass(frozen=True, kw_only=True)
class Suite:
    """What limits can apply to."""

    names: Collection[str]
    """Node ids of all benchmarks that were collected, deselected ones included."""
    groups: Collection[str]
    metrics: Collection[str]
    """Those that were measured."""


def idle_limits(settings: Settings, suite: Suite, scope: Scope) -> Iterator[str]:
    """A sentence per name that fits nothing in ``suite``.

    Only where that is certain: benchmarks inside of ``scope``, groups where all of the suite was collected. Which
    metrics there are depends on the machine, so one that was not measured is named where it resembles one that was.
    """
    for key in settings.benchmarks:
        if scope.covers(key) and not any(fits(key, name) for name in suite.names):
            yield _sentence(".benchmarks", key, suite.names)
    if scope.full:
        for key in settings.groups:
            if key not in suite.groups:
                yield _sentence(".groups", key, suite.groups)
    for where, table in settings.tables():
        for key in table:
            unknown = key not in SHARED_KEYS and key not in suite.metrics
            if unknown and difflib.get_close_matches(key, suite.metrics, n=1, cutoff=TYPO):
                yield _sentence(where, key, suite.metrics)


def _sentence(where: str, key: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"[tool.perfgate{where}] {key!r} fits nothing that was measured, so its limit applies nowhere{hint}"
