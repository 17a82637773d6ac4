"""NVIDIA's management library: every reading is tried alone, and "unknown" is a value.

Devices are found by UUID, since NVML and CUDA number them differently.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

UNKNOWN = "unknown"
THROTTLES = {  # NVML_CLOCKS_EVENT_REASON_*: those that slow a benchmark down; a power cap is normal under load
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}


class Gpu:
    """One GPU's readings through ``library`` (the module ``pynvml``, or a fake)."""

    def __init__(self, library: Any, uuid: str) -> None:
        """``uuid`` as torch gives it, with or without its ``GPU-`` or ``MIG-`` prefix."""
        self._library = library
        self._handle = library.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}")

    def _read(self, call: Callable[[], Any]) -> Any:
        """The call's value, or ``None`` where NVML refuses, does not support it or lost the device."""
        try:
            return call()
        except (self._library.NVMLError, AttributeError):
            return None

    def energy_joules(self) -> float | None:
        """The counter of all energy since the driver was loaded."""
        millijoules = self._read(lambda: self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        return None if millijoules is None else millijoules / 1e3

    def other_processes(self) -> list[int] | None:
        """Process ids that compute on this GPU beside this one."""
        running = self._read(lambda: self._library.nvmlDeviceGetComputeRunningProcesses(self._handle))
        return None if running is None else [each.pid for each in running if each.pid != os.getpid()]

    def throttles(self) -> list[str] | None:
        """Why the clocks are held down now."""
        mask = self._read(lambda: self._library.nvmlDeviceGetCurrentClocksEventReasons(self._handle))
        return None if mask is None else [text for bit, text in THROTTLES.items() if mask & bit]

    def readings(self) -> dict[str, str]:
        """Clocks, temperature, power, throttle reasons, other processes, driver; as text with units."""
        library, handle = self._library, self._handle
        watts = self._read(lambda: library.nvmlDeviceGetPowerUsage(handle) / 1e3)
        others, throttles = self.other_processes(), self.throttles()
        return {
            "gpu_clock": _text(
                self._read(lambda: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM)), "MHz"
            ),
            "memory_clock": _text(
                self._read(lambda: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_MEM)), "MHz"
            ),
            "temperature": _text(
                self._read(lambda: library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU)), "C"
            ),
            "power": _text(watts, "W"),
            "throttling": UNKNOWN if throttles is None else ", ".join(throttles) or "none",
            "other_processes": UNKNOWN if others is None else str(len(others)),
        }

    def driver(self) -> str:
        """The driver's version."""
        return str(self._read(self._library.nvmlSystemGetDriverVersion) or UNKNOWN)

    def mig(self) -> str:
        """Whether the GPU is partitioned: ``on``, ``off`` or ``unknown``."""
        mode = self._read(lambda: self._library.nvmlDeviceGetMigMode(self._handle)[0])
        return UNKNOWN if mode is None else "on" if mode else "off"


def find_gpu(uuid: str, library: Any = None) -> Gpu | None:
    """The GPU with this UUID; ``None`` where NVML is missing, refuses, or does not know it."""
    if library is None:
        try:
            library = importlib.import_module("pynvml")
        except ImportError:
            return None
    try:
        library.nvmlInit()
        return Gpu(library, uuid)
    except library.NVMLError:
        return None


def flags(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """What disturbed a measurement between two readings, as sentences."""
    found = []
    for readings, when in ((before, "before"), (after, "after")):
        throttling = readings.get("throttling", UNKNOWN)
        if throttling not in {UNKNOWN, "none", "power cap"}:
            found.append(f"GPU clocks held down {when} the rounds: {throttling}")
        if readings.get("other_processes", "0") not in {UNKNOWN, "0"}:
            found.append(f"{readings['other_processes']} other processes on the GPU {when} the rounds")
    return tuple(found)


def _text(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:g} {unit}"
