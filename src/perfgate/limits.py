"""What a machine or a container grants this process: cores, memory, shared memory, open files. Linux; no torch.

Control groups: https://docs.kernel.org/admin-guide/cgroup-v2.html (``cpu.max``, ``memory.max``) and, before them,
``cpu.cfs_quota_us`` and ``memory.limit_in_bytes``. Whatever cannot be read is unknown, never an error.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfgate.report import numbers

UNKNOWN = "unknown"
CGROUPS, PROC, SHM = Path("/sys/fs/cgroup"), Path("/proc"), Path("/dev/shm")  # noqa: S108 - the kernel's, not ours
SHM_BYTES = 256 * 2**20
"""What a suite with loader workers needs unless it says otherwise: 8 workers with 2 batches of 16 MB each."""
OPEN_FILES = 256  # torch, pytest, and a loader with 16 workers take about 150
NO_LIMIT_BYTES = 2**60  # cgroup v1 writes "no limit" as a number near 2**63
STALLED_PERCENT = 1.0  # of the time; less is below what a benchmark can tell


def usable_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def effective_cores(cgroups: Path = CGROUPS, proc: Path = PROC) -> int:
    """Cores this process can keep busy: those of its affinity, or fewer where a control group's quota is smaller."""
    quota = cpu_quota(cgroups, proc)
    return usable_cores() if quota is None else max(1, min(usable_cores(), math.ceil(quota)))


def cpu_quota(cgroups: Path = CGROUPS, proc: Path = PROC) -> float | None:
    """Processor time per time that the control groups of this process allow, in cores; ``None`` without a limit."""
    quotas = [_quota(folder) for folder in _folders(cgroups, proc, "cpu")]
    return min((each for each in quotas if each is not None), default=None)


def memory_limit_bytes(cgroups: Path = CGROUPS, proc: Path = PROC) -> int | None:
    """The smallest memory limit of the control groups of this process; ``None`` without one."""
    found = []
    for folder in _folders(cgroups, proc, "memory"):
        words = _words(folder / "memory.max") or _words(folder / "memory.limit_in_bytes")
        if words and words[0].isdigit() and int(words[0]) < NO_LIMIT_BYTES:
            found.append(int(words[0]))
    return min(found, default=None)


def shared_memory(folder: Path = SHM) -> tuple[int, int] | None:
    """Total and free bytes of the shared memory that loader workers hand batches over in; ``None`` without any."""
    try:
        status = os.statvfs(folder)
    except (OSError, AttributeError):  # no such folder; no such call on Windows
        return None
    return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


def memory_readings(proc: Path = PROC) -> dict[str, str]:
    """``memory_pressure``: percent of the last 10 s in which something waited for memory; ``swap_used_bytes``."""
    fields = dict(word.split("=", 1) for word in _words(proc / "pressure" / "memory") if "=" in word)
    info = _meminfo(proc)
    swapped = info["SwapTotal"] - info["SwapFree"] if {"SwapTotal", "SwapFree"} <= info.keys() else None
    return {
        "memory_pressure": fields.get("avg10", UNKNOWN),
        "swap_used_bytes": UNKNOWN if swapped is None else str(swapped),
    }


def strained(readings: Mapping[str, str]) -> str:
    """Why readings of :func:`memory_readings` make times noisy, as a sentence; empty where they do not.

    Swap in use says something only where the kernel does not tell the pressure: it may be hours old.
    """
    pressure, swapped = readings.get("memory_pressure", UNKNOWN), readings.get("swap_used_bytes", UNKNOWN)
    if pressure == UNKNOWN:
        used = int(swapped) if swapped.isdigit() else 0
        return f"{numbers.size(used)} of swap are in use: times may be noisy; close other programs" if used else ""
    if _number(pressure) < STALLED_PERCENT:
        return ""
    return f"processes waited for memory in {pressure} % of the time: times are noisy; close other programs"


def shortages(
    shm_bytes: int = 0, *, shm: Path = SHM, open_files: int | None = None, cgroups: Path = CGROUPS, proc: Path = PROC
) -> list[str]:
    """What is scarce enough to break or disturb benchmarks, as sentences; for the start of a session.

    ``shm_bytes`` is what the suite needs in shared memory, 0 where it starts no workers. ``open_files`` is the
    limit of this process unless given.
    """
    return [*_shared_memory_shortage(shm_bytes, shm), *_files_shortage(open_files), *_cores_shortage(cgroups, proc)]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _shared_memory_shortage(needed: int, folder: Path) -> Iterator[str]:
    found = shared_memory(folder)
    if found and found[1] < needed:
        yield (
            f"{folder} has {numbers.size(found[1])} free, loader workers need {numbers.size(needed)}: "
            "start the container with docker run --shm-size=8g"
        )


def _files_shortage(limit: int | None) -> Iterator[str]:
    limit = open_files_limit() if limit is None else limit
    if limit is not None and limit < OPEN_FILES:
        yield f"this process may open {limit} files, fewer than the {OPEN_FILES} wanted: ulimit -n 4096"


def _cores_shortage(cgroups: Path, proc: Path) -> Iterator[str]:
    quota = cpu_quota(cgroups, proc)
    if quota is not None and quota < usable_cores():
        yield (
            f"this container may use {quota:g} of the {usable_cores()} cores it sees, and is stopped when it uses "
            "more: times are noisy; give it whole cores (docker run --cpuset-cpus) instead of a quota"
        )


def open_files_limit() -> int | None:
    """The soft limit of open files; ``None`` without one or where there is no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _quota(folder: Path) -> float | None:
    words = _words(folder / "cpu.max") or [
        *_words(folder / "cpu.cfs_quota_us"),
        *_words(folder / "cpu.cfs_period_us"),
    ]
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return None  # "max 100000" and "-1" are no limit
    return int(words[0]) / int(words[1])


def _folders(cgroups: Path, proc: Path, controller: str) -> Iterator[Path]:
    """The control groups of this process and those around them: the smallest limit of all counts."""
    yield from (cgroups, cgroups / controller)
    for line in _lines(proc / "self" / "cgroup"):
        _, names, path = [*line.split(":", 2), "", ""][:3]
        if names and controller not in names.split(","):
            continue
        folder = (cgroups / controller if names else cgroups) / path.lstrip("/")
        while folder not in (cgroups, cgroups / controller, folder.parent):
            yield folder
            folder = folder.parent


def _meminfo(proc: Path) -> dict[str, int]:
    """Bytes by name; the kernel writes them in kB."""
    found = {}
    for line in _lines(proc / "meminfo"):
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            found[name] = int(words[0]) * 1024
    return found


def _words(file: Path) -> list[str]:
    """The words of the first line."""
    return next(iter(_lines(file)), "").split()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
