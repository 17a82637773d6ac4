"""How many cores this process can keep busy; perfgate asks the same for itself, and neither may import the other."""

import math
import os
from pathlib import Path

QUOTAS = ("cpu.max", "cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us")  # of control groups, version 2 and version 1


def usable_cores(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Cores of this process's affinity, or fewer where its container has a smaller quota of processor time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for files in QUOTAS:
        words = " ".join(_text(cgroups / file) for file in files.split()).split()
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):  # else "max" or -1: no quota
            cores = min(cores, math.ceil(int(words[0]) / int(words[1])))
    return max(1, cores)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
