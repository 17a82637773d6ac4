"""How measuring processes are started."""

import sys

import pytest

from perfgate.pairs.checkouts import Checkout
from perfgate.pairs.plan import VALUED, Wanted, starter


@pytest.fixture
def start(tmp_path):
    """The launch of head's first process, for what is wanted."""
    root = tmp_path / "head"
    for name in ("benches/test_a.py", "bench/test_b.py", "venv/bin/python"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("", encoding="utf-8")
    side = Checkout(name="head", label="head", commit={}, root=root)

    def launch(**fields):
        wanted = Wanted(project=tmp_path, base="main", head=None, **fields)
        return starter(wanted, side, side, tmp_path / "imports", tmp_path).launch(0)

    return launch


def paths(launch):
    """What pytest is to collect."""
    words = list(launch.command)
    return words[words.index("pytest") + 1 : next(at for at, word in enumerate(words) if word.startswith("--rootdir"))]


def test_the_benchmarks_are_measured_unless_some_are_named(start):
    """A file or a test in it replaces the folder."""
    assert paths(start()) == ["benches"]
    assert paths(start(arguments=["--benchmark-min-rounds=5", "no-such-file"])) == ["benches"]
    for name in ("benches/test_a.py", "benches/test_a.py::test_x"):
        launch = start(arguments=[name])
        assert paths(launch) == []
        assert name in launch.command


@pytest.mark.parametrize("option", sorted(VALUED))
def test_the_value_of_an_option_names_nothing_to_collect(start, option):
    """Although a folder is called so."""
    assert paths(start(arguments=[option, "bench"])) == ["benches"]


def test_a_suite_is_measured_in_the_sides_own_checkout(start, tmp_path):
    """Without a say about its imports."""
    launch = start(suite="bench")
    assert paths(launch) == ["bench"]
    assert launch.folder == tmp_path / "head"
    assert not any("pythonpath" in word for word in launch.command)


def test_options_in_the_environment_are_dropped(start, monkeypatch):
    """They may save, compare or select; other variables stay."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")
    monkeypatch.setenv("PYTHONPATH", "/mine")
    environment = start().environment
    assert "PYTEST_ADDOPTS" not in environment
    assert environment["PYTHONPATH"].endswith("imports:/mine")


def test_a_relative_interpreter(start, tmp_path, monkeypatch):
    """Of the checkout where it has one, or else of the user's folder; a bare name is looked up as always."""
    monkeypatch.chdir(tmp_path)
    assert start(head_python="venv/bin/python").command[0] == str(tmp_path / "head" / "venv" / "bin" / "python")
    assert start(head_python="other/bin/python").command[0] == str(tmp_path / "other" / "bin" / "python")
    assert start(head_python="python3").command[0] == "python3"
    assert start().command[0] == sys.executable


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, True), ({"head": "main"}, False), ({"head": "x"}, True), ({"base_python": "python3"}, False)],
)
def test_whether_only_code_differs(tmp_path, fields, expected):
    """Not in a self-check, and not between two environments."""
    wanted = Wanted(**{"project": tmp_path, "base": "main", "head": None} | fields)
    assert wanted.differs_by_code_only == expected
