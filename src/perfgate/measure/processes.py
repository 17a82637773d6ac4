"""Which of the processes that NVML lists on a GPU are not ours.

Not others are this process, its descendants (loader workers), its ancestors (the session that measures again in fresh
processes) and, where processes take turns, the partners under the same controller.

NVML may tell process ids of another pid namespace than this container's. ``NSpid`` in ``/proc/self/status`` does not
help there: it lists ids of the inner namespaces only. But this process computes on the GPU when it asks, so that it is
one of those listed: the others are one fewer.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path


def count_others(listed: Collection[int], *, partners: bool = False, proc: Path = Path("/proc")) -> int | None:
    """How many of the processes ``listed`` on the GPU that this process computes on are not ours.

    ``partners``: other processes of the same controller compute on it, too, and wait while this one works.

    ``None`` where nobody can tell: nothing is listed, so that even this process is hidden, or the ids are of another
    namespace and it is not known how many are ours.
    """
    present = set(listed)
    strangers = present - family(partners=partners, proc=proc)
    if not present:
        return None
    if strangers == present:  # not even this process: ids of another namespace
        return None if partners else len(present) - 1
    return len(strangers)


def family(*, partners: bool = False, proc: Path = Path("/proc")) -> set[int]:
    """Ids of this process and of its relatives; without ``/proc``, of this process and its parent."""
    try:
        own = int((proc / "self").readlink().name)  # as this /proc counts, which may be the host's
    except (OSError, ValueError):
        return {os.getpid(), os.getppid()}
    parents = _parents(proc)
    line = [own]
    while (parent := parents.get(line[-1], 0)) and parent not in line:
        line.append(parent)
    tree = {line[1] if partners and len(line) > 1 else own}
    while more := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return {os.getpid(), *line, *tree}


def _parents(proc: Path) -> dict[int, int]:
    """Parent of every process that can be seen; those that end meanwhile are left out."""
    parents = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])  # after the command's name: state, parent
            except (OSError, ValueError, IndexError):
                continue
    return parents
