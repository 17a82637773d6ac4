"""The machine, its software, and the state of this process, as they go into a run."""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate import interference
from perfgate.errors import SettingsError
from perfgate.launch import has_huge_pages
from perfgate.limits import effective_cores, memory_readings
from perfgate.measure import host
from perfgate.measure.canary import read_canary
from perfgate.measure.discovery import find_gpu, module_version
from perfgate.measure.nvml import UNKNOWN, Gpu
from perfgate.repository import tree_hash
from perfgate.results.record import Machine, Process
from perfgate.shares import WORKERS

if TYPE_CHECKING:
    import torch


def choose_device(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` as a device.

    Raises:
        SettingsError: for ``cuda`` where torch sees no GPU.
    """
    import torch

    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise SettingsError(
            f"--perfgate-device cuda: torch sees no CUDA GPU here ({why_no_gpu()}); use cpu, or check nvidia-smi"
        )
    return torch.device("cuda", torch.cuda.current_device()) if available and name != "cpu" else torch.device("cpu")


def why_no_gpu() -> str:
    """What torch says where it sees no GPU: built without CUDA, a driver that is too old, or none at all."""
    import torch

    try:
        torch.cuda.init()
    except (AssertionError, RuntimeError) as error:
        sentence = str(error).strip().partition("\n")[0].rstrip(".")
        driver = module_version()
        return f"{sentence}; the driver is {driver}" if "driver" in sentence and driver != UNKNOWN else sentence
    return "none is visible; is CUDA_VISIBLE_DEVICES set?"


def gpu_of(device: torch.device) -> Gpu | None:
    """NVML's view of ``device``, matched by UUID; ``None`` on a CPU. Where NVML fails, all its readings are unknown.

    Raises:
        DeviceLost: where the GPU has fallen off the bus.
    """
    import torch

    return find_gpu(str(torch.cuda.get_device_properties(device).uuid)) if device.type == "cuda" else None


def describe_machine(
    device: torch.device, gpu: Gpu | None, *, cores: int | None = None, gpu_count: int | None = None
) -> Machine:
    """Hard and soft fields of this machine as far as ``device`` uses it.

    ``cores`` and ``gpu_count`` are those of the machine where this process is confined to some, or will be.
    """
    import torch

    hard = {"cpu": host.cpu_model(), "cores": str(cores or effective_cores()), "architecture": platform.machine()}
    soft = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "host": host.kind(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        hard = {
            "gpu": properties.name,
            "gpu_memory": f"{properties.total_memory / 2**30:.0f} GiB",
            "gpu_count": str(gpu_count or torch.cuda.device_count()),
            "mig": gpu.mig() if gpu else UNKNOWN,
            **hard,
        }
        soft |= {
            "driver": gpu.driver() if gpu else UNKNOWN,
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
        }
    return Machine(slug=slug(hard), hard=hard, soft=soft)


def slug(hard: dict[str, str]) -> str:
    """A readable folder name for the hard fields, at most 64 characters of ``[a-z0-9-]``."""
    parts = [hard["gpu"], hard["gpu_memory"], f"{hard['gpu_count']}x"] if "gpu" in hard else []
    mig = hard.get("mig", "off")
    if mig not in {"off", UNKNOWN} and "MIG" not in hard["gpu"]:  # the name of a slice tells its profile already
        parts.append("mig" if mig == "on" else f"mig {mig}")
    parts += [hard["cpu"], f"{hard['cores']}c", hard["architecture"]]
    text = re.sub(r"\((?:r|tm)\)|\bcpu\b|processor|@.*?ghz|\bgib\b", "", " ".join(parts).lower())
    return re.sub(r"[^a-z0-9]+", "-", text).strip("-")[:64].rstrip("-")


def describe_process(device: torch.device, gpu: Gpu | None, root: Path, subject: str) -> Process:
    """State of this process just now, with a reading of the canary; ``subject`` is the folder under test."""
    import torch

    return Process(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        threads=torch.get_num_threads(),
        canary=read_canary(device),
        tunables=_tunables(),
        subject=_subject(root, subject),
        readings={"load": host.load(), "steal_ticks": host.steal_ticks(), **memory_readings(), **_gpu_readings(gpu)},
    )


def _gpu_readings(gpu: Gpu | None) -> dict[str, str]:
    """With the reason where NVML tells nothing; empty on a CPU."""
    if gpu is None:
        return {}
    return gpu.readings() | ({"nvml": gpu.problem} if gpu.problem else {})


def _tunables() -> dict[str, str]:
    return {
        "huge_pages": "on" if has_huge_pages(os.environ) else "off",
        "transparent_huge_pages": host.transparent_huge_pages(),
        **host.frequencies(),
        "affinity": ",".join(map(str, sorted(os.sched_getaffinity(0))))
        if hasattr(os, "sched_getaffinity")
        else UNKNOWN,
        "garbage_collection": "off in timed rounds",
        # measuring side by side: they have the memory's bandwidth in common
        **({"workers": os.environ[WORKERS]} if os.environ.get(WORKERS) else {}),
        **interference.recorded(os.environ),
    }


def _subject(root: Path, subject: str) -> dict[str, str]:
    """Where the code under test was imported from, relative to the project, and its hash; empty if it was not."""
    module = sys.modules.get(Path(subject).name)
    if module is None or not module.__file__:
        return {}
    folder = Path(module.__file__).parent
    inside = folder.resolve().is_relative_to(root.resolve())
    path = str(folder.resolve().relative_to(root.resolve())) if inside else f"outside the project: {folder.name}"
    return {"path": path, "tree": tree_hash(folder)}
