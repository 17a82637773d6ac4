"""``perfgate ab`` from end to end: commits of a small project, of which the verdicts are known."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from perfgate import cli, locks
from perfgate.shares import core_names

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
FAST = ["--", "--benchmark-max-time=0.01", "--benchmark-min-rounds=5", "-p", "no:hypothesispytest"]
SIZE = ["--pairs", "2", "--fresh", "0"]
SUITE = ["--suite", "bench", *SIZE]

SETTINGS = """
[tool.perfgate]
threshold = 0.5

[tool.pytest.ini_options]
pythonpath = ["src"]
"""
WORK = """
def work(times=1):
    return sum(number * number for number in range(2_000 * times))
"""
BENCH = """
from thing import work

def test_one(benchmark):
    benchmark(work)

def test_two(benchmark):
    benchmark(work)
"""
TWO = "def test_two(benchmark):"
SLOW = f"{TWO}\n    benchmark(work)", f"{TWO}\n    benchmark(work, 3)"
CRASH = TWO, f"{TWO}\n    import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


def git(folder, *words):
    """Run git there."""
    subprocess.run([*GIT, "-C", str(folder), *words], check=True, capture_output=True)


class Project:
    """A git project; ``change`` edits its working tree."""

    def __init__(self, folder, files):
        """With one commit of these files."""
        self.folder = folder
        self.write(**files)
        git(folder, "init", "-qb", "main")
        self.commit()

    def write(self, **files):
        """Files by name; ``__`` stands for a slash."""
        for name, content in files.items():
            file = self.folder / name.replace("__", "/").replace("-", ".")
            file = file if file.suffix else file.with_suffix(".py")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")

    def change(self, name, old, new):
        """Exchange ``old`` for ``new`` in a file."""
        file = self.folder / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    def commit(self):
        """Everything."""
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-qm", "x")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder to run in, with nobody's git settings, quiet and outside of any other project."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("COLUMNS", "200")
    return folder


@pytest.fixture
def project(here):
    """Two plain benchmarks of a package, committed."""
    return Project(
        here, {"pyproject-toml": SETTINGS, "src__thing": WORK, "bench__test_it": BENCH, "-gitignore": "__pycache__\n"}
    )


@pytest.fixture
def ab(tmp_path, capfd):
    """Runs ``perfgate ab``: the exit code, the verdicts by benchmark, and what was printed."""

    def run(*words):
        file = tmp_path / "verdicts.json"
        file.unlink(missing_ok=True)
        words = [*words]
        at = words.index("--") if "--" in words else len(words)
        code = cli.main(["ab", *words[:at], "--json", str(file), *words[at:]])
        printed = capfd.readouterr()
        document = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"verdicts": []}
        verdicts = {each["id"].rpartition("::")[2]: each for each in document["verdicts"]}
        assert "Traceback (most recent call last)" not in printed.err
        return code, verdicts, printed.out + printed.err

    return run


def words_of(verdicts):
    """The words by benchmark."""
    return {name: each["verdict"] for name, each in verdicts.items()}


def test_an_unchanged_working_tree_is_measured_by_nobody(project, ab):
    """Nothing that runs differs."""
    code, verdicts, printed = ab("main", *SUITE)
    assert (code, verdicts) == (0, {})
    assert "PASS nothing that runs differs; nothing was measured" in printed
    assert "pair" not in printed


def test_changed_documents_are_measured_by_nobody(project, ab):
    """Committed or not."""
    project.write(**{"docs__notes-txt": "x\n", "README-md": "# hello\n"})
    assert ab("main", *SUITE)[0] == 0
    project.commit()
    code, _, printed = ab("HEAD~1", "HEAD", *SUITE)
    assert code == 0
    assert "nothing was measured" in printed


def test_a_commit_against_itself_is_measured(project, ab):
    """A self-check, in which nothing is slower."""
    code, verdicts, printed = ab("HEAD", "HEAD", *SUITE, *FAST)
    assert code != 1
    assert set(verdicts) == {"test_one", "test_two"}
    assert "pair 2 of 2" in printed


def test_a_slow_down_by_a_factor_of_three_is_found(project, ab, tmp_path):
    """Exit 1, named, and written for machines with its size; the other benchmark is not blamed.

    Four and four pairs: a factor of three is beyond any noise of a machine that does something else meanwhile.
    """
    project.change("bench/test_it.py", *SLOW)
    size = ["--pairs", "4", "--fresh", "4"]
    code, verdicts, printed = ab("main", *SUITE, *size, "--junit", str(tmp_path / "junit.xml"), *FAST)
    assert code == 1
    assert words_of(verdicts)["test_two"] == "slower"
    assert words_of(verdicts)["test_one"] != "slower"
    assert verdicts["test_two"]["worse_by"]["ratio"] > 1.5
    assert "test_two" in printed
    assert "perfgate ab main --suite bench -- -k 'test_two'" in printed
    suite = ET.parse(tmp_path / "junit.xml").getroot()
    assert suite.get("failures") == "1"
    (failed,) = [case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed == "test_two"


def test_the_verdicts_say_what_was_compared(project, ab, tmp_path):
    """Sides, pairs and time, with the exit code."""
    file = tmp_path / "mine.json"
    cli.main(["ab", "HEAD", "HEAD", *SUITE, "--json", str(file), *FAST])
    document = json.loads(file.read_text(encoding="utf-8"))
    assert document["base"].startswith("HEAD (")
    assert document["pairs"] == 2
    assert 0 <= document["overhead_seconds"] <= document["seconds"]
    assert document["exit_code"] in (0, 3)


def test_a_failure_in_head_fails(project, ab):
    """With the reason of the test."""
    project.change("bench/test_it.py", TWO, f"{TWO}\n    assert 1 == 2, 'broken'")
    code, verdicts, printed = ab("main", *SUITE, *FAST)
    assert code == 1
    assert words_of(verdicts) | {"test_one": "?"} == {"test_one": "?", "test_two": "failed"}
    assert "broken" in printed


def test_a_failure_in_base_only_is_new(project, ab):
    """Head repaired it; nothing to compare with."""
    project.change("bench/test_it.py", TWO, f"{TWO}\n    assert 1 == 2")
    project.commit()
    project.change("bench/test_it.py", "    assert 1 == 2\n", "")
    code, verdicts, _ = ab("main", *SUITE, *FAST)
    assert code != 1
    assert (verdicts["test_two"]["verdict"], verdicts["test_two"]["code"]) == ("new", "fails-in-base")


def test_a_crash_in_head_is_unjudged_and_the_others_are_not(project, ab):
    """Exit 3: it is known that something is wrong, not that it is slower."""
    project.change("bench/test_it.py", *CRASH)
    code, verdicts, printed = ab("main", *SUITE, *FAST)
    assert code == 3
    assert (verdicts["test_two"]["verdict"], verdicts["test_two"]["code"]) == ("unjudged", "crashed")
    assert "SIGSEGV" in verdicts["test_two"]["reason"]
    assert words_of(verdicts)["test_one"] in {"same", "unsure", "faster"}
    assert "head died at bench/test_it.py::test_two" in printed


def test_a_benchmark_that_hangs_is_unjudged(project, ab):
    """After the limit."""
    project.change("bench/test_it.py", TWO, f"{TWO}\n    import time; time.sleep(60)")
    code, verdicts, _ = ab("main", *SUITE, "--limit", "3", *FAST)
    assert code == 3
    assert (verdicts["test_two"]["verdict"], verdicts["test_two"]["code"]) == ("unjudged", "hung")
    assert "test_one" in verdicts


def test_a_device_that_another_suite_measures_on(project, ab):
    """Nothing is measured beside it, and it is said who is there and how to wait."""
    project.change("bench/test_it.py", "def test_two", "def test_three")
    with locks.hold(core_names()):
        code, verdicts, printed = ab("main", *SUITE, *FAST)
    assert (code, verdicts) == (3, {})
    assert f"process {os.getpid()} " in printed
    assert "--wait" in printed


def test_benchmarks_that_are_added_or_removed(project, ab):
    """New and gone; the one that is gone fails when strict."""
    project.change("bench/test_it.py", "def test_two", "def test_three")
    code, verdicts, _ = ab("main", *SUITE, *FAST)
    assert code == 0
    assert words_of(verdicts)["test_two"] == "gone"
    assert words_of(verdicts)["test_three"] == "new"
    assert ab("main", "--strict", *SUITE, *FAST)[0] == 1


def test_a_file_that_head_cannot_collect_fails(project, ab):
    """With Python's reason; nothing was measured in it."""
    project.write(bench__test_other="def test_three(benchmark):\n    benchmark(int)\n")
    project.commit()
    project.write(bench__test_other="import no_such_module\n")
    code, verdicts, printed = ab("main", *SUITE, *FAST)
    assert code == 1
    assert words_of(verdicts)["bench/test_other.py"] == "failed"
    assert words_of(verdicts)["test_three"] == "gone"
    assert "no_such_module" in printed


def test_a_suite_that_is_not_there(project, ab):
    """Said with pytest's own words."""
    project.change("src/thing.py", "2_000", "2_001")
    code, _, printed = ab("main", "--suite", "no-such-folder", *SIZE, *FAST)
    assert code in (2, 3)
    assert "file or directory not found: no-such-folder" in printed
    assert "pair 1" not in printed


def test_a_prepare_that_fails_ends_it(project, ab):
    """With what it printed, before anything is measured."""
    project.change("src/thing.py", "2_000", "2_001")
    code, _, printed = ab("main", *SUITE, "--prepare", "echo no compiler here; exit 7")
    assert code == 3
    assert "--prepare failed in main" in printed
    assert "exit code 7" in printed
    assert "no compiler here" in printed


def test_a_prepare_that_prints_no_text(project, ab):
    """Compilers do, in some locales."""
    project.change("src/thing.py", "2_000", "2_001")
    code, _, printed = ab("main", *SUITE, "--prepare", r"printf '\377\376 broken'; exit 7")
    assert code == 3
    assert "broken" in printed


def test_each_side_is_prepared(project, ab):
    """In its own checkout, where what it makes can be imported."""
    project.change("bench/test_it.py", "from thing import work", "from thing import work\nfrom made import side")
    project.commit()
    project.change("src/thing.py", "2_000", "2_001")
    code, verdicts, _ = ab("main", *SUITE, "--prepare", "echo 'side = 1' > src/made.py", *FAST)
    assert code != 1
    assert set(verdicts) == {"test_one", "test_two"}
    assert "gone" not in words_of(verdicts).values()
    assert not (project.folder / "src" / "made.py").exists()


@pytest.mark.parametrize("option", ["--head-python", "--base-python"])
def test_a_wrong_interpreter_is_said(project, ab, option):
    """By name."""
    code, _, printed = ab("main", *SUITE, option, "/no/such/python")
    assert code in (2, 3)
    assert "/no/such/python" in printed


def test_an_interpreter_without_pytest_is_said(project, ab, tmp_path):
    """With its own words."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    code, _, printed = ab("main", *SUITE, "--head-python", str(python))
    assert code == 3
    assert "No module named" in printed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs a BASE"),
        (["main", "--pairs", "3"], "--pairs 3: an even number from 2 on"),
        (["main", "--pairs", "0"], "--pairs 0: an even number from 2 on"),
        (["main", "--fresh", "1"], "--fresh 1: an even number from 0 on"),
        (["main", "--fresh", "-2"], "--fresh -2"),
        (["main", "--limit", "0"], "--limit 0"),
        (["main", "--limit", "nan"], "--limit nan"),
        (["no-such-branch"], "no commit, branch or tag 'no-such-branch'"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(project, ab, words, said):
    """Exit 2, before anything is measured."""
    code, _, printed = ab(*words)
    assert code == 2
    assert said in printed


def test_an_endless_limit_is_no_error(project, ab):
    """``inf`` is a number of seconds."""
    code, _, printed = ab("HEAD", "HEAD", *SUITE, "--limit", "inf", *FAST)
    assert code in (0, 2, 3)
    assert "perfgate: " in printed


def test_a_file_that_cannot_be_written_is_said_before_measuring(project, tmp_path, capfd):
    """Not after an hour, and not instead of the verdict."""
    project.change("src/thing.py", "2_000", "2_001")
    code = cli.main(["ab", "main", *SUITE, "--json", str(tmp_path / "none" / "x.json"), *FAST])
    printed = capfd.readouterr()
    assert code == 2
    assert "cannot write" in printed.err
    assert "pair 1" not in printed.err


def test_a_wrong_entry_in_accepted_toml_is_said_before_measuring(project, ab):
    """Not after an hour."""
    (project.folder / "results").mkdir()
    (project.folder / "results" / "accepted.toml").write_text("[[accepted]]\nlimit = 1\n", encoding="utf-8")
    project.change("src/thing.py", "2_000", "2_001")
    code, _, printed = ab("main", *SUITE, *FAST)
    assert code == 2
    assert "accepted.toml" in printed
    assert "pair 1" not in printed


def test_json_on_standard_output_is_nothing_else(project, capfd):
    """For a pipe; progress is on standard error."""
    code = cli.main(["ab", "HEAD", "HEAD", *SUITE, "--json", "-", *FAST])
    assert json.loads(capfd.readouterr().out)["exit_code"] == code


def test_an_import_from_elsewhere_is_found_out(project, ab):
    """As with an editable install: both sides would run the same code."""
    path = f"import sys\nsys.path.insert(0, {str(project.folder / 'src')!r})\n"
    project.write(bench__conftest=path)
    project.change("pyproject.toml", 'pythonpath = ["src"]', "")
    project.commit()
    project.change("src/thing.py", "2_000", "6_000")
    code, verdicts, printed = ab("main", *SUITE, *FAST)
    assert code == 3
    assert verdicts == {}
    assert "which is not of its checkout" in printed
    assert "editable install" in printed


def test_an_installed_copy_is_found_out(project, ab, tmp_path):
    """Both sides would run it, and neither the change."""
    copy = tmp_path / "installed"
    copy.mkdir()
    (copy / "thing.py").write_text(WORK, encoding="utf-8")
    project.write(bench__conftest=f"import sys\nsys.path.insert(0, {str(copy)!r})\n")
    project.commit()
    project.change("src/thing.py", "2_000", "6_000")
    code, verdicts, printed = ab("main", *SUITE, *FAST)
    assert (code, verdicts) == (3, {})
    assert f"thing changed, and was imported from {copy / 'thing.py'}" in printed


def test_nothing_is_left_behind(project, ab):
    """No worktree, no file in the project."""
    project.change("src/thing.py", "2_000", "2_001")
    ab("main", *SUITE, *FAST)
    listed = subprocess.run(["git", "worktree", "list"], capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == 1
    status = subprocess.run(["git", "status", "--short"], capture_output=True, text=True, check=True).stdout
    assert status.strip() == "M src/thing.py"


def test_one_after_the_other(project, ab):
    """For want of memory."""
    project.change("src/thing.py", "2_000", "2_001")
    code, verdicts, _ = ab("main", *SUITE, "--one-after-the-other", *FAST)
    assert code != 1
    assert set(verdicts) == {"test_one", "test_two"}


def test_only_some_benchmarks(project, ab):
    """As pytest selects them."""
    project.change("src/thing.py", "2_000", "2_001")
    _, verdicts, _ = ab("main", *SUITE, *FAST, "-k", "two")
    assert set(verdicts) == {"test_two"}


def test_nothing_selected_does_not_pass(project, ab):
    """A gate that measured nothing says so."""
    project.change("src/thing.py", "2_000", "2_001")
    code, verdicts, _ = ab("main", *SUITE, *FAST, "-k", "no_such_test")
    assert (code, verdicts) == (3, {})


def test_a_suite_in_a_folder_of_a_larger_repository(here, ab, monkeypatch):
    """Run from the project's own folder."""
    whole = Project(here, {"part__pyproject-toml": SETTINGS, "part__src__thing": WORK, "part__bench__test_it": BENCH})
    monkeypatch.chdir(here / "part")
    whole.change("part/bench/test_it.py", *SLOW)
    code, verdicts, _ = ab("main", *SUITE, *FAST)
    assert code == 1
    assert words_of(verdicts)["test_two"] == "slower"


def test_a_project_that_is_new_in_head(here, ab, monkeypatch):
    """Its folder is not in base: said, without a traceback."""
    whole = Project(here, {"README-md": "x\n"})
    whole.write(**{"part__pyproject-toml": SETTINGS, "part__src__thing": WORK, "part__bench__test_it": BENCH})
    monkeypatch.chdir(here / "part")
    code, _, printed = ab("main", *SUITE, *FAST)
    assert code in (2, 3)
    assert "part" in printed


MEASURED_SETTINGS = """
[tool.perfgate]
subject = "src/planted"
warmup_seconds = 0.001
timed_seconds = 0.001
threshold = 9.0
thresholds = { peak_bytes = 9.0 }
"""
PLANTED = """
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.utils.data import TensorDataset

from workloads import Workload

WIDTHS = [8, 8]


@dataclass(frozen=True, kw_only=True)
class Tiny(Workload):
    name: ClassVar[str] = "tiny"
    batch_size: int = 4

    def model(self):
        return nn.Sequential(*(nn.Linear(8, width) for width in WIDTHS))

    def dataset(self, *, train):
        return TensorDataset(torch.linspace(-1, 1, 32).view(4, 8), torch.arange(4))
"""
MEASURED_BENCH = """
from planted import Tiny

def test_step(measure):
    measure(Tiny().train_step())
"""


@pytest.fixture
def measured(here):
    """A project whose package under test is measured with ``measure``."""
    return Project(
        here,
        {
            "pyproject-toml": MEASURED_SETTINGS,
            "src__planted____init__": "",
            "benches__test_planted": MEASURED_BENCH,
            "-gitignore": "__pycache__\n",
        },
    )


def plant(project, source=PLANTED):
    """The package under test, whose name has underscores of its own."""
    (project.folder / "src" / "planted").mkdir(parents=True, exist_ok=True)
    (project.folder / "src" / "planted" / "__init__.py").write_text(source, encoding="utf-8")


def test_a_counted_regression_is_certain(measured, ab):
    """A layer too many, in two pairs and without fresh ones; the instrument's own change is said."""
    plant(measured)
    measured.commit()
    plant(measured, PLANTED.replace("[8, 8]", "[8, 8, 8]"))
    code, verdicts, printed = ab("main", *SIZE, "--", "-p", "no:hypothesispytest")
    assert code == 1
    assert verdicts["test_step"]["verdict"] == "slower"
    assert "operators" in verdicts["test_step"]["reason"]
    assert "benchmarks" not in printed.partition("pair 1")[0].partition("the change touches")[2]


def test_the_instrument_of_base_measures(measured, ab):
    """A change cannot take its own benchmark away, and cannot loosen its limit."""
    plant(measured)
    measured.commit()
    plant(measured, PLANTED.replace("[8, 8]", "[8, 8, 8]"))
    measured.change("benches/test_planted.py", "measure(Tiny().train_step())", "raise RuntimeError('never run')")
    measured.change("pyproject.toml", "9.0 }", "9.0, operators = 9.0, flops = 9.0, float32_flops = 9.0 }")
    code, verdicts, printed = ab("main", *SIZE, "--instrument", "base", "--", "-p", "no:hypothesispytest")
    assert code == 1
    assert verdicts["test_step"]["verdict"] == "slower"
    assert "the change touches instrument or benchmarks (benches/test_planted.py, pyproject.toml)" in printed


def test_a_deleted_benchmark_is_told_without_measuring(measured, ab):
    """Nothing that runs differs; what is gone fails when strict. A test that measures nothing is no benchmark."""
    both = MEASURED_BENCH + MEASURED_BENCH.replace("test_step", "test_other") + "\ndef test_plain():\n    pass\n"
    plant(measured)
    measured.write(benches__test_planted=both)
    measured.commit()
    measured.write(benches__test_planted=MEASURED_BENCH)
    code, verdicts, printed = ab("main", *SIZE)
    assert (code, words_of(verdicts)["test_other"]) == (0, "gone")
    assert "test_plain" not in verdicts
    assert "nothing that runs differs" in printed
    assert "perfgate: pair" not in printed
    assert ab("main", "--strict", *SIZE)[0] == 1
