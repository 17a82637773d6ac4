"""Which part of a suite a session was asked to run: a benchmark outside of it is not gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Scope:
    """The arguments as node-id prefixes, and how much was deselected."""

    prefixes: tuple[str, ...]
    """Relative to the project's root; empty text covers everything."""
    deselected: int
    narrowed: bool = False
    """Whether files were kept from being collected, so that their benchmarks are not gone."""

    def covers(self, name: str) -> bool:
        """Whether the benchmark of this node id would have run."""
        return any(
            not prefix or name == prefix or name.startswith((f"{prefix}/", f"{prefix}::", f"{prefix}["))
            for prefix in self.prefixes
        )

    @property
    def full(self) -> bool:
        """Whether the whole suite ran: no file was picked and nothing deselected."""
        return not (self.deselected or self.narrowed) and not any(".py" in prefix for prefix in self.prefixes)

    def as_dict(self) -> dict[str, Any]:
        """For the run."""
        return {"args": list(self.prefixes), "deselected": self.deselected, "full": self.full}


def of(args: Sequence[str], invoked_in: Path, root: Path, *, deselected: int, narrowed: bool = False) -> Scope:
    """The scope of pytest's positional arguments (or of ``testpaths``, which pytest puts there).

    ``narrowed`` tells that options such as ``--lf`` or ``--ignore`` kept files from being collected.
    """
    prefixes = []
    for arg in args:
        path, separator, rest = arg.partition("::")
        absolute = (invoked_in / path).resolve()
        inside = absolute.relative_to(root.resolve()) if absolute.is_relative_to(root.resolve()) else Path(path)
        prefixes.append(("" if inside == Path() else inside.as_posix()) + separator + rest)
    return Scope(tuple(prefixes), deselected, narrowed)
