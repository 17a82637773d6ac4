"""Git: where there is none, everything is unknown and nothing fails."""

import subprocess

import pytest

from perfgate import repository


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit."""
    (tmp_path / "a.py").write_text("a = 1\n", encoding="utf-8")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(tmp_path)]
    for arguments in (["init", "-qb", "main"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], check=True)
    return tmp_path


def test_a_clean_commit(checkout):
    """Its id, its branch, not dirty."""
    found = repository.commit(checkout, ignoring="results")
    assert (len(found["id"]), found["branch"], found["dirty"]) == (40, "main", "no")


def test_saved_runs_do_not_count_as_changes(checkout):
    """Anything else does."""
    (checkout / "results").mkdir()
    (checkout / "results" / "run.json").write_text("{}", encoding="utf-8")
    assert repository.commit(checkout, ignoring="results")["dirty"] == "no"
    (checkout / "a.py").write_text("a = 2\n", encoding="utf-8")
    assert repository.commit(checkout, ignoring="results")["dirty"] == "yes"


def test_outside_of_a_repository(tmp_path, monkeypatch):
    """Unknown."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert repository.commit(tmp_path, ignoring="results")["id"] == "unknown"


def test_without_git(tmp_path, monkeypatch):
    """Unknown, too."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert repository.commit(tmp_path, ignoring="results") == dict.fromkeys(("id", "branch", "dirty"), "unknown")


def test_tree_hash_follows_names_and_contents(tmp_path):
    """Equal trees have equal hashes; any change changes it."""
    (tmp_path / "a.py").write_text("a = 1\n", encoding="utf-8")
    before = repository.tree_hash(tmp_path)
    assert repository.tree_hash(tmp_path) == before
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    renamed = repository.tree_hash(tmp_path)
    (tmp_path / "b.py").write_text("a = 2\n", encoding="utf-8")
    assert len({before, renamed, repository.tree_hash(tmp_path)}) == 3


def test_changed_files_are_relative_to_the_project(checkout):
    """Those of another project begin with two dots; untracked ones count against the working tree only."""
    (checkout / "part").mkdir()
    (checkout / "part" / "b.py").write_text("b = 1\n", encoding="utf-8")
    (checkout / "a.py").write_text("a = 2\n", encoding="utf-8")
    assert repository.changed_files(checkout, "HEAD", None) == ["a.py", "part/b.py"]
    assert repository.changed_files(checkout / "part", "HEAD", None) == ["../a.py", "b.py"]
    assert repository.changed_files(checkout / "part", "HEAD", "HEAD") == []


@pytest.mark.parametrize("with_git", [True, False])
def test_the_fingerprint_is_of_code(checkout, tmp_path, monkeypatch, with_git):
    """Changed and new files of code count; saved runs, notes and what is hidden do not."""
    if not with_git:
        monkeypatch.setenv("PATH", "")
    before = repository.fingerprint(checkout, ignoring="results")
    for name in ("results/run.py", ".tox/b.py", "out.txt"):
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_text("", encoding="utf-8")
    (checkout / ".gitignore").write_text(".tox\n", encoding="utf-8")
    assert repository.fingerprint(checkout, ignoring="results") == before
    (checkout / "new.py").write_text("", encoding="utf-8")
    added = repository.fingerprint(checkout, ignoring="results")
    (checkout / "a.py").write_text("a = 2\n", encoding="utf-8")
    assert len({before, added, repository.fingerprint(checkout, ignoring="results")}) == 3
