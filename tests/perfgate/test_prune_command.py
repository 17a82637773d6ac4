"""``perfgate prune``: says first, changes only what it said, and breaks nothing on the way."""

import json
import os

import pytest

from perfgate import cli
from perfgate.commands import prune
from perfgate.errors import UnsavableRun
from perfgate.results import writer
from perfgate.results.store import Store, read
from tests.conftest import MACHINE, record, replaced, run, stock_of, times

DATA = [0.01 + 0.00001 * ((7 * number) % 101) for number in range(101)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A project without settings."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def pruned(capsys):
    """Runs ``perfgate prune``: the exit code and what was printed."""

    def command(*words):
        code = cli.main(["prune", *map(str, words)])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return command


def save(here, day=1, data=DATA, **fields):
    """A saved run of that day."""
    made = run(record("a", times(*data)), stamp=f"202601{day:02}T000000000Z", **fields)
    return Store(here / "results").save(made, stock_of(made))


def contents(files):
    return [file.read_bytes() for file in files]


def samples(file):
    return len(read(file).records[0].measurement("wall_seconds").values)


def test_says_what_it_would_do_and_does_nothing(here, pruned):
    """Without --yes."""
    files = [save(here, day) for day in (1, 2, 3)]
    before = contents(files)
    code, printed = pruned("--keep", 1)
    assert code == 0
    assert "2 files to thin: " in printed
    assert "1 newest run and 0" in printed
    assert "git keeps the old contents" in printed
    assert "nothing was changed; add --yes" in printed
    assert contents(files) == before


def test_the_newest_stay(here, pruned):
    """The others are thinned, to the bytes that were announced."""
    files = [save(here, day) for day in (1, 2, 3)]
    newest = files[2].read_bytes()
    announced = pruned("--keep", 1)[1].splitlines()[0]
    code, printed = pruned("--keep", 1, "--yes")
    assert code == 0
    assert announced in printed
    assert "2 thinned" in printed
    assert [samples(file) for file in files] == [21, 21, 101]
    assert files[2].read_bytes() == newest
    assert f"{sum(file.stat().st_size for file in files[:2]) / 1024:.3g} KiB; " in announced


def test_a_second_time_there_is_nothing_to_do(here, pruned):
    """It is idempotent."""
    file = save(here)
    pruned("--keep", 0, "--yes")
    before = file.read_bytes()
    code, printed = pruned("--keep", 0, "--yes")
    assert code == 0
    assert "nothing to thin: 0 newest runs and 1 that" in printed
    assert file.read_bytes() == before


def test_by_default_a_hundred_runs_stay(here, pruned):
    """Of each machine."""
    one = save(here)
    for number in range(100):
        os.link(one, one.with_name(f"20270101T{number:09}Z-aaaaaaaaaaaa-0000.json"))
    save(here, machine=replaced(MACHINE, slug="other"))
    printed = pruned()[1]
    assert "1 file to thin" in printed
    assert "101 newest runs" in printed


def test_number_of_samples(here, pruned):
    """As asked for."""
    file = save(here)
    pruned("--keep", 0, "--samples", 51, "--yes")
    assert samples(file) == 51


@pytest.mark.parametrize("words", [("--samples", 20), ("--samples", 5), ("--keep", -1), ("--machine", "none")])
def test_usage(here, pruned, words):
    """Odd and enough for an interval; the option is named."""
    save(here)
    code, printed = pruned(*words)
    assert code == 2
    assert words[0] in printed


def test_help_has_examples(capsys):
    """Copied and adapted by users."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(["prune", "--help"])
    assert stopped.value.code == 0
    assert "perfgate prune --keep 200 --yes" in capsys.readouterr().out


def test_one_machine(here, pruned):
    """The others stay."""
    one, two = save(here), save(here, machine=replaced(MACHINE, slug="other"))
    pruned("--keep", 0, "--machine", "other", "--yes")
    assert [samples(one), samples(two)] == [101, 21]


def test_an_unreadable_file_is_passed_over(here, pruned):
    """Named, untouched, and the others are thinned."""
    bad, good = save(here, 1), save(here, 2)
    bad.write_text("{", encoding="utf-8")
    link = bad.with_name("20250101T000000000Z-abcabcabcabc-0000.json")
    link.symlink_to(good)
    code, printed = pruned("--keep", 0, "--yes")
    assert code == 0
    assert f"passed over: {bad}" in printed
    assert f"passed over: {link}" in printed
    assert bad.read_text(encoding="utf-8") == "{"
    assert link.is_symlink()
    assert samples(good) == 21


def test_nothing_else_is_touched(here, pruned):
    """Ledger, accepted regressions, journals."""
    folder = save(here).parent
    others = [folder / "ledger.json", folder.parent / "accepted.toml", folder / "x.journal", folder / ".tmp-1"]
    for file in others:
        file.write_text("mine", encoding="utf-8")
    pruned("--keep", 0, "--yes")
    assert contents(others) == [b"mine"] * 4


def test_a_full_disk_stops_it(here, pruned, monkeypatch):
    """What was thinned is, what was not is as before, and the number is said."""
    files = [save(here, day) for day in (1, 2, 3)]
    before = contents(files)
    real, calls = writer.replace_file, []

    def full_at_the_second(file, content):
        calls.append(file)
        if len(calls) == 2:
            raise UnsavableRun("cannot save: No space left on device: free some space")
        return real(file, content)

    monkeypatch.setattr(writer, "replace_file", full_at_the_second)
    code, printed = pruned("--keep", 0, "--yes")
    assert code == 2
    assert "free some space; 1 of 3 files were thinned" in printed
    assert sum(now != then for now, then in zip(contents(files), before, strict=True)) == 1


def test_interrupted_in_the_middle(here, pruned, monkeypatch):
    """Every file is old or new, and nothing is left over."""
    files = [save(here, day) for day in (1, 2)]
    before = contents(files)

    def interrupt(source, target):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupt)
        assert pruned("--keep", 0, "--yes")[0] == 130
    assert contents(files) == before
    assert {file.name for file in files[0].parent.iterdir()} == {file.name for file in files}


def test_a_file_that_changes_after_it_was_looked_at(here, pruned, monkeypatch):
    """Passed over, the others go on."""
    gone, stays = save(here, 2), save(here, 1)
    real = prune.prune

    def meanwhile(files, most):
        gone.unlink()
        return real(files, most)

    monkeypatch.setattr(prune, "prune", meanwhile)
    code, printed = pruned("--keep", 0, "--yes")
    assert code == 0
    assert "passed over: " in printed
    assert "1 thinned" in printed
    assert samples(stays) == 21


def test_progress_on_a_terminal_only(here, pruned, monkeypatch):
    """And only where it takes a while."""
    save(here)
    monkeypatch.setattr(prune, "SILENT_SECONDS", -1.0)
    assert "looking at 1 of 1" not in pruned("--keep", 0)[1]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert "looking at 1 of 1" in pruned("--keep", 0)[1]
    monkeypatch.setattr(prune, "SILENT_SECONDS", 60.0)
    assert "looking at 1 of 1" not in pruned("--keep", 0)[1]


def test_what_stock_compares_stays(here, pruned):
    """Its minimum, median and maximum."""
    file = save(here)
    pruned("--keep", 0, "--yes")
    stats = json.loads(file.read_text(encoding="utf-8"))["benchmarks"][0]["stats"]
    assert (stats["min"], stats["max"]) == (min(DATA), max(DATA))
    assert stats["median"] == sorted(DATA)[50]
