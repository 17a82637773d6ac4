"""Regressions as test cases: JUnit, pytest's summary and IDEs then show them without a traceback."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import pytest

from perfgate.report import text
from perfgate.report.machine import properties
from perfgate.verdict.verdicts import Verdict


def failed_cases(verdicts: Sequence[Verdict]) -> Iterator[pytest.TestReport]:
    """Reports to be sent through ``pytest_runtest_logreport``: a failed call per verdict, and its teardown.

    JUnit takes the properties from the teardown.
    """
    for verdict in verdicts:
        name = verdict.id or "perfgate"
        case = functools.partial(
            pytest.TestReport,
            nodeid=f"{name}::{verdict.code}",
            location=(name.partition("::")[0], None, name),
            keywords={},
            user_properties=list(properties(verdict)),
        )
        yield case(outcome="failed", longrepr=text.line(f"{verdict.word}: {verdict.reason}"), when="call")
        yield case(outcome="passed", longrepr=None, when="teardown")
