"""Regressions as test cases: JUnit, pytest's summary and IDEs then show them without a traceback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from perfgate.report.machine import properties
from perfgate.verdict.verdicts import Verdict


def failed_cases(verdicts: Sequence[Verdict]) -> Iterator[pytest.TestReport]:
    """A failed report per verdict, to be sent through ``pytest_runtest_logreport``."""
    for verdict in verdicts:
        name = verdict.id or "perfgate"
        yield pytest.TestReport(
            nodeid=f"{name}::{verdict.code}",
            location=(name.partition("::")[0], None, name),
            keywords={},
            outcome="failed",
            longrepr=f"{verdict.word}: {verdict.reason}",
            when="call",
            user_properties=list(properties(verdict)),
        )
