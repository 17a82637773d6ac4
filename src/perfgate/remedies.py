"""What is said about each fault of the machine: what happened, as far as the exception tells, and what helps."""

from __future__ import annotations

import re

from perfgate import limits
from perfgate.raised import Seen
from perfgate.report import numbers


def gpu_memory(seen: Seen) -> str:
    """Asked, free, total and other processes, as far as the allocator tells them."""
    amount = r"([\d.]+ (?:bytes|[KMGT]iB))"
    asked = re.search(rf"(?:Tried to allocate|Requested size:) {amount}", seen.text)
    total = re.search(rf"total capaci?ty of {amount}", seen.text) or re.search(rf"{amount} total capacity", seen.text)
    free = re.search(rf"{amount} (?:is )?free", seen.text)
    others = re.findall(rf"Process (\d+) has {amount} memory in use", seen.text)
    parts = [f"asked for {asked[1]}"] if asked else []
    parts += [f"{free[1]} free{f' of {total[1]}' if total else ''}"] if free else []
    parts += ["other processes hold " + ", ".join(f"{held} (pid {pid})" for pid, held in others)] if others else []
    told = f" ({'; '.join(parts)})" if parts else ""
    remedy = "stop the other processes" if others else "make the batch smaller, or see who uses the GPU: nvidia-smi"
    return f"out of GPU memory{told}: {remedy}"


def host_memory(seen: Seen) -> str:
    """What was asked for, and the control group's limit."""
    asked = re.search(r"tried to allocate (\d+) bytes", seen.text)
    told = f" (asked for {numbers.size(int(asked[1]))})" if asked else ""
    limit = limits.memory_limit_bytes()
    cgroup = f"; this control group may use {numbers.size(limit)}" if limit else ""
    return f"out of host memory{told}{cgroup}: make the batch smaller, start fewer workers, or raise the limit"


def lost(seen: Seen) -> str:
    """Nothing can be measured any more."""
    return (
        f"the GPU is lost ({_first_line(seen)}): nothing more can be measured; "
        "see dmesg for Xid errors, reset or reboot the machine"
    )


def cuda_error(seen: Seen) -> str:
    """The error, which stays in the process."""
    remedy = "find the call with CUDA_LAUNCH_BLOCKING=1 and --perfgate-smoke"
    return f"{_first_line(seen)}: the process is unusable from here on; {remedy}"


def forked(_: Seen) -> str:
    """A forked child cannot use CUDA."""
    return "CUDA was used in a forked worker: start workers with multiprocessing_context='forkserver' or 'spawn'"


def shared_memory(_: Seen) -> str:
    """How large it is now, and how to enlarge it."""
    found = limits.shared_memory()
    size = f"; it has {numbers.size(found[0])}, {numbers.size(found[1])} free" if found else ""
    return f"loader workers ran out of shared memory in {limits.SHM}{size}: docker run --shm-size=8g, or fewer workers"


def loader_died(seen: Seen) -> str:
    """Who died of what, of how many."""
    how = re.search(r"killed by signal: ([\w ]+)", seen.text)
    which = re.search(r"pid(?:\(s\))? ([\d, ]+)", seen.text)
    who = f"a DataLoader worker{f' (pid {which[1].strip()})' if which else ''}{_of_workers(seen)}"
    remedy = "look for the OOM killer (dmesg), start docker with more --memory or --shm-size, or use fewer workers"
    died = f"was killed by signal: {how[1].strip()}" if how else "died"
    return f"{who} {died}: {remedy}"


def loader_hung(seen: Seen) -> str:
    """How long it was waited for."""
    waited = re.search(r"after ([\d.]+)", seen.text)
    long = f" for {waited[1]} s" if waited else ""
    return f"a DataLoader worker{_of_workers(seen)} gave nothing{long}: look for a lock or a slow disk in its dataset"


def _of_workers(seen: Seen) -> str:
    """The number of workers, from the iterator that raised."""
    for frame in seen.frames:
        count = getattr(frame.f_locals.get("self"), "_num_workers", None)  # DataLoader's iterator
        if isinstance(count, int):
            return f" of {count} (num_workers={count})"
    return ""


def open_files(_: Seen) -> str:
    """The limit, and two ways around it."""
    limit = limits.open_files_limit()
    told = f" (the limit is {limit})" if limit else ""
    return (
        f"too many open files{told}: ulimit -n 4096, "
        "or share tensors by file: torch.multiprocessing.set_sharing_strategy('file_system')"
    )


def processes(_: Seen) -> str:
    """Three limits that may have been reached."""
    return "no more processes or threads may be started: ulimit -u, docker's --pids-limit, or fewer workers"


def disk_full(seen: Seen) -> str:
    """Where, if it was told."""
    return f"no space left on the device{_at(seen.error)}: free some, or point TMPDIR to another disk"


def _at(error: BaseException) -> str:
    name = getattr(error, "filename", None)
    return f" at {name}" if name else ""


def _first_line(seen: Seen) -> str:
    return seen.text.strip().partition("\n")[0].rstrip(".") or type(seen.error).__name__
