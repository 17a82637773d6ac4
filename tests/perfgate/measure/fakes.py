"""A step made of plain functions, and NVML as a test wants it to be."""

from contextlib import nullcontext
from types import SimpleNamespace


class FakeStep:
    """Counts its runs; everything else is as quiet as can be."""

    identity = {"step": "fake"}  # noqa: RUF012
    samples = 1
    compiled = False
    repeatable = True
    tolerance = SimpleNamespace(norm_ratio=0.01, cosine=0.999, relative_error=1e-3)
    expected = "any"

    def __init__(self, log=None, name="step"):
        self.log = [] if log is None else log
        self.name = name

    def active(self):
        return nullcontext()

    def run(self):
        self.log.append(self.name)


class FakeNVML:
    """The calls of pynvml that are used; each value may be an exception to raise."""

    class NVMLError(Exception):
        """As in pynvml."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __init__(self, **answers):
        self.answers = {
            "nvmlInit": None,
            "nvmlDeviceGetHandleByUUID": "handle",
            "nvmlDeviceGetTotalEnergyConsumption": 5_000,
            "nvmlDeviceGetComputeRunningProcesses": [],
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
