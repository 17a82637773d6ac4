"""``perfgate list``: what is saved, however much and however broken it is."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from perfgate import cli
from perfgate.results.store import Store
from tests.conftest import MACHINE, record, replaced, run, stock_of

SLUG = MACHINE.slug


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with settings that name the folder of runs."""
    (tmp_path / "pyproject.toml").write_text('[tool.perfgate]\nresults = "saved"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def listed(capsys):
    """Runs ``perfgate list``: the exit code and what was printed."""

    def command(*words):
        code = cli.main(["list", *map(str, words)])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return command


def save(here, day=1, **fields):
    """A saved run of that day."""
    made = run(**{"stamp": f"202601{day:02}T010203000Z", **fields})
    return Store(here / "saved").save(made, stock_of(made))


def test_what_is_said_of_a_run(here, listed):
    """Name, time, commit, branch, dirtiness, number of benchmarks, status, label, size."""
    commit = {"id": "b" * 40, "branch": "feature", "dirty": "yes"}
    made = run(record("a"), record("b"), commit=commit, label="before", status="interrupted")
    file = Store(here / "saved").save(made, stock_of(made))
    code, printed = listed()
    assert code == 0
    assert f"{SLUG}: 1 saved run\n  {file.name}\n" in printed
    size = f"{file.stat().st_size / 1024:.2f} KiB"
    line = f"2026-01-01 00:00:00 UTC  {'b' * 12}  feature, dirty  2 benchmarks  interrupted  before  {size}"
    assert line in printed


def test_newest_first_and_the_rest_counted(here, listed):
    """The rest is not opened: it may even be no run."""
    files = [save(here, day) for day in (2, 3, 1)]
    files[2].write_text("{", encoding="utf-8")
    _, printed = listed("-n", 2)
    assert "3 saved runs" in printed
    assert printed.index(files[1].name) < printed.index(files[0].name)
    assert "and 1 older; --all lists them" in printed
    assert "unreadable" not in printed


def test_all_by_name(here, listed):
    """None is opened."""
    files = [save(here, day) for day in range(1, 4)]
    files[0].write_text("{", encoding="utf-8")
    _, printed = listed("--all", "-n", "1")
    assert f"{files[0].name}  2026-01-01 01:02:03 UTC  {'a' * 12}  1 B" in printed
    assert all(file.name in printed for file in files)
    assert "older" not in printed


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"<<<<<<< HEAD", b"{}"])
def test_an_unreadable_file_is_shown_and_the_rest_goes_on(here, listed, content):
    """With the reason, without the path twice."""
    good, bad = save(here, 1), save(here, 2)
    bad.write_bytes(content)
    code, printed = listed()
    assert code == 0
    assert "unreadable: " in printed
    assert str(bad) not in printed
    assert "1 benchmark " in printed.partition(good.name)[2]


def test_a_link_is_not_followed(here, listed):
    """Out of the folder of runs."""
    file = save(here)
    file.with_name("20260102T000000000Z-abcabcabcabc-0000.json").symlink_to("/etc/passwd")
    _, printed = listed()
    assert "unreadable: is a link" in printed


def test_unfinished_runs(here, listed):
    """Their journals, also where the machine has nothing else."""
    (here / "saved" / "other").mkdir(parents=True)
    (here / "saved" / "other" / "20260101T000000000Z-abcabcabcabc-0000.journal").write_bytes(b"x" * 2048)
    code, printed = listed()
    assert code == 0
    assert "other: 0 saved runs\n  20260101T000000000Z-abcabcabcabc-0000.journal  2.00 KiB\n" in printed
    assert "pytest --perfgate-resume, or perfgate recover" in printed


def test_one_machine(here, listed):
    """Or the names of those that are there."""
    save(here)
    save(here, machine=replaced(MACHINE, slug="other"))
    _, printed = listed("--machine", "other")
    assert "other: 1" in printed
    assert SLUG not in printed
    code, printed = listed("--machine", "none")
    assert code == 2
    assert f"there are: other, {SLUG}" in printed


def test_nothing_saved(here, listed):
    """And how to change that."""
    code, printed = listed()
    assert code == 0
    assert "no saved run in" in printed
    assert "--benchmark-compare" in printed


def test_another_folder(here, listed):
    """It must be there."""
    save(here)
    assert "1 saved run" in listed("--results", here / "saved")[1]
    code, printed = listed("--results", here / "none")
    assert code == 2
    assert "no such folder" in printed


def test_usage(here, listed, capsys):
    """No negative numbers; the help has examples."""
    assert listed("-n", -1)[0] == 2
    with pytest.raises(SystemExit) as stopped:
        cli.main(["list", "--help"])
    assert stopped.value.code == 0
    assert "perfgate list --all" in capsys.readouterr().out


def test_narrow_terminal(here, listed, monkeypatch):
    """No line is longer, and no figure is torn from its unit."""
    monkeypatch.setenv("COLUMNS", "40")
    save(here, label="a label of several words that has to go somewhere")
    save(here, 2).write_text("{", encoding="utf-8")
    for words in ((), ("--all",)):
        printed = listed(*words)[1]
        assert max(map(len, printed.splitlines())) <= 40
        assert not any(line.strip() in ("KiB", "UTC") for line in printed.splitlines())


def test_names_are_made_fit_for_a_terminal(here, listed):
    """A branch may be called anything."""
    save(here, commit={"id": "a" * 40, "branch": "x\x1b[31m\u202ered", "dirty": "no"})
    printed = listed()[1]
    assert "\x1b" not in printed
    assert "\u202e" not in printed


PROGRAM = """
import sys
from pathlib import Path
from perfgate.cli import main
main(["list"])
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


def list_in_a_process():
    """What a fresh process prints, its seconds and the most memory it had, in MiB."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    return done.stdout, seconds, int(done.stdout.split()[-2]) / 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_ten_thousand_runs(here):
    """Starts at once and needs little memory: only the newest are opened."""
    newest = save(here, 1, stamp="20270101T000000000Z")
    _, few_seconds, few_mebibytes = list_in_a_process()
    for number in range(10_000):
        os.link(newest, newest.with_name(f"20260101T{number:09}Z-aaaaaaaaaaaa-0000.json"))
    printed, seconds, mebibytes = list_in_a_process()
    assert "and 9981 older" in printed
    assert seconds - few_seconds < 0.5
    assert mebibytes - few_mebibytes < 20
