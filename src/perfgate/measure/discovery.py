"""Finding a GPU in NVML, or saying why it cannot be found and what to do about it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from perfgate.measure.nvml import UNKNOWN, Gpu, Unavailable, check_present

NOT_INSTALLED = "Python's NVML bindings are missing: pip install nvidia-ml-py"
MISMATCH = 18
DIFFERING = "the versions of the driver's kernel module and of NVML's library differ, as after an update"
RELOAD = (
    "restart the machine, or reload the module "
    "(sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; sudo modprobe nvidia)"
)
PROBLEMS = {  # NVML_ERROR_*: what it means here, and the remedy
    4: "NVML gives no permission: let this user, or this container, read /dev/nvidiactl",
    6: "NVML does not know this GPU: is it in this container?",
    9: "the NVIDIA driver is not loaded: sudo modprobe nvidia",
    12: "NVML's library libnvidia-ml.so.1 is missing: install the driver's, or start the container with --gpus all",
    13: "NVML's library is too old for these bindings: update the driver",
}


def find_gpu(uuid: str, library: Any = None, root: Path = Path("/")) -> Gpu:
    """The GPU with this UUID; one whose readings are all unknown where NVML is missing, refuses or does not know it.

    Raises:
        DeviceLost: where the GPU has fallen off the bus.
    """
    if library is None:
        try:
            library = importlib.import_module("pynvml")
        except ImportError:
            return Unavailable(uuid, NOT_INSTALLED)
    try:
        library.nvmlInit()
        return Gpu(library, uuid)
    except library.NVMLError as error:
        check_present(error, uuid)
        return Unavailable(uuid, _problem(library, error, root))


def _problem(library: Any, error: Exception, root: Path) -> str:
    number = getattr(error, "value", None)
    if number == MISMATCH:
        versions = f"{module_version(root)} and {_library_version(library)}"
        return f"{DIFFERING} ({versions}): {RELOAD}"
    return PROBLEMS.get(number, f"NVML: {error}") if isinstance(number, int) else f"NVML: {error}"


def module_version(root: Path = Path("/")) -> str:
    """Version of the loaded kernel module, which answers where NVML does not."""
    for file in ("sys/module/nvidia/version", "proc/driver/nvidia/version"):
        try:
            found = re.search(r"\d+\.\d+(\.\d+)?", (root / file).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found.group()
    return UNKNOWN


def _library_version(library: Any) -> str:
    """CUDA's major version, a dot, and the driver version it belongs to: ``13.580.65``."""
    try:
        return str(library.nvmlSystemGetNVMLVersion())
    except (library.NVMLError, AttributeError):
        return UNKNOWN
