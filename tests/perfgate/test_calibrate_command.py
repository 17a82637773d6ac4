"""``perfgate calibrate``: what it learns is written, printed, and used by what judges."""

import json
import os
import subprocess

import pytest

from perfgate import cli
from perfgate.pairs.ab import Result
from perfgate.results.ledger import NAME, read_ledger
from perfgate.verdict.paired import Pair
from tests.conftest import SETTINGS, around, record

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
BENCH = """
import planted
from workloads import MLP

def test_tiny(measure):
    assert planted
    measure(MLP(batch_size=4, width=8, image_size=4).train_step())
"""


@pytest.fixture
def here(pytester, monkeypatch):
    """A project with one tiny benchmark of ``measure``, committed."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(pytester.path.parent))
    monkeypatch.setenv("COLUMNS", "200")
    pytester.makepyprojecttoml(SETTINGS + 'subject = "src/planted"\n[tool.pytest]\npythonpath = ["src"]\n')
    for name, content in (
        ("benches/test_tiny.py", BENCH),
        ("src/planted/__init__.py", ""),
        (".gitignore", "__pycache__\n"),
    ):
        file = pytester.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    for words in (["init", "-qb", "main"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*GIT, *words], check=True, cwd=pytester.path)
    return pytester


def test_from_the_first_pair_to_the_next_comparison(here, capfd):
    """The ledger is written and read back, the table is printed, and --benchmark-compare takes the ledger."""
    code = cli.main(["calibrate", "--pairs", "2", "--", "-p", "no:hypothesispytest"])
    printed = capfd.readouterr()
    assert code in (0, 3)
    assert "Traceback" not in printed.err
    assert "pair 2 of 2" in printed.err
    assert "wall_seconds benches/test_tiny.py::test_tiny" in printed.out
    assert "mean of all log ratios" in printed.out
    (file,) = (here.path / "results").glob(f"*/{NAME}")
    ledger = read_ledger(file.parent)
    noise = ledger.entries["benches/test_tiny.py::test_tiny", "wall_seconds"]
    assert (noise.pair_degrees, noise.process_degrees) == (2, 2)
    assert noise.pair_deviation > 0
    assert ledger.soft["torch"]
    here.runpytest("benches")
    file.write_text("{", encoding="utf-8")  # so that nobody can have read it without saying so
    result = here.runpytest("benches", "--benchmark-compare")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{NAME}*"])


class FakeComparison:
    """Stands for ``compare_commits``: a result of pairs that were never measured."""

    def __init__(self, pairs):
        """``pairs`` as measured."""
        self.pairs, self.wanted = pairs, None

    def __call__(self, wanted, _):
        """The result."""
        self.wanted = wanted
        return Result(base="a", head="b", first=self.pairs, machine={"slug": "m", "soft": {"torch": "2.15.0"}})


def pairs(*names):
    """Two pairs of benchmarks that differ a little."""
    return [
        Pair(
            base={name: record(name, around(0.01)) for name in names},
            head={name: record(name, around(0.01 * ratio)) for name in names},
        )
        for ratio in (1.01, 0.99)
    ]


@pytest.fixture
def faked(tmp_path, monkeypatch):
    """A project in which nothing is measured; sets what is found instead."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def set_pairs(*names):
        fake = FakeComparison(pairs(*names) if names else [])
        monkeypatch.setattr("perfgate.pairs.ab.compare_commits", fake)
        return fake

    return set_pairs


def test_it_compares_the_working_tree_with_itself(faked):
    """In so many pairs, without a second stage."""
    fake = faked("t.py::a")
    cli.main(["calibrate", "--pairs", "6", "--limit", "7", "--", "-k", "a"])
    wanted = fake.wanted
    assert (wanted.base, wanted.head, wanted.first, wanted.fresh) == (None, None, 6, 0)
    assert (wanted.limit_seconds, list(wanted.arguments)) == (7.0, ["-k", "a"])


def test_what_was_known_of_other_benchmarks_stays(faked, tmp_path):
    """A calibration of a part forgets nothing."""
    faked("t.py::a", "t.py::b")
    cli.main(["calibrate"])
    before = read_ledger(tmp_path / "results" / "m").entries["t.py::a", "wall_seconds"]
    faked("t.py::b")
    cli.main(["calibrate"])
    after = read_ledger(tmp_path / "results" / "m").entries
    assert after["t.py::a", "wall_seconds"] == before
    assert len(after) == 2


def test_nothing_to_calibrate_writes_nothing(faked, tmp_path, capsys):
    """Exit 3, and says so."""
    faked()
    assert cli.main(["calibrate"]) == 3
    assert "nothing to calibrate" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("words", [["--pairs", "1"], ["--pairs", "0"], ["--pairs", "3"], ["--limit", "0"]])
def test_what_makes_no_sense_is_a_usage_error(faked, capsys, words):
    """Named."""
    faked("t.py::a")
    assert cli.main(["calibrate", *words]) == 2
    assert " ".join(words) in capsys.readouterr().err


def test_json_on_standard_output_is_nothing_else(faked, capsys):
    """No table before it."""
    faked("t.py::a")
    cli.main(["calibrate", "--json", "-"])
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "calibrate"
    assert document["bias"] == pytest.approx(0.0, abs=1e-3)


def test_a_broken_ledger_is_named(faked, tmp_path, capsys):
    """And not overwritten."""
    faked("t.py::a")
    (tmp_path / "results" / "m").mkdir(parents=True)
    (tmp_path / "results" / "m" / NAME).write_text("{", encoding="utf-8")
    assert cli.main(["calibrate"]) == 2
    assert NAME in capsys.readouterr().err
    assert (tmp_path / "results" / "m" / NAME).read_text(encoding="utf-8") == "{"
