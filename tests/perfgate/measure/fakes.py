"""A step made of plain functions, pytest-benchmark's fixture, and NVML as a test wants it to be."""

import os
import time
from contextlib import nullcontext
from types import SimpleNamespace

from pytest_benchmark.stats import Stats


class FakeStep:
    """Counts its runs; everything else is as quiet as can be."""

    identity = {"step": "fake"}  # noqa: RUF012
    samples = 1
    compiled = opaque = False
    repeatable = True
    tolerance = SimpleNamespace(norm_ratio=0.01, cosine=0.999, relative_error=1e-3)

    def __init__(self, log=None, name="step"):
        self.log = [] if log is None else log
        self.name = name

    def expected_against(self, plain):
        return "any"

    def figures(self):
        return ()

    def active(self):
        return nullcontext()

    def run(self):
        self.log.append(self.name)


class FakeBenchmark:
    """As much of pytest-benchmark's fixture as is used, with its own statistics; it refuses to be used twice."""

    def __init__(self):
        self.extra_info = {}
        self.stats = None

    def pedantic(self, target, setup, teardown, rounds, iterations):
        assert self.stats is None, "the fixture can only be used once"
        assert iterations == 1
        self.stats = SimpleNamespace(stats=Stats())
        for _ in range(rounds):
            setup()
            start = time.perf_counter()
            target()
            self.stats.stats.update(time.perf_counter() - start)
            teardown()


def processes(*pids):
    """As NVML lists them."""
    return [SimpleNamespace(pid=pid) for pid in pids]


def alone():
    """Only this process computes on the GPU."""
    return processes(os.getpid())


class FakeNVML:
    """The calls of pynvml that are used; each value may be an exception to raise, or a function to call."""

    class NVMLError(Exception):
        """As in pynvml, with a number."""

        def __init__(self, text="not supported", value=3):
            super().__init__(text)
            self.value = value

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_PERF_POLICY_POWER, NVML_PERF_POLICY_THERMAL = 0, 1
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0

    def __init__(self, **answers):
        self.answers = {
            "nvmlInit": None,
            "nvmlDeviceGetHandleByUUID": "handle",
            "nvmlDeviceGetTotalEnergyConsumption": 5_000,
            "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": self.NVMLError("not a slice", 2),
            "nvmlDeviceGetComputeRunningProcesses": alone,
            "nvmlDeviceGetMPSComputeRunningProcesses": [],
            "nvmlDeviceGetVirtualizationMode": 0,
            "nvmlDeviceGetTotalEccErrors": 0,
            "nvmlDeviceGetRemappedRows": (0, 0, 0, 0),
            "nvmlDeviceGetViolationStatus": SimpleNamespace(violationTime=0),
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetName": "NVIDIA H200",
            "nvmlDeviceGetAttributes": self.NVMLError(),
            "nvmlSystemGetNVMLVersion": "13.580.1",
            "nvmlDeviceGetCurrentClocksEventReasons": 0,
            "nvmlDeviceGetPowerUsage": 321_000,
            "nvmlDeviceGetClockInfo": 1980,
            "nvmlDeviceGetTemperature": 45,
            "nvmlSystemGetDriverVersion": "580.1",
            "nvmlDeviceGetMigMode": (0, 0),
            **answers,
        }
        self.asked = []

    def __getattr__(self, name):
        if name not in self.__dict__.get("answers", {}):
            raise AttributeError(name)

        def call(*arguments):
            self.asked.append((name, *arguments))
            answer = self.answers[name]
            answer = answer() if callable(answer) else answer
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call
