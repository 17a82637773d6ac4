"""Which files are opened, and in which order: by name, and as few as will do."""

from pathlib import Path

import pytest

from perfgate.results import history
from perfgate.results.baseline import find
from perfgate.results.history import MOST_OPENED, by_commit, future_notes
from perfgate.results.store import Store
from tests.conftest import MACHINE, record, replaced, run, stock_of

OLD, NEW, OTHER = "a" * 40, "b" * 40, "c" * 40
PART = {"args": ["benches/test_a.py"], "deselected": 0, "full": False}


def name(day, commit, year=2026):
    """A run's file."""
    return Path(f"{year}01{day:02d}T000000000Z-{commit[:12]}-0000.json")


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store(tmp_path / "results")


@pytest.fixture
def opened(monkeypatch):
    """Names of the files that were opened."""
    names = []
    real = history.read

    def read(file):
        names.append(file.name)
        return real(file)

    monkeypatch.setattr(history, "read", read)
    return names


def save(store, minute, commit=OLD, **fields):
    """Save a run of that commit."""
    a_run = run(
        record("a"),
        stamp=f"20260101T00{minute:02d}00000Z",
        commit={"id": commit, "branch": "main", "dirty": "no"},
        **fields,
    )
    return store.save(a_run, stock_of(a_run))


def test_without_git_the_date_is_the_order():
    """There is nothing else."""
    files = [name(3, OLD), name(2, OTHER), name(1, NEW)]
    assert by_commit(files, None) == (files, [])


def test_runs_of_other_commits_are_told_by_their_names():
    """Runs of an unknown commit belong to the history: nobody can say that they do not."""
    files = [name(4, OTHER), name(3, OLD), name(2, "unknown"), name(1, NEW)]
    assert by_commit(files, frozenset({OLD, NEW})) == (files[1:], files[:1])


@pytest.mark.parametrize("ancestors", [[NEW, OLD], {NEW: None, OLD: None}])
def test_the_order_of_commits_comes_before_that_of_dates(ancestors):
    """An old commit that was measured again today is still old."""
    files = [name(4, OLD), name(3, "unknown"), name(2, NEW), name(1, NEW)]
    assert by_commit(files, ancestors) == ([files[2], files[3], files[0], files[1]], [])


def test_a_date_in_the_future_is_the_commits_oldest():
    """It does not win."""
    files = [name(1, OLD, year=2999), name(2, NEW, year=2998), name(3, OLD), name(2, OLD)]
    assert by_commit(files, frozenset({OLD, NEW}))[0] == [files[2], files[3], files[0], files[1]]
    assert by_commit(files, [NEW, OLD])[0] == [files[1], files[2], files[3], files[0]]


def test_a_date_in_the_future_is_said():
    """Somewhere a clock is wrong."""
    late = run(stamp="29990101T000000000Z", source="results/m/29990101T000000000Z-a-0000.json")
    (note,) = future_notes([run(), late, late])
    assert "29990101T000000000Z-a-0000.json and 1 more" in note
    assert not future_notes([run()])


def test_files_of_other_commits_are_not_opened(store, opened):
    """Unless there are no others, and then no more than needed."""
    for minute in range(30):
        save(store, minute, OTHER)
    mine = save(store, 40)
    found = find(store, MACHINE, ancestors=frozenset({OLD}))
    assert opened == [mine.name]
    assert found.notes == ("30 runs of commits that this one does not descend from are left out",)
    mine.unlink()
    opened.clear()
    found = find(store, MACHINE, ancestors=frozenset({OLD}))
    assert len(found.runs) == len(opened) == 20
    assert "runs of other commits have to do" in found.notes[0]


def test_no_more_are_opened_than_needed(store, opened):
    """Twenty usable runs, one of them of everything."""
    for minute in range(25):
        save(store, minute)
    assert len(find(store, MACHINE).runs) == len(opened) == 20


def test_the_search_ends_somewhere(store, opened, monkeypatch):
    """Which is said: something may be older than that."""
    monkeypatch.setattr(history, "MOST_OPENED", 30)
    assert MOST_OPENED >= 2 * history.LOOK_BACK
    for minute in range(40):
        save(store, minute, scope=PART)
    found = find(store, MACHINE)
    assert len(opened) == len(found.runs) == 30
    assert "only 30 of 40 saved runs were looked at, 30 of them usable, none of them of the whole" in found.notes[0]


def test_a_run_under_anothers_name_is_passed_over(store):
    """The name decides whether it is looked at, so it must be true."""
    file = save(store, 1)
    file.rename(file.with_name(file.name.replace("20260101T0001", "20260101T0002")))
    found = find(store, MACHINE)
    assert not found.runs
    assert "its name says another time or commit" in found.problems[0]


def test_other_machines_are_listed_with_what_differs(store):
    """As far as it can be read; not all of many."""
    for number in range(7):
        save(store, number, machine=replaced(MACHINE, slug=f"box-{number}", hard={**MACHINE.hard, "gpu": "H200"}))
    broken = next(store.files("box-1"))
    broken.write_bytes(b"")
    absence = find(store, MACHINE).absence
    assert "not compared: box-0 (differs: gpu), box-1, box-2 (differs: gpu)" in absence
    assert absence.endswith("and 2 more")
