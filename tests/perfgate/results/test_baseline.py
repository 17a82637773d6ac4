"""Which saved runs are the baseline."""

import pytest

from perfgate.errors import ResultsError
from perfgate.results.baseline import find
from perfgate.results.store import Store
from tests.conftest import MACHINE, record, replaced, run, stock_of

FULL = {"args": ["benches"], "deselected": 0, "full": True}
PART = {"args": ["benches/test_a.py"], "deselected": 0, "full": False}


@pytest.fixture
def store(tmp_path):
    """An empty store."""
    return Store(tmp_path / "results")


def save(store, day, *names, **fields):
    """Save a run of benchmarks called ``names``."""
    a_run = run(*(record(name, step=f"day {day}") for name in names), stamp=f"2026010{day}T000000000Z", **fields)
    return store.save(a_run, stock_of(a_run))


def test_the_newest_value_of_each_benchmark(store):
    """A full run in which one failed does not make its older value forgotten; but only a newer one can be gone."""
    save(store, 1, "a", "b", "c", scope=FULL)
    save(store, 2, "a", "b", scope=FULL)
    save(store, 3, "a", scope=PART)
    found = find(store, MACHINE)
    assert {name: each.step for name, each in found.records.items()} == {"a": "day 3", "b": "day 2", "c": "day 1"}
    assert found.expected == {"a", "b"}


def test_what_was_judged_slower_is_no_baseline(store):
    """Or a regression would be green in the next run."""
    save(store, 1, "a")
    slower = run(record("a", step="day 2", verdict="slower"), stamp="20260102T000000000Z")
    store.save(slower, stock_of(slower))
    assert find(store, MACHINE).records["a"].step == "day 1"


def test_many_partial_runs_do_not_hide_the_full_one(store):
    """It is looked for as far back as needed."""
    save(store, 0, "a", "b", scope=FULL)
    for minute in range(30):
        part = run(record("a"), scope=PART, stamp=f"20260102T00{minute:02d}00000Z")
        store.save(part, stock_of(part))
    assert set(find(store, MACHINE).records) == {"a", "b"}


def test_interrupted_runs_are_passed_over(store):
    """They hold the first benchmarks only."""
    save(store, 1, "a")
    save(store, 2, "a", status="interrupted")
    assert find(store, MACHINE).records["a"].step == "day 1"


def test_a_run_from_a_dirty_tree_is_no_baseline_in_strict_mode(store):
    """Locally it serves."""
    save(store, 1, "a")
    save(store, 2, "a", commit={"id": "b" * 40, "branch": "main", "dirty": "yes"})
    assert find(store, MACHINE).records["a"].step == "day 2"
    assert find(store, MACHINE, strict=True).records["a"].step == "day 1"


def test_a_run_in_the_wrong_folder_is_passed_over(store):
    """The folder's name is a claim, the hard fields are the fact."""
    file = save(store, 1, "a", machine=replaced(MACHINE, hard={"cpu": "other"}))
    found = find(store, MACHINE)
    assert not found.runs
    assert "another machine" in found.problems[0]
    assert file.name in found.problems[0]


def test_renamed_benchmarks_come_under_their_new_name(store):
    """From the settings."""
    save(store, 1, "old")
    assert set(find(store, MACHINE, renamed={"old": "new"}).records) == {"new"}


def test_a_chosen_run_by_the_beginning_of_its_name(store):
    """If it is the only one."""
    save(store, 1, "a")
    save(store, 2, "a")
    assert find(store, MACHINE, choice="20260101").records["a"].step == "day 1"
    with pytest.raises(ResultsError, match="one run of this machine"):
        find(store, MACHINE, choice="2026")


def test_a_chosen_file_of_another_machine_is_refused(store):
    """With the fields that differ."""
    file = save(store, 1, "a", machine=replaced(MACHINE, slug="gpu-box", hard={**MACHINE.hard, "gpu": "H200"}))
    with pytest.raises(ResultsError, match=r"made on gpu-box.*differs: gpu"):
        find(store, MACHINE, choice=str(file))


def test_absence_lists_other_machines(store):
    """So that a wrong folder is noticed."""
    save(store, 1, "a", machine=replaced(MACHINE, slug="gpu-box"))
    assert "gpu-box" in find(store, MACHINE).absence
