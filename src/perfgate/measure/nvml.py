"""NVIDIA's management library: every reading is tried alone, and "unknown" is a value. It only ever reads.

A GPU that is lost is no unknown: nothing can be measured on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from perfgate.errors import DeviceLost
from perfgate.measure.processes import count_others

UNKNOWN = "unknown"
THROTTLES = {  # NVML_CLOCKS_EVENT_REASON_*: those that slow a benchmark down; a power cap is normal under load
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
LOST = {15: "the GPU is lost (NVML error 15)", 16: "the GPU needs a reset (NVML error 16)"}
SHARED_BY = {
    2: "vGPU",
    3: "vGPU host",
    4: "vSGA host",
}  # NVML_GPU_VIRTUALIZATION_MODE_*; passed through (1) is one's own
MALFORMED = (AttributeError, OSError, TypeError, ValueError)  # an older library, or one that misread its driver


class Gpu:
    """One GPU's readings through ``library`` (the module ``pynvml``, or a fake)."""

    problem = ""
    """Why NVML tells nothing of this GPU, with the remedy; empty where it does."""

    def __init__(self, library: Any, uuid: str) -> None:
        """``uuid`` as torch gives it, with or without its ``GPU-`` or ``MIG-`` prefix.

        Raises:
            NVMLError: the library's own, where it does not know this GPU.
        """
        self._library = library
        self.uuid, self._handle = _look_up(library, uuid)
        # clocks, temperature and memory errors are the whole GPU's, and unsupported on a slice
        whole = self._read(lambda: library.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self._handle))
        self._whole = whole if self._is_slice and whole is not None else self._handle

    @property
    def _is_slice(self) -> bool:
        return self.uuid.startswith("MIG-")

    def _read(self, call: Callable[[], Any]) -> Any:
        """The call's value, or ``None`` where NVML refuses or does not support it.

        Raises:
            DeviceLost: where the GPU is no longer there.
        """
        try:
            return call()
        except MALFORMED:
            return None
        except self._library.NVMLError as error:
            check_present(error, self.uuid)
            return None
        except getattr(self._library, "NVMLLibraryMismatchError", ()):  # a driver too old for this version of a call
            return None

    def energy_joules(self) -> float | None:
        """The counter of all energy since the driver was loaded."""
        millijoules = self._read(lambda: self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle))
        return None if millijoules is None else millijoules / 1e3

    def clock_megahertz(self) -> float | None:
        """The clock of the multiprocessors."""
        return _number(
            self._read(lambda: self._library.nvmlDeviceGetClockInfo(self._whole, self._library.NVML_CLOCK_SM))
        )

    def other_processes(self, *, partners: bool = False) -> int | None:
        """How many processes compute on this GPU that are not ours, as :mod:`perfgate.measure.processes` tells them."""
        running = self._read(
            lambda: [each.pid for each in self._library.nvmlDeviceGetComputeRunningProcesses(self._handle)]
        )
        return None if running is None else count_others(running, partners=partners)

    def throttles(self) -> list[str] | None:
        """Why the clocks are held down now."""
        library = self._library
        mask = self._read(lambda: library.nvmlDeviceGetCurrentClocksEventReasons(self._whole))
        if mask is None:  # the name before driver 535
            mask = self._read(lambda: library.nvmlDeviceGetCurrentClocksThrottleReasons(self._whole))
        return None if mask is None else [text for bit, text in THROTTLES.items() if mask & bit]

    def held_down_nanoseconds(self) -> dict[str, int]:
        """For how long clocks have been held down since the driver was loaded, by reason; empty where unknown."""
        read = {
            "thermal slowdown": self._violation_nanoseconds("NVML_PERF_POLICY_THERMAL"),
            "power cap": self._violation_nanoseconds("NVML_PERF_POLICY_POWER"),
        }
        return {reason: value for reason, value in read.items() if value is not None}

    def _violation_nanoseconds(self, policy: str) -> int | None:
        library = self._library
        read = self._read(
            lambda: int(library.nvmlDeviceGetViolationStatus(self._whole, getattr(library, policy)).violationTime)
        )
        return None if read is None else int(read)

    def sharing(self) -> str:
        """What lets others compute on this GPU at the same time: ``MPS``, ``vGPU``, ``none`` or ``unknown``.

        Time slicing has no call of its own: it shows as other processes.
        """
        clients = self._read(lambda: list(self._library.nvmlDeviceGetMPSComputeRunningProcesses(self._whole)))
        mode = self._read(lambda: self._library.nvmlDeviceGetVirtualizationMode(self._whole))
        if clients is None and mode is None:
            return UNKNOWN
        return ", ".join(filter(None, ["MPS" if clients else "", SHARED_BY.get(mode, "")])) or "none"

    def memory_errors(self) -> str:
        """Errors of the GPU's memory that are not mended: uncorrectable ones since the last reset, rows to remap."""
        library = self._library
        count = self._read(
            lambda: library.nvmlDeviceGetTotalEccErrors(
                self._whole, library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, library.NVML_VOLATILE_ECC
            )
        )
        pending, failed = self._read(lambda: tuple(library.nvmlDeviceGetRemappedRows(self._whole)[2:4])) or (None, None)
        if count is None and pending is None:
            return UNKNOWN
        found = [f"{count} uncorrectable" if count else "", "a row remap is pending" if pending else ""]
        return ", ".join(filter(None, [*found, "a row remap failed" if failed else ""])) or "none"

    def readings(self, *, partners: bool = False) -> dict[str, str]:
        """Clocks, temperature, power, throttling, other processes, sharing, memory errors; as text with units."""
        library, whole = self._library, self._whole
        others, throttles = self.other_processes(partners=partners), self.throttles()
        memory = self._read(lambda: library.nvmlDeviceGetClockInfo(whole, library.NVML_CLOCK_MEM))
        celsius = self._read(lambda: library.nvmlDeviceGetTemperature(whole, library.NVML_TEMPERATURE_GPU))
        milliwatts = _number(self._read(lambda: library.nvmlDeviceGetPowerUsage(self._handle)))
        persistence = self._read(lambda: library.nvmlDeviceGetPersistenceMode(whole))
        return {
            "gpu": self.uuid,
            "gpu_clock": _text(self.clock_megahertz(), "MHz"),
            "memory_clock": _text(_number(memory), "MHz"),
            "temperature": _text(_number(celsius), "C"),
            "power": _text(None if milliwatts is None else milliwatts / 1e3, "W"),
            "throttling": UNKNOWN if throttles is None else ", ".join(throttles) or "none",
            "other_processes": UNKNOWN if others is None else str(others),
            "sharing": self.sharing(),
            "memory_errors": self.memory_errors(),
            "persistence": UNKNOWN if persistence is None else "on" if persistence else "off",
        }

    def driver(self) -> str:
        """The driver's version."""
        return str(self._read(lambda: str(self._library.nvmlSystemGetDriverVersion())) or UNKNOWN)

    def mig(self) -> str:
        """How the GPU is partitioned: the profile of this slice (``1g.10gb``), ``on``, ``off`` or ``unknown``."""
        if self._is_slice:
            return self._profile() or "on"
        mode = self._read(lambda: self._library.nvmlDeviceGetMigMode(self._handle)[0])
        return UNKNOWN if mode is None else "on" if mode else "off"

    def _profile(self) -> str:
        """From the name (``NVIDIA H100 80GB HBM3 MIG 1g.10gb``), else from the slice's size; empty where unknown."""
        named = re.search(r"MIG (\S+)", str(self._read(lambda: self._library.nvmlDeviceGetName(self._handle))))
        if named:
            return named.group(1)
        size = self._read(lambda: self._library.nvmlDeviceGetAttributes(self._handle))
        return f"{size.gpuInstanceSliceCount}g.{round(size.memorySizeMB / 1024)}gb" if size is not None else ""


class Unavailable(Gpu):
    """A GPU of which NVML tells nothing: every reading is unknown, and :attr:`problem` says why."""

    def __init__(self, uuid: str, problem: str) -> None:
        """``problem``: the reason and the remedy."""
        self.uuid = uuid if _prefixed(uuid) else f"GPU-{uuid}"
        self.problem = problem
        self._library = self._handle = self._whole = None

    def _read(self, call: Callable[[], Any]) -> None:
        """Nothing."""


def check_present(error: Exception, uuid: str) -> None:
    """Whether NVML's ``error`` is of a GPU that is there.

    Raises:
        DeviceLost: where it is not.
    """
    lost = LOST.get(getattr(error, "value", 0))
    if lost:
        raise DeviceLost(
            f"{uuid}: {lost}; see Xid in the kernel's log, drain this runner, and reset the GPU or restart the machine"
        ) from error


def _look_up(library: Any, uuid: str) -> tuple[str, Any]:
    """The UUID with its prefix, and NVML's handle. By UUID only: NVML and CUDA number devices differently."""
    if _prefixed(uuid):
        return uuid, library.nvmlDeviceGetHandleByUUID(uuid)
    try:
        return f"GPU-{uuid}", library.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    except library.NVMLError as error:
        check_present(error, f"GPU-{uuid}")
        try:  # torch leaves the prefix of a slice out, too
            return f"MIG-{uuid}", library.nvmlDeviceGetHandleByUUID(f"MIG-{uuid}")
        except library.NVMLError:
            raise error from None


def _prefixed(uuid: str) -> bool:
    return uuid.startswith(("GPU-", "MIG-"))


def _number(value: Any) -> float | None:
    """A reading as a number; ``None`` where it is none."""
    return float(value) if isinstance(value, int | float) else None


def _text(value: float | None, unit: str) -> str:
    return UNKNOWN if value is None else f"{value:g} {unit}"
