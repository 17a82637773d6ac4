"""Scope: what was asked to run decides what can be gone."""

import pytest

from perfgate import scope


@pytest.mark.parametrize(
    ("args", "covered"),
    [
        (["benches"], True),
        (["benches/"], True),
        (["."], True),
        (["benches/test_a.py"], True),
        (["benches/test_a.py::test_x"], True),
        (["benches/test_b.py"], False),
        (["benches/test_a.py::test"], False),
        (["bench"], False),
    ],
)
def test_covers(tmp_path, args, covered):
    """By whole components of the node id, not by beginnings of words."""
    assert scope.of(args, tmp_path, tmp_path, deselected=0).covers("benches/test_a.py::test_x[1]") is covered


def test_arguments_are_relative_to_where_pytest_was_called(tmp_path):
    """And node ids to the project's root."""
    (tmp_path / "benches").mkdir()
    assert scope.of(["test_a.py"], tmp_path / "benches", tmp_path, deselected=0).covers("benches/test_a.py::test_x")


def test_only_an_unselected_run_is_full(tmp_path):
    """A full run ends the search for older values."""
    assert scope.of(["benches"], tmp_path, tmp_path, deselected=0).as_dict()["full"]
    assert not scope.of(["benches"], tmp_path, tmp_path, deselected=1).as_dict()["full"]
    assert not scope.of(["benches/test_a.py"], tmp_path, tmp_path, deselected=0).as_dict()["full"]
