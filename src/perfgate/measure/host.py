"""The host as the kernel describes it: cores, frequencies, load. What cannot be read is ``unknown``, never an error."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

UNKNOWN = "unknown"
ROOT = Path("/")
CPU = "sys/devices/system/cpu"
ON_OFF = {"0": "off", "1": "on"}


def cpu_model(root: Path = ROOT) -> str:
    """The model's name, from the kernel or, elsewhere, from Python."""
    for line in _lines(root / "proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or UNKNOWN


def frequencies(root: Path = ROOT) -> dict[str, str]:
    """What decides how fast cores run: ``governor``, ``turbo`` and ``smt``, the last two as ``on`` or ``off``."""
    no_turbo = ON_OFF.get(_first(root / CPU / "intel_pstate/no_turbo"), UNKNOWN)
    boost = ON_OFF.get(_first(root / CPU / "cpufreq/boost"), UNKNOWN)
    return {
        "governor": _first(root / CPU / "cpu0/cpufreq/scaling_governor") or UNKNOWN,
        "turbo": {"on": "off", "off": "on"}.get(no_turbo, boost),
        "smt": ON_OFF.get(_first(root / CPU / "smt/active"), UNKNOWN),
    }


def transparent_huge_pages(root: Path = ROOT) -> str:
    """``always``, ``madvise`` or ``never``: the chosen word of a file such as ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", _first(root / "sys/kernel/mm/transparent_hugepage/enabled"))
    return found.group(1) if found else UNKNOWN


def kind(root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> str:
    """What stands between this process and the hardware.

    Of ``GitHub-hosted``, ``WSL``, ``virtual machine`` and ``container`` those seen; ``bare metal`` where none is.
    """
    if not _lines(root / "proc/cpuinfo"):
        return UNKNOWN
    control_group = "\n".join(_lines(root / "proc/1/cgroup"))
    signs = {
        "GitHub-hosted": environment.get("RUNNER_ENVIRONMENT") == "github-hosted",
        "WSL": "microsoft" in _first(root / "proc/sys/kernel/osrelease").lower(),
        "virtual machine": any(
            line.startswith("flags") and "hypervisor" in line.split() for line in _lines(root / "proc/cpuinfo")
        ),
        "container": any(
            (root / each).exists() for each in (".dockerenv", "run/.containerenv", "run/systemd/container")
        )
        or any(word in control_group for word in ("docker", "kubepods", "containerd", "lxc")),
    }
    return ", ".join(name for name, found in signs.items() if found) or "bare metal"


def load() -> str:
    """Processes that ran or waited to run over the last minute."""
    try:
        return f"{os.getloadavg()[0]:.2f}"
    except (AttributeError, OSError):
        return UNKNOWN


def steal_ticks(root: Path = ROOT) -> str:
    """Ticks that the hypervisor took from this machine since its start."""
    fields = _first(root / "proc/stat").split()
    return fields[8] if len(fields) > 8 else UNKNOWN


def _first(file: Path) -> str:
    """The first line; empty where there is none."""
    return next(iter(_lines(file)), "").strip()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
