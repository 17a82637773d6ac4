"""The machine, its software, and the state of this process, as they go into a run."""

from __future__ import annotations

import os
import platform
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import SettingsError
from perfgate.launch import has_huge_pages, usable_cores
from perfgate.measure.canary import read_canary
from perfgate.measure.nvml import UNKNOWN, Gpu, find_gpu
from perfgate.repository import tree_hash
from perfgate.results.record import Machine, Process

if TYPE_CHECKING:
    import torch

RECORDED_VARIABLES = (  # an allow-list: nothing else of the environment reaches a file
    "CUDA_LAUNCH_BLOCKING",
    "CUBLAS_WORKSPACE_CONFIG",
    "GLIBC_TUNABLES",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_WAIT_POLICY",
    "PYTORCH_ALLOC_CONF",
    "TORCHDYNAMO_DISABLE",
    "TORCH_LOGS",
)


def choose_device(name: str) -> torch.device:
    """``auto``, ``cpu`` or ``cuda`` as a device.

    Raises:
        SettingsError: for ``cuda`` where torch sees no GPU.
    """
    import torch

    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise SettingsError("--perfgate-device cuda: torch sees no CUDA GPU here; use cpu, or check nvidia-smi")
    return torch.device("cuda", torch.cuda.current_device()) if available and name != "cpu" else torch.device("cpu")


def gpu_of(device: torch.device) -> Gpu | None:
    """NVML's view of ``device``, matched by UUID; ``None`` on a CPU or without NVML."""
    import torch

    return find_gpu(str(torch.cuda.get_device_properties(device).uuid)) if device.type == "cuda" else None


def describe_machine(device: torch.device, gpu: Gpu | None) -> Machine:
    """Hard and soft fields of this machine as far as ``device`` uses it."""
    import torch

    hard = {"cpu": _cpu_model(), "cores": str(usable_cores()), "architecture": platform.machine()}
    soft = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        hard = {
            "gpu": properties.name,
            "gpu_memory": f"{properties.total_memory / 2**30:.0f} GiB",
            "gpu_count": str(torch.cuda.device_count()),
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
    if hard.get("mig") == "on":
        parts.append("mig")
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
        readings={"load": _load(), "steal_ticks": _steal(), **(gpu.readings() if gpu else {})},
    )


def _cpu_model() -> str:
    """The model's name, from the kernel or, elsewhere, from Python."""
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or UNKNOWN


def _tunables() -> dict[str, str]:
    return {
        "huge_pages": "on" if has_huge_pages(os.environ) else "off",
        "transparent_huge_pages": _bracketed("/sys/kernel/mm/transparent_hugepage/enabled"),
        "governor": next(iter(_lines("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")), UNKNOWN),
        "affinity": ",".join(map(str, sorted(os.sched_getaffinity(0))))
        if hasattr(os, "sched_getaffinity")
        else UNKNOWN,
        "garbage_collection": "off in timed rounds",
        **{name: os.environ[name] for name in RECORDED_VARIABLES if name in os.environ},
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


def _load() -> str:
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else UNKNOWN


def _steal() -> str:
    """Ticks that the hypervisor took from this machine since its start."""
    fields = next(iter(_lines("/proc/stat")), "").split()
    return fields[8] if len(fields) > 8 else UNKNOWN


def _bracketed(file: str) -> str:
    """The chosen word of a kernel file such as ``always [madvise] never``."""
    found = re.search(r"\[(\w+)\]", next(iter(_lines(file)), ""))
    return found.group(1) if found else UNKNOWN


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
