"""Limits that a user gives pytest-benchmark by hand, on the statistics they name."""

from perfgate.results.baseline import Baseline
from perfgate.verdict.stock import exceeded_limits
from perfgate.verdict.verdicts import is_failure
from tests.conftest import count, record, run, times

NAME = "benches/test_a.py::test_a"
OLD = Baseline(runs=(run(record(NAME, times(0.01, 0.02))),))


class Limit:
    """Fails always, and says what it saw."""

    def fails(self, current, compared):
        return f"{current['max']:.2f} {compared['max']:.2f}"


class Generous:
    """Never fails."""

    def fails(self, current, compared):
        return None


def test_a_users_limit_sees_the_statistics_it_names():
    """As pytest-benchmark computes them."""
    (found,) = exceeded_limits([Limit()], [record(NAME, times(0.01, 0.03))], OLD)
    assert (found.id, found.word, found.code, found.reason) == (NAME, "slower", "stock-limit", "0.03 0.02")
    assert is_failure(found, strict=False)


def test_each_limit_speaks_for_itself():
    """Two that are exceeded are two verdicts, one that is not is none."""
    new = record(NAME, times(0.01, 0.03))
    assert len(exceeded_limits([Limit(), Generous(), Limit()], [new], OLD)) == 2
    assert exceeded_limits([], [new], OLD) == []


def test_a_limit_compares_like_with_like():
    """Not with another benchmark, other parameters, or where there are no times."""
    for each in (record("other"), record(NAME, times(0.5), identity="other"), record(NAME, count("operators", 3))):
        assert exceeded_limits([Limit()], [each], OLD) == []
