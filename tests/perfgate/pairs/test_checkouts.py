"""Checkouts of two sides: what git has, what it has not, and what is left behind (nothing)."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import perfgate
from perfgate import repository
from perfgate.errors import ComparisonError, RepositoryError
from perfgate.pairs.checkouts import checked_out, overlay, runs_differently

GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]


def git(folder, *words):
    """The output of git."""
    done = subprocess.run([*GIT, "-C", str(folder), *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def write(folder, **files):
    """Files by name; ``__`` stands for a slash, and all of them are Python unless they say otherwise."""
    for name, content in files.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")


def commit(folder, message="x"):
    """Everything; the id."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path):
    """A repository with one commit."""
    folder = tmp_path / "project"
    write(folder, src__pack__a="a = 1\n", src__other__b="b = 1\n", old="x = 1\n")
    (folder / ".gitignore").write_text("ignored.py\n", encoding="utf-8")
    git(folder, "init", "-qb", "main")
    commit(folder)
    return folder


@pytest.fixture
def scratch(tmp_path):
    """Where checkouts go."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def files(root):
    """Files of a checkout, without git's."""
    found = (file.relative_to(root) for file in root.rglob("*") if file.is_file())
    return {str(each) for each in found if each.parts[0] != ".git"}


def test_a_commit_in_a_worktree(project, scratch):
    """Its content, not the working tree's, under the name it was asked for."""
    identifier = git(project, "rev-parse", "HEAD")
    write(project, src__pack__a="a = 2\n")
    with checked_out(project, "main", "base", scratch, "results") as side:
        assert side.root == scratch / "base"
        assert (side.root / "src" / "pack" / "a.py").read_text() == "a = 1\n"
        assert (side.name, side.label) == ("base", f"main ({identifier[:12]})")
        assert side.commit == {"id": identifier, "branch": "main", "dirty": "no"}


def test_an_id_is_its_own_name(project, scratch):
    """Not said twice."""
    identifier = git(project, "rev-parse", "HEAD")
    with checked_out(project, identifier[:9], "base", scratch, "results") as side:
        assert side.label == identifier[:12]


def test_the_worktree_is_removed(project, scratch):
    """Also after an error, and from git's list."""
    with pytest.raises(ZeroDivisionError), checked_out(project, "main", "base", scratch, "results") as side:
        assert side.root.is_dir()
        write(side.root, new="x")
        raise ZeroDivisionError
    assert not (scratch / "base").exists()
    assert len(git(project, "worktree", "list").splitlines()) == 1


def test_the_same_commit_twice(project, scratch):
    """For a self-check."""
    with (
        checked_out(project, "main", "base", scratch, "results") as base,
        checked_out(project, "main", "head", scratch, "results") as head,
    ):
        assert files(base.root) == files(head.root)


def test_a_copy_of_a_dirty_working_tree(project, scratch):
    """With what is modified and untracked, without what is deleted, ignored or saved as a result."""
    write(project, src__pack__a="a = 2\n", src__pack__new="n = 1\n", ignored="x")
    (project / "old.py").unlink()
    (project / "results" / "m").mkdir(parents=True)
    (project / "results" / "m" / "run.json").write_text("{}", encoding="utf-8")
    (project / "results" / "accepted.toml").write_text("", encoding="utf-8")
    with checked_out(project, None, "head", scratch, "results") as side:
        assert files(side.root) == {
            ".gitignore",
            "results/accepted.toml",
            "src/other/b.py",
            "src/pack/a.py",
            "src/pack/new.py",
        }
        assert (side.root / "src" / "pack" / "a.py").read_text() == "a = 2\n"
        assert side.label == f"working tree (on {git(project, 'rev-parse', 'HEAD')[:12]})"
        assert side.commit["dirty"] == "yes"


def test_a_copy_does_not_follow_later_edits(project, scratch):
    """Nor does the project follow the copy."""
    with checked_out(project, None, "head", scratch, "results") as side:
        write(project, src__pack__a="a = 3\n")
        assert (side.root / "src" / "pack" / "a.py").read_text() == "a = 1\n"
        write(side.root, old="x = 9\n")
    assert (project / "old.py").read_text() == "x = 1\n"


def test_a_clean_working_tree_is_called_so(project, scratch):
    """By its commit; saved runs do not make it dirty."""
    (project / "results").mkdir()
    (project / "results" / "run.json").write_text("{}", encoding="utf-8")
    with checked_out(project, None, "head", scratch, "results") as side:
        assert side.label == f"working tree ({git(project, 'rev-parse', 'HEAD')[:12]})"


def test_links_are_copied_as_links(project, scratch):
    """Also one that leads nowhere, and one to a folder."""
    (project / "nowhere.py").symlink_to("gone.py")
    (project / "folder").symlink_to("src")
    with checked_out(project, None, "head", scratch, "results") as side:
        assert (side.root / "nowhere.py").readlink() == Path("gone.py")
        assert (side.root / "folder").readlink() == Path("src")


def test_names_that_are_no_utf8_are_copied(project, scratch):
    """A file system takes any bytes."""
    Path(os.fsdecode(os.fsencode(project) + b"/\xff.txt")).write_text("x", encoding="utf-8")
    with checked_out(project, None, "head", scratch, "results") as side:
        assert len(list(side.root.glob("*.txt"))) == 1


def test_a_subject_that_is_not_there(project, scratch):
    """Named by side, with the remedies."""
    with checked_out(project, "main", "base", scratch, "results") as side:
        assert side.subject("src/pack") == side.root / "src" / "pack"
        with pytest.raises(ComparisonError, match=r"main \(.*\) has no src/workloads: .*subject.*--suite"):
            side.subject("src/workloads")


def test_an_unknown_revision(project, scratch):
    """With what may help."""
    with (
        pytest.raises(RepositoryError, match=r"no commit, branch or tag .no-such..*git fetch"),
        checked_out(project, "no-such", "base", scratch, "results"),
    ):
        pass


@pytest.mark.parametrize("revision", ["main:old.py", "--help", "-x", "", "HEAD^{tree}", "HEAD~99", "a b", "\n"])
def test_what_is_no_commit_is_refused(project, scratch, revision):
    """Also where git would take it for an option."""
    with (
        pytest.raises(RepositoryError, match="no commit"),
        checked_out(project, revision, "base", scratch, "results"),
    ):
        pass


def test_outside_of_a_repository(tmp_path, scratch, monkeypatch):
    """Says where to run it, of a commit and of the working tree."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    (tmp_path / "plain").mkdir()
    for revision in ("main", None):
        with (
            pytest.raises(RepositoryError, match="not in a git repository: run this inside"),
            checked_out(tmp_path / "plain", revision, "base", scratch, "results"),
        ):
            pass


@pytest.mark.parametrize("revision", ["main", None])
def test_without_git(project, scratch, monkeypatch, revision):
    """Says that it is not installed."""
    monkeypatch.setenv("PATH", "")
    with (
        pytest.raises(RepositoryError, match="git is not installed"),
        checked_out(project, revision, "base", scratch, "results"),
    ):
        pass


def test_a_shallow_clone(project, scratch, tmp_path):
    """Says how to fetch more."""
    first = git(project, "rev-parse", "HEAD")
    write(project, new="n = 1\n")
    commit(project)
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", str(tmp_path / "shallow"))
    for revision in ("HEAD~1", first):
        with (
            pytest.raises(RepositoryError, match=r"shallow.*git fetch --unshallow"),
            checked_out(tmp_path / "shallow", revision, "base", scratch, "results"),
        ):
            pass


@pytest.fixture
def submodule(project, tmp_path):
    """The project with a submodule; its folder."""
    part = tmp_path / "part"
    write(part, inside="i = 1\n")
    git(part, "init", "-qb", "main")
    commit(part)
    git(project, "submodule", "--quiet", "add", str(part), "part")
    commit(project)
    return project / "part"


def allow_files(monkeypatch):
    """Let git's own processes clone from a folder."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")


def test_a_submodule_is_checked_out(project, submodule, scratch, monkeypatch):
    """In a worktree."""
    allow_files(monkeypatch)
    with checked_out(project, "main", "base", scratch, "results") as side:
        assert (side.root / "part" / "inside.py").read_text() == "i = 1\n"
    assert not (scratch / "base").exists()
    assert len(git(project, "worktree", "list").splitlines()) == 1


def test_a_submodule_is_copied(project, submodule, scratch, monkeypatch):
    """As part of the working tree, or head would lack what base has."""
    allow_files(monkeypatch)
    with checked_out(project, None, "head", scratch, "results") as side:
        assert "part/inside.py" in files(side.root)


def test_a_submodule_that_cannot_be_fetched(project, submodule, scratch, monkeypatch):
    """Says so, and leaves no worktree."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "never")
    shutil.rmtree(project / ".git" / "modules")
    with (
        pytest.raises(RepositoryError, match="cannot check out the submodules"),
        checked_out(project, "main", "base", scratch, "results"),
    ):
        pass
    assert not (scratch / "base").exists()
    assert len(git(project, "worktree", "list").splitlines()) == 1


@pytest.mark.parametrize("name", ["inside", "untracked"])
def test_a_submodule_with_changes_of_its_own(project, submodule, scratch, name):
    """No commit has them, so that nobody could measure them again."""
    write(submodule, **{name: "i = 2\n"})
    with (
        pytest.raises(RepositoryError, match="submodule part has changes"),
        checked_out(project, None, "head", scratch, "results"),
    ):
        pass


def test_a_project_in_a_folder_of_a_larger_repository(tmp_path, scratch):
    """Its own folder is the root on both sides, and the working tree's copy has nothing else."""
    whole = tmp_path / "whole"
    write(whole, project__src__pack__a="a = 1\n", elsewhere__b="b = 1\n")
    git(whole, "init", "-qb", "main")
    commit(whole)
    with (
        checked_out(whole / "project", "main", "base", scratch, "results") as base,
        checked_out(whole / "project", None, "head", scratch, "results") as head,
    ):
        assert base.root == scratch / "base" / "project"
        assert files(base.root) == files(head.root) == {"src/pack/a.py"}
    assert not (scratch / "base").exists()


def test_changes_are_named_from_the_projects_folder(tmp_path):
    """Committed ones and untracked ones alike; those of a larger repository's other projects, too."""
    whole = tmp_path / "whole"
    write(whole, project__docs__conf="a = 1\n", elsewhere__b="b = 1\n")
    git(whole, "init", "-qb", "main")
    commit(whole)
    write(whole, project__docs__conf="a = 2\n", project__docs__new="n = 1\n", elsewhere__b="b = 2\n")
    found = repository.changed_files(whole / "project", "HEAD", None)
    assert found == ["../elsewhere/b.py", "docs/conf.py", "docs/new.py"]


def test_a_project_that_base_has_not(tmp_path, scratch):
    """The folder is new: an error of ours, not of the first who enters it."""
    whole = tmp_path / "whole"
    write(whole, elsewhere__b="b = 1\n")
    git(whole, "init", "-qb", "main")
    commit(whole)
    write(whole, project__src__pack__a="a = 1\n")
    with (
        pytest.raises((RepositoryError, ComparisonError), match="project"),
        checked_out(whole / "project", "main", "base", scratch, "results"),
    ):
        pass


def test_imports_are_the_sides_own_but_for_perfgate(project, scratch):
    """What the instrument has beside it, base must not see: it would run head's code."""
    write(project, src__third__c="c = 1\n", src__perfgate__x="")
    with checked_out(project, "main", "base", scratch, "results") as base:
        (base.root / "src" / "__pycache__").mkdir()
        made = overlay(scratch / "imports", project / "src", base.root / "src")
        assert {each.name for each in made.iterdir()} == {"perfgate", "pack", "other"}
        assert (made / "pack").resolve() == base.root / "src" / "pack"
        assert (made / "other").resolve() == base.root / "src" / "other"
        assert (made / "perfgate").resolve() == project / "src" / "perfgate"


def test_the_sides_own_perfgate_does_not_measure(project, scratch):
    """The instrument's does, or else the one that runs now: never one per side."""
    write(project, src__perfgate__x="")
    made = overlay(scratch / "imports", scratch, project / "src")
    assert (made / "perfgate").resolve() == Path(perfgate.__file__).parent


def test_imports_for_another_projects_suite(project, scratch):
    """perfgate alone: the rest is the project's own business."""
    made = overlay(scratch / "imports", project / "src", None)
    assert [each.name for each in made.iterdir()] == ["perfgate"]


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "a/b/CHANGELOG.MD",
        "docs/conf.txt",
        "doc/x.png",
        ".github/workflows/ci.yml",
        "results/m/run.json",
        "LICENSE",
        "src/pack/LICENSE",
        "x.rst",
    ],
)
def test_documents_do_not_run(name):
    """A change of them alone is not worth measuring."""
    assert runs_differently([name], "results") == []


@pytest.mark.parametrize(
    "name",
    [
        "a.py",
        "src/docs/a.py",
        "docs/conf.py",
        "results/tool.py",
        "setup.cfg",
        "data.txt",
        "src/pack/license.txt",
        "README.md.py",
        "documents/a.py",
    ],
)
def test_anything_else_may_run(name):
    """Also code in a folder of documents, and what lies in a folder of that name elsewhere."""
    assert runs_differently([name, "README.md"], "results") == [name]


def test_changed_documents_with_umlauts_are_documents(project):
    """git quotes such names unless told not to."""
    head = git(project, "rev-parse", "HEAD")
    (project / "docs").mkdir()
    (project / "docs" / "\u00fcbersicht.png").write_text("x", encoding="utf-8")
    assert runs_differently(repository.changed_files(project, head, None), "results") == []


def test_where_git_cannot_tell_what_changed_it_is_an_error(project):
    """Nothing changed would mean a pass that measured nothing."""
    with pytest.raises(RepositoryError):
        repository.changed_files(project, "no-such-commit", None)
