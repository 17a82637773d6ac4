"""The environment that measuring processes start in; it cannot be changed once a process runs.

Physical page placement is the largest noise between CPU processes. Huge pages for malloc, OpenMP threads that sleep
while they wait, and one core left free took the noise of a pair of processes from 4-7 % to 1.0-1.3 %
(``tools/pair_noise.py`` measures it again).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from perfgate.limits import effective_cores

HUGE_PAGES = "glibc.malloc.hugetlb=1"  # madvise; https://sourceware.org/glibc/manual/latest/html_node/Memory-Allocation-Tunables.html
COMMAND = "perfgate exec pytest benches/ --benchmark-compare"


def quiet_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """``environment`` with what makes timings repeatable; whatever is already set there stays."""
    quiet = dict(environment)
    tunables = quiet.get("GLIBC_TUNABLES", "")
    if "glibc.malloc.hugetlb" not in tunables:
        quiet["GLIBC_TUNABLES"] = ":".join(filter(None, [tunables, HUGE_PAGES]))
    quiet.setdefault("OMP_WAIT_POLICY", "passive")
    quiet.setdefault("OMP_NUM_THREADS", str(max(1, effective_cores() - 1)))
    quiet.setdefault("KINETO_LOG_LEVEL", "5")  # the profiler's own chatter
    return quiet


def has_huge_pages(environment: Mapping[str, str]) -> bool:
    """Whether malloc asks for huge pages in a process started with ``environment``."""
    return "glibc.malloc.hugetlb=" in environment.get("GLIBC_TUNABLES", "")


def replace_process(command: Sequence[str]) -> None:
    """Become ``command``, in the quiet environment.

    Raises:
        OSError: where there is no such program.
    """
    os.execvpe(command[0], list(command), quiet_environment(os.environ))
