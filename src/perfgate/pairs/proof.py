"""Proof that base and head ran their own code: an editable install, for one, can make both import the same."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

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
        files = [Path(file) for module, file in side.modules.items() if module.partition(".")[0] == own.name]
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


def check_exercised(changed: Collection[str], roots: Mapping[str, Path], loaded: Mapping[str, Collection[str]]) -> None:
    """Whether a suite ran any of the changed Python files from its checkouts.

    ``changed``: files relative to the roots; ``loaded``: files of each side's modules. Where only other files changed,
    nobody can tell.

    Raises:
        ComparisonError: where Python files changed and none of them was loaded on either side.
    """
    python = [name for name in changed if name.endswith(".py")]
    if not python or len(python) < len(changed):
        return
    found = {str((roots[side] / name).resolve()) for side in roots for name in python}
    if not found & {file for files in loaded.values() for file in files}:
        raise ComparisonError(
            f"none of the changed files ({', '.join(python[:3])}) was loaded from either checkout: the suite does not "
            "use them, or both sides imported an installed copy (install each side's own with --prepare)"
        )
