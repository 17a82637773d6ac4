"""What the plugin keeps on pytest's config and items, for its hooks in several modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from perfgate.gate import Gate
    from perfgate.results.record import Record
    from perfgate.verdict.stock import Limit
    from perfgate.verdict.verdicts import Verdict

GATE: pytest.StashKey[Gate] = pytest.StashKey()
VERDICTS: pytest.StashKey[Sequence[Verdict]] = pytest.StashKey()
LIMITS: pytest.StashKey[Sequence[Limit]] = pytest.StashKey()
"""Those of ``--benchmark-compare-fail``."""
FAILURE: pytest.StashKey[str] = pytest.StashKey()
"""Why the session cannot say anything at all."""
DESELECTED: pytest.StashKey[set[str]] = pytest.StashKey()
COLLECTED: pytest.StashKey[frozenset[str]] = pytest.StashKey()
"""Ids of the benchmarks that belong to the session, those that need not run again included."""
GROUPS: pytest.StashKey[frozenset[str]] = pytest.StashKey()
"""Those of the benchmarks."""
BROKEN: pytest.StashKey[bool] = pytest.StashKey()
"""Whether files could not be collected."""
OWN_CACHE: pytest.StashKey[bool] = pytest.StashKey()
TERMINAL: pytest.StashKey[int] = pytest.StashKey()
"""A descriptor of the real standard error, which pytest captures."""
RECORD: pytest.StashKey[Record] = pytest.StashKey()


def is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one (xdist)."""
    return hasattr(config, "workerinput")


def is_benchmark(item: pytest.Item) -> bool:
    """Whether a test measures."""
    return bool({"measure", "benchmark"} & set(getattr(item, "fixturenames", ())))


def group_of(item: pytest.Item) -> str:
    """The group a benchmark was put into."""
    marker = item.get_closest_marker("benchmark")
    return str(marker.kwargs.get("group") or "") if marker else ""


def say(config: pytest.Config, text: str) -> None:
    """Show a line of our own, where anything is shown."""
    from perfgate.report.text import line

    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"perfgate: {line(text)}")
