"""``perfgate clean``: old temporary files and nothing else."""

import os
import time
from pathlib import Path

import pytest

from perfgate import cli
from perfgate.results.store import Store
from tests.conftest import run, stock_of

DAY_SECONDS = 24 * 3600


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A project with one saved run."""
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path


@pytest.fixture
def folder(here):
    """The machine's."""
    return Store(here / "results").save(run(), stock_of(run())).parent


@pytest.fixture
def cleaned(capsys):
    """Runs ``perfgate clean``: the exit code and what was printed."""

    def command(*words):
        code = cli.main(["clean", *map(str, words)])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return command


def age(file, seconds):
    """As if it had last been written so long ago."""
    moment = time.time() - seconds
    os.utime(file, (moment, moment), follow_symlinks=False)
    return file


def write(file, seconds=DAY_SECONDS + 60):
    file.write_bytes(b"x" * 1024)
    return age(file, seconds)


def test_says_what_it_would_remove(folder, cleaned):
    """In the folder of runs and in machines' folders, without --yes."""
    files = write(folder / ".tmp-a"), write(folder.parent / ".tmp-b")
    code, printed = cleaned()
    assert code == 0
    assert all(f"{file}  1.00 KiB" in printed for file in files)
    assert "2 left-over temporary files older than a day, 2.00 KiB" in printed
    assert "nothing was removed; add --yes" in printed
    assert all(file.exists() for file in files)


def test_removes_them(folder, cleaned):
    """With --yes."""
    files = write(folder / ".tmp-a"), write(folder.parent / ".tmp-b")
    code, printed = cleaned("--yes")
    assert code == 0
    assert "2 removed" in printed
    assert not any(file.exists() for file in files)


def test_a_young_one_may_be_in_use(folder, cleaned):
    """It stays for a day."""
    file = write(folder / ".tmp-a", DAY_SECONDS - 60)
    assert "0 left-over" in cleaned("--yes")[1]
    assert file.exists()


def test_runs_journals_and_all_else_stay(folder, cleaned):
    """However old they are."""
    stay = [age(file, 9 * DAY_SECONDS) for file in folder.iterdir()]
    stay += [write(folder / name) for name in ("x.journal", "ledger.json", "tmp-a", "a.tmp-")]
    assert cleaned("--yes")[0] == 0
    assert all(file.exists() for file in stay)


def test_links_and_folders_stay(folder, here, cleaned):
    """Nothing outside is reached through them."""
    outside = here / "outside"
    outside.mkdir()
    target = write(outside / ".tmp-target")
    link = folder / ".tmp-link"
    link.symlink_to(target)
    age(link, 9 * DAY_SECONDS)
    (folder.parent / "linked").symlink_to(outside)
    (folder / ".tmp-folder").mkdir()
    age(folder / ".tmp-folder", 9 * DAY_SECONDS)
    assert "0 left-over" in cleaned("--yes")[1]
    assert target.exists()
    assert link.is_symlink()
    assert (folder / ".tmp-folder").is_dir()


def test_a_folder_of_runs_that_leads_elsewhere_is_refused(here, tmp_path_factory, cleaned):
    """Whoever plants a link must not make us remove files there."""
    file = write(tmp_path_factory.mktemp("elsewhere") / ".tmp-a")
    (here / "results").symlink_to(file.parent)
    code, printed = cleaned("--yes")
    assert code == 2
    assert "is a link" in printed
    assert file.exists()


def test_no_folder_of_runs(cleaned):
    """Nothing to do; a folder that is named must be there."""
    assert cleaned()[0] == 0
    assert cleaned("--results", "none")[0] == 2


def test_what_cannot_be_removed_is_named(folder, cleaned, monkeypatch):
    """With the remedy."""
    file = write(folder / ".tmp-a")

    def refuse(self, missing_ok=False):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "unlink", refuse)
    code, printed = cleaned("--yes")
    assert code == 2
    assert f"cannot remove {file}: Permission denied" in printed


def test_one_that_is_gone_by_now_is_no_error(folder, cleaned, monkeypatch):
    """Two may clean at once."""
    file = write(folder / ".tmp-a")
    monkeypatch.setattr("perfgate.commands.clean.left_over", lambda store, now_seconds: [(file, 1), (file, 1)])
    assert cleaned("--yes")[0] == 0


def test_help_has_examples(capsys):
    """Copied and adapted by users."""
    with pytest.raises(SystemExit) as stopped:
        cli.main(["clean", "--help"])
    assert stopped.value.code == 0
    assert "perfgate clean --yes" in capsys.readouterr().out
