"""The two programs that are compared: where their code lies, and what each process may import of it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import perfgate
from perfgate import repository
from perfgate.errors import ComparisonError, RepositoryError

DOCUMENTS = (".md", ".rst")
DOCUMENT_FOLDERS = ("doc", "docs", ".github")
WORKING_TREE = "working tree"


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """One side's code."""

    name: str
    """``base`` or ``head``."""
    label: str
    """How to call it in a report: ``main (4f0c2a9be1d7)``."""
    commit: Mapping[str, str]
    """``id``, ``branch`` and ``dirty``, as in a run."""
    root: Path
    """The project's folder in the checkout."""

    def subject(self, path: str) -> Path:
        """The folder under test.

        Raises:
            ComparisonError: where this side has none.
        """
        folder = self.root / path
        if not folder.is_dir():
            raise ComparisonError(
                f"{self.label} has no {path}: name the package under test as [tool.perfgate] subject, "
                "or compare another project's suite with --suite"
            )
        return folder


@contextmanager
def checked_out(project: Path, revision: str | None, name: str, folder: Path, results: str) -> Iterator[Checkout]:
    """``revision`` in a worktree, or a copy of the working tree where it is ``None``; below ``folder``.

    A copy, so that editing on while it is measured changes nothing. Saved runs in ``results`` are left out.

    Raises:
        RepositoryError: where git cannot give it.
    """
    if revision is None:
        repository.top(project)
        commit = repository.commit(project, ignoring=results)
        dirty = repository.dirty_submodules(project)
        if dirty:
            raise RepositoryError(
                f"the submodule {dirty[0]} has changes of its own that no checkout has: commit them there and here"
            )
        head = commit["id"][:12]
        yield Checkout(
            name=name,
            label=f"{WORKING_TREE} (on {head})" if commit["dirty"] == "yes" else f"{WORKING_TREE} ({head})",
            commit=commit,
            root=_copy(project, folder / name, results),
        )
        return
    identifier = repository.resolve(project, revision)
    with repository.worktree(project, identifier, folder / name) as root:
        short = identifier[:12]
        label = short if identifier.startswith(revision) else f"{revision} ({short})"
        commit = {"id": identifier, "branch": revision, "dirty": "no"}
        yield Checkout(name=name, label=label, commit=commit, root=root)


def _copy(project: Path, folder: Path, results: str) -> Path:
    for path in repository.files_of_working_tree(project):
        if path.is_relative_to(results) and path.suffix == ".json":
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(project / path, target, follow_symlinks=False)
    return folder


def overlay(folder: Path, instrument: Path | None, packages: Path | None) -> Path:
    """A folder to import from: the instrument's ``perfgate``, and everything else of the side's own ``packages``.

    ``instrument`` is the folder that may hold ``perfgate`` (else the one that runs now serves), ``packages`` the folder
    with the package under test; both are ``None`` where only ``perfgate`` itself is to be importable.
    """
    folder.mkdir(parents=True)
    sources: dict[str, Path] = {}
    if packages is not None:
        sources |= {each.name: each for each in sorted(packages.iterdir()) if each.name != "__pycache__"}
    sources["perfgate"] = Path(perfgate.__file__).parent
    if instrument is not None and (instrument / "perfgate").is_dir():
        sources["perfgate"] = instrument / "perfgate"
    for name, source in sources.items():
        (folder / name).symlink_to(source.resolve())
    return folder


def runs_differently(changed: Iterable[str], results: str) -> list[str]:
    """Of changed files, those that are neither documents nor saved runs below ``results``. Code never is one."""
    return [
        name
        for name in changed
        if name.endswith(".py") or not (_is_document(Path(name)) or Path(name).is_relative_to(results))
    ]


def _is_document(path: Path) -> bool:
    return path.suffix.lower() in DOCUMENTS or path.parts[0] in DOCUMENT_FOLDERS or path.name == "LICENSE"
