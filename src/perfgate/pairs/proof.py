"""Proof that base and head ran different code: an editable install, for one, can make both import the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from perfgate.errors import ComparisonError
from perfgate.pairs.side import Side
from perfgate.repository import tree_hash

Proof = Callable[[Side], None]
"""Raises :class:`ComparisonError` where a process imported other code than its side's."""


def subject_prover(subjects: Mapping[str, Path]) -> Proof:
    """Checks that each side imported its own package under test, with the very content of its checkout.

    ``subjects``: the folder of each side, by name.
    """
    expected = {name: tree_hash(folder) for name, folder in subjects.items()}

    def prove(side: Side) -> None:
        name, about = side.launch.name, side.about
        if not about:  # nothing was measured with ``measure``
            return
        imported, tree = about["imported"], about["process"]["subject"].get("tree", "")
        if not imported:
            return
        if Path(imported) != subjects[name].resolve():
            raise ComparisonError(f"{name} imported {imported} instead of {subjects[name]}: nothing was compared")
        if tree != expected[name]:
            raise ComparisonError(f"{name}'s code changed while it was measured ({subjects[name]}): measure again")

    return prove


def suite_prover(roots: Mapping[str, Path], project: Path) -> Proof:
    """Checks that no side imported anything from the other's checkout or from the project's own folder."""

    def prove(side: Side) -> None:
        name = side.launch.name
        foreign = [project.resolve(), *(root.resolve() for other, root in roots.items() if other != name)]
        own = roots[name].resolve()
        for file in side.modules:
            path = Path(file)
            if any(path.is_relative_to(root) for root in foreign) and not path.is_relative_to(own):
                raise ComparisonError(
                    f"{name} imported {path}, which is not of its checkout {own} (an editable install?): install each "
                    'side\'s own with --prepare, or set pythonpath = ["src"] for pytest'
                )

    return prove
