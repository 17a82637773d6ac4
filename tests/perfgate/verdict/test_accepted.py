"""Regressions taken on purpose: what the file must hold, and when an entry speaks."""

from datetime import date

import pytest

from perfgate.errors import SettingsError
from perfgate.verdict.accepted import NAME, Accepted, accepting, read_accepted
from perfgate.verdict.estimate import Estimate
from perfgate.verdict.verdicts import Verdict, worst

FIELDS = {
    "benchmark": '"benches/test_a.py::test_a"',
    "metric": '"wall_seconds"',
    "from_commit": '"4f0c2a9be1d7"',
    "reason": '"loss scaling checks every gradient now"',
    "limit": "0.08",
    "expires": "2027-03-31",
}
ENTRY = Accepted(
    benchmark="benches/test_a.py::test_a",
    metric="wall_seconds",
    from_commit="4f0c2a9be1d7",
    reason="loss scaling checks every gradient now",
    limit=0.08,
    expires=date(2027, 3, 31),
)
TODAY = date(2027, 1, 1)


def slower(percent=5.0, **fields):
    """A verdict that the entry is about."""
    value = 1 + percent / 100
    defaults = {"id": ENTRY.benchmark, "word": "slower", "code": "slower", "reason": "why", "metric": ENTRY.metric}
    return Verdict(**{**defaults, "change": Estimate(value, value - 0.01, value + 0.01), **fields})


def applied(verdict, entries=(ENTRY,), since=lambda commit, name: True, today=TODAY):
    """What becomes of one verdict."""
    return accepting(entries, since, today)(verdict)


@pytest.fixture
def read(tmp_path):
    """Read a file of one entry in which fields are replaced, or left out where ``None``."""

    def read(text=None, **changes):
        lines = [f"{key} = {value}" for key, value in {**FIELDS, **changes}.items() if value is not None]
        file = tmp_path / NAME
        file.write_text("[[accepted]]\n" + "\n".join(lines) if text is None else text, encoding="utf-8")
        return read_accepted(file)

    return read


def test_an_entry_is_read(read):
    """Every field."""
    assert read() == [ENTRY]


def test_no_file_is_no_entry(tmp_path):
    """Most projects have none."""
    assert read_accepted(tmp_path / NAME) == []


def test_an_empty_file_is_no_entry(read):
    """Nor is a comment."""
    assert read("# nothing yet\n") == []


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_field_is_named(read, field):
    """Nothing is accepted by half an entry."""
    with pytest.raises(SettingsError, match=f"{field} is missing"):
        read(**{field: None})


def test_an_unknown_field_is_named(read):
    """A misspelt limit would be none."""
    with pytest.raises(SettingsError, match="limits is not a field"):
        read(limits="0.5")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("benchmark", "3"),
        ("metric", "[1]"),
        ("from_commit", "1234567"),
        ("reason", "true"),
        ("limit", '"0.05"'),
        ("limit", "true"),
        ("expires", '"2027-03-31"'),
        ("expires", "2027-03-31T00:00:00Z"),
        ("expires", "2027-03-31T00:00:00"),
    ],
)
def test_a_wrong_type_is_named(read, field, value):
    """With the entry it is in; a time of day cannot be compared with a day."""
    with pytest.raises(SettingsError, match=rf"{NAME}: entry for .*: {field} has the wrong type"):
        read(**{field: value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("limit", "0.0"),
        ("limit", "-0.05"),
        ("limit", "100"),
        ("limit", "nan"),
        ("limit", "inf"),
        ("from_commit", '"4f0c2a"'),
        ("from_commit", '"mainbranch"'),
        ("reason", '" "'),
    ],
)
def test_a_value_out_of_range_is_named(read, field, value):
    """With what is expected."""
    with pytest.raises(SettingsError, match=f"entry for 'benches/test_a.py::test_a'.*{field}"):
        read(**{field: value})


@pytest.mark.parametrize(
    "text",
    ["[[accepted]\n", "accepted = 3\n", "[accepted]\nlimit = 1\n", "[[accept]]\n", "accepted = [1, 2]\n"],
)
def test_what_is_no_list_of_entries_is_refused(read, text):
    """Naming the file."""
    with pytest.raises(SettingsError, match=NAME):
        read(text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    """A folder, or bytes that are no text."""
    (tmp_path / NAME).mkdir()
    with pytest.raises(SettingsError, match=NAME):
        read_accepted(tmp_path / NAME)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match=r"b\.toml"):
        read_accepted(tmp_path / "b.toml")


def test_what_is_accepted_is_the_same_and_says_why():
    """The change stays beside it."""
    found = applied(slower())
    assert (found.word, found.code) == ("same", "accepted")
    assert found.reason == "why; accepted up to 8.0% until 2027-03-31: loss scaling checks every gradient now"
    assert found.change.value == pytest.approx(1.05)


def test_git_is_asked_for_the_commit_of_the_entry():
    """And for no other."""
    asked = []
    applied(slower(), since=lambda commit, name: asked.append((commit, name)) or True)
    assert asked == [("4f0c2a9be1d7", ENTRY.benchmark)]


@pytest.mark.parametrize(
    ("percent", "since", "today", "why_not"),
    [
        (5.0, True, date(2027, 4, 1), "expired on 2027-03-31"),
        (9.0, True, TODAY, "more than the limit of 8.0%"),
        (5.0, False, TODAY, "commit 4f0c2a9be1d7 is not what is new here"),
        (5.0, None, TODAY, "git cannot tell whether commit 4f0c2a9be1d7"),
    ],
)
def test_an_entry_that_does_not_speak_says_why(percent, since, today, why_not):
    """And the verdict stays."""
    found = applied(slower(percent), since=lambda commit, name: since, today=today)
    assert (found.word, found.code) == ("slower", "slower")
    assert found.reason.startswith(f"why; not accepted by {NAME}: ")
    assert why_not in found.reason


def test_the_last_day_counts():
    """``expires`` is included."""
    assert applied(slower(), today=ENTRY.expires).word == "same"


def test_a_change_from_zero_is_within_no_limit():
    """There is no ratio."""
    assert applied(slower(change=None)).word == "slower"


@pytest.mark.parametrize("changed", [{"id": "benches/test_a.py::test_b"}, {"metric": "energy_joules"}])
def test_an_entry_is_about_one_metric_of_one_benchmark(changed):
    """What it is not about is left as it is."""
    verdict = slower(**changed)
    assert applied(verdict) == verdict


@pytest.mark.parametrize("word", ["same", "unsure", "faster", "unjudged", "failed"])
def test_only_what_is_slower_can_be_accepted(word):
    """Least of all a failure."""
    verdict = slower(word=word)
    assert applied(verdict) == verdict


def test_a_renewed_entry_speaks_beside_the_expired_one():
    """Whichever stands first."""
    old = Accepted(**{**vars(ENTRY), "expires": date(2026, 1, 1)})
    assert applied(slower(), entries=(ENTRY, old)).word == "same"
    assert applied(slower(), entries=(old, ENTRY)).word == "same"


def test_accepting_one_metric_leaves_another_slower():
    """A benchmark whose time was accepted must not hide operators that nobody accepted."""
    operators = slower(metric="operators", code="count-slower", reason="operators 3 -> 4")
    found = worst([applied(slower()), applied(operators)])
    assert (found.word, found.metric) == ("slower", "operators")
