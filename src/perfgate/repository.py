"""All of git: the commit under test, what is dirty, who descends from whom, and checkouts of other commits."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfgate.errors import RepositoryError

UNKNOWN = "unknown"
TIMEOUT_SECONDS = 20
CHECKOUT_SECONDS = 600
SOURCES = {".c", ".cc", ".cfg", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".ini", ".py", ".pyx", ".toml"}
DIRTY_INSIDE = {
    "S.M.",
    "S..U",
    "S.MU",
    "SCM.",
    "SC.U",
    "SCMU",
}  # git status --porcelain=v2: modified or untracked content


def _git(root: Path, *arguments: str) -> str | None:
    """The command's output; ``None`` without git, outside a repository, or where git refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",  # file names are bytes
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.rstrip("\n") if done.returncode == 0 else None


def commit(root: Path, *, ignoring: str) -> dict[str, str]:
    """``id``, ``branch`` and ``dirty`` (yes, no, unknown); changes in the folder ``ignoring`` do not make it dirty."""
    head = _git(root, "rev-parse", "--verify", "HEAD")
    if head is None:
        return {"id": UNKNOWN, "branch": UNKNOWN, "dirty": UNKNOWN}
    changes = _git(root, "status", "--porcelain", "--", ".", f":(exclude){ignoring}")
    return {
        "id": head,
        "branch": _git(root, "rev-parse", "--abbrev-ref", "HEAD") or UNKNOWN,
        "dirty": UNKNOWN if changes is None else "yes" if changes else "no",
    }


def tree_hash(folder: Path) -> str:
    """SHA-256 (16 digits) over names and contents of all files below ``folder``, but for compiled ones."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def fingerprint(root: Path, *, ignoring: str) -> str:
    """SHA-256 (16 digits) of the code in the working tree: the commit, and whatever differs from it.

    Changes in the folder ``ignoring`` do not count; of new files, and where there is no git, only those of code do.
    """
    outside = ("--", ".", f":(exclude){ignoring}")
    head = _git(root, "rev-parse", "--verify", "HEAD")
    changes = _git(root, "diff", "HEAD", "--binary", *outside)
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z", *outside)
    if head is None or changes is None or new is None:
        head, changes, new = "no git", "", "\0".join(_sources(root, root / ignoring))
    digest = hashlib.sha256(f"{head}\0{changes}".encode(errors="surrogateescape"))
    for name in sorted(filter(None, new.split("\0"))):
        if Path(name).suffix in SOURCES and (root / name).is_file():
            digest.update(name.encode(errors="surrogateescape") + b"\0" + (root / name).read_bytes())
    return digest.hexdigest()[:16]


def _sources(root: Path, ignored: Path) -> Iterator[str]:
    """Files of code below ``root``, but for hidden folders and environments."""
    for place, folders, files in os.walk(root):
        inside = Path(place)
        folders[:] = [
            name
            for name in folders
            if not name.startswith((".", "__")) and name != "node_modules" and inside / name != ignored
            if not (inside / name / "pyvenv.cfg").is_file()
        ]
        yield from (str((inside / name).relative_to(root)) for name in files if Path(name).suffix in SOURCES)


def top(root: Path) -> Path:
    """The repository's top folder.

    Raises:
        RepositoryError: without git, or outside a repository.
    """
    if shutil.which("git") is None:
        raise RepositoryError("git is not installed, and two commits are to be compared: install it")
    found = _git(root, "rev-parse", "--show-toplevel")
    if found is None:
        raise RepositoryError(f"{root} is not in a git repository: run this inside the project's checkout")
    return Path(found)


def resolve(root: Path, revision: str) -> str:
    """The full id of a commit.

    Raises:
        RepositoryError: where there is none of that name, with what may help.
    """
    top(root)
    found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found:
        return found
    if _git(root, "rev-parse", "--is-shallow-repository") == "true":
        raise RepositoryError(
            f"no commit {revision!r} here: this clone is shallow; fetch more of it: git fetch --unshallow "
            "(actions/checkout: fetch-depth: 0)"
        )
    raise RepositoryError(
        f"no commit, branch or tag {revision!r} here; git fetch may bring it, git log --all shows all"
    )


def ancestors(root: Path) -> list[str] | None:
    """The last 20,000 commits that HEAD descends from, itself first, newest first; ``None`` where git cannot tell."""
    found = _git(root, "rev-list", "--max-count=20000", "HEAD")
    return found.split() if found else None


def is_ancestor(root: Path, commit: str, descendant: str) -> bool | None:
    """Whether ``descendant`` contains ``commit``; ``None`` where git cannot tell."""
    if any(_git(root, "cat-file", "-e", f"{each}^{{commit}}") is None for each in (commit, descendant)):
        return None
    return _git(root, "merge-base", "--is-ancestor", commit, descendant) is not None


def came_between(root: Path, commit_id: str, base: str, head: str) -> bool | None:
    """Whether ``head`` contains the commit and ``base`` does not; ``None`` where git cannot tell."""
    before, now = is_ancestor(root, commit_id, base), is_ancestor(root, commit_id, head)
    return None if before is None or now is None else now and not before


def files_of_working_tree(root: Path) -> list[Path]:
    """Files below ``root`` that are tracked, also in submodules, or could be, relative to it.

    Raises:
        RepositoryError: where git cannot list them.
    """
    tracked = _git(root, "ls-files", "--cached", "--recurse-submodules", "-z")
    others = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    if tracked is None or others is None:
        raise RepositoryError(f"git cannot list the files of {root}")
    paths = (Path(name) for name in (tracked + "\0" + others).split("\0") if name)
    return [path for path in dict.fromkeys(paths) if (root / path).is_symlink() or (root / path).is_file()]


def changed_files(root: Path, base: str, head: str | None) -> list[str]:
    """Files of the repository that differ between two commits, or between ``base`` and the working tree.

    Relative to ``root``; those of a monorepo's other projects begin with ``../``.

    Raises:
        RepositoryError: where git cannot tell; nothing differing is another answer.
    """
    repository = top(root)
    between = _git(repository, "diff", "--name-only", "-z", base, *([head] if head else []), "--")
    untracked = "" if head else _git(repository, "ls-files", "--others", "--exclude-standard", "-z")
    if between is None or untracked is None:
        raise RepositoryError(f"git cannot tell what differs between {base[:12]} and {head or 'the working tree'}")
    names = {name for name in (between + "\0" + untracked).split("\0") if name}
    return sorted(os.path.relpath(repository / name, root.resolve()) for name in names)


def dirty_submodules(root: Path) -> list[str]:
    """Submodules with changes of their own, which no commit of this repository names."""
    lines = (_git(root, "status", "--porcelain=v2") or "").splitlines()
    return [line.split(" ", 8)[8] for line in lines if line.startswith("1 ") and line.split(" ")[2] in DIRTY_INSIDE]


@contextmanager
def worktree(root: Path, commit_id: str, folder: Path) -> Iterator[Path]:
    """A checkout of a commit in the new folder ``folder``, with its submodules; removed in the end.

    Raises:
        RepositoryError: where git cannot make it.
    """
    repository = top(root)
    problem = _attempt(repository, "worktree", "add", "--detach", "--quiet", str(folder), commit_id)
    if problem:
        raise RepositoryError(f"git cannot check out {commit_id[:12]}: {problem}")
    try:
        if (folder / ".gitmodules").is_file():
            problem = _attempt(folder, "submodule", "update", "--init", "--recursive", "--quiet")
            if problem:
                raise RepositoryError(f"git cannot check out the submodules of {commit_id[:12]}: {problem}")
        project = folder / root.resolve().relative_to(repository.resolve())
        if not project.is_dir():
            raise RepositoryError(f"{commit_id[:12]} has no folder {project.relative_to(folder)}: nothing to compare")
        yield project
    finally:
        _attempt(repository, "worktree", "remove", "--force", "--force", str(folder))


def _attempt(root: Path, *arguments: str) -> str:
    """Run git; what it complains about, empty where it succeeds."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=CHECKOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"
