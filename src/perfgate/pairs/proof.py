"""Proof that base and head ran their own code: an editable install, for one, can make both import the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from perfgate.errors import ComparisonError
from perfgate.pairs.side import Side
from perfgate.repository import tree_hash

Proof = Callable[[Side], None]
"""Raises :class:`ComparisonError` where a process imported other code than its side's."""


def subject_prover(subjects: Mapping[str, Path]) -> Proof:
    """Checks that each side imported its own package under test, with the very content of its checkout.

    ``subjects``: the folder of each side, by name. A process that measured something and never imported the package is
    no proof of anything; one that died could not tell.
    """
    expected = {name: tree_hash(folder) for name, folder in subjects.items()}

    def prove(side: Side) -> None:
        name = side.launch.name
        if not side.records or side.death:
            return
        own = subjects[name].resolve()
        modules = {**side.installed, **side.modules}
        files = [Path(file) for module, file in modules.items() if module.partition(".")[0] == own.name]
        foreign = next((file for file in files if not file.is_relative_to(own)), None)
        if foreign:
            raise ComparisonError(f"{name} imported {foreign} instead of {own}: nothing was compared")
        if not files:
            raise ComparisonError(
                f"{name} measured without importing {own.name} from {own}: nothing of what is compared was run "
                "(an installed copy, or a wrong [tool.perfgate] subject?)"
            )
        if tree_hash(own) != expected[name]:
            raise ComparisonError(f"{name}'s code changed while it was measured ({own}): measure again")

    return prove


def suite_prover(roots: Mapping[str, Path], project: Path) -> Proof:
    """Checks that no side imported anything from the other's checkout or from the project's own folder."""

    def prove(side: Side) -> None:
        name = side.launch.name
        foreign = [project.resolve(), *(root.resolve() for other, root in roots.items() if other != name)]
        own = roots[name].resolve()
        for file in side.modules.values():
            path = Path(file)
            if any(path.is_relative_to(root) for root in foreign) and not path.is_relative_to(own):
                raise ComparisonError(
                    f"{name} imported {path}, which is not of its checkout {own} (an editable install?): install each "
                    'side\'s own with --prepare, or set pythonpath = ["src"] for pytest'
                )

    return prove


def check_exercised(changed: Collection[str], roots: Mapping[str, Path], loaded: Sequence[Mapping[str, str]]) -> None:
    """Whether a suite imported a changed file from somewhere else than its checkouts: an installed copy, for one.

    ``changed``: files relative to ``roots``, the sides' checkouts; ``loaded``: names and files of each side's modules.

    Raises:
        ComparisonError: where it did.
    """
    names = {name for file in changed for name in _module_names(file)}
    for modules in loaded:
        for name, file in modules.items():
            inside = any(Path(file).is_relative_to(root.resolve()) for root in roots.values())
            if name in names and not inside:
                raise ComparisonError(
                    f"{name} changed, and was imported from {file}: both sides ran the same copy; install each side's "
                    "own with --prepare"
                )


def _module_names(file: str) -> Iterator[str]:
    """What a Python file may be imported as: ``lib.core`` and ``src.lib.core`` of ``src/lib/core.py``."""
    path = PurePosixPath(file)
    if path.suffix != ".py" or path.name == "conftest.py":
        return
    parts = path.with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    folder_of_packages = 1 if len(parts) > 1 else 0  # a lone name is too common unless it lies at the top
    for start in range(len(parts) - folder_of_packages):
        yield ".".join(parts[start:])
    if path.name == "__init__.py" and parts:
        yield parts[-1]
    elif len(parts) == 2 and parts[0] == "src":
        yield parts[1]
