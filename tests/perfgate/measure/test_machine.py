"""The machine: NVML that answers, refuses or is missing; the environment; the canary; energy."""

import sys
from types import SimpleNamespace

import pytest
import torch

from perfgate.errors import SettingsError
from perfgate.measure import environment, nvml
from perfgate.measure.canary import read_canary
from perfgate.measure.energy import energy_per_step
from perfgate.measure.nvml import Gpu, find_gpu
from tests.perfgate.measure.fakes import FakeNVML


def test_a_gpu_is_found_by_its_uuid():
    """NVML and CUDA number devices differently; torch leaves the prefix out."""
    library = FakeNVML()
    find_gpu("1234", library)
    find_gpu("MIG-77", library)
    handles = [call for call in library.asked if call[0] == "nvmlDeviceGetHandleByUUID"]
    assert [call[1] for call in handles] == ["GPU-1234", "MIG-77"]


def test_readings_with_units():
    """All of them."""
    readings = Gpu(FakeNVML(), "x").readings()
    assert readings == {
        "gpu_clock": "1980 MHz",
        "memory_clock": "1980 MHz",
        "temperature": "45 C",
        "power": "321 W",
        "throttling": "none",
        "other_processes": "0",
    }


@pytest.mark.parametrize("error", [FakeNVML.NVMLError("no permission"), AttributeError("not in this version")])
def test_each_call_that_refuses_is_unknown_alone(error):
    """The others still answer."""
    readings = Gpu(FakeNVML(nvmlDeviceGetPowerUsage=error), "x").readings()
    assert readings["power"] == "unknown"
    assert readings["temperature"] == "45 C"
    everything = dict.fromkeys((name for name in FakeNVML().answers if name.startswith("nvmlDeviceGet")), error)
    del everything["nvmlDeviceGetHandleByUUID"]
    gpu = Gpu(FakeNVML(**everything), "x")
    assert set(gpu.readings().values()) == {"unknown"}
    assert gpu.energy_joules() is None
    assert gpu.mig() == "unknown"


def test_without_nvml_there_is_no_gpu(monkeypatch):
    """No library, no driver, or a device it does not know."""
    assert find_gpu("x", FakeNVML(nvmlInit=FakeNVML.NVMLError("library not found"))) is None
    assert find_gpu("x", FakeNVML(nvmlDeviceGetHandleByUUID=FakeNVML.NVMLError("not found"))) is None
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find_gpu("x") is None


def test_throttling_and_other_processes_are_flagged():
    """A power cap is normal under load; unknown is no accusation."""
    other = SimpleNamespace(pid=1)
    hot = Gpu(FakeNVML(nvmlDeviceGetCurrentClocksEventReasons=0x44), "x").readings()
    busy = Gpu(FakeNVML(nvmlDeviceGetComputeRunningProcesses=[other, other]), "x").readings()
    calm = Gpu(FakeNVML(), "x").readings()
    assert nvml.flags(calm, hot) == ("GPU clocks held down after the rounds: power cap, hardware thermal slowdown",)
    assert nvml.flags(busy, calm) == ("2 other processes on the GPU before the rounds",)
    assert nvml.flags(calm, {**calm, "throttling": "power cap", "other_processes": "unknown"}) == ()
    assert nvml.flags({}, {}) == ()


def test_energy_is_the_counters_difference_per_step():
    """Over windows of at least half a second."""
    counter = iter([0, 100_000, 100_000, 300_000, 300_000, 600_000])  # millijoules
    gpu = Gpu(FakeNVML(nvmlDeviceGetTotalEnergyConsumption=lambda: next(counter)), "x")
    runs = []
    joules = energy_per_step(lambda: runs.append(1), lambda: runs.append("wait"), gpu, 0.05)
    assert joules == (10.0, 20.0, 30.0)
    assert runs == ([1] * 10 + ["wait"]) * 3


def test_without_a_counter_energy_is_unknown():
    """Not zero."""
    gpu = Gpu(FakeNVML(nvmlDeviceGetTotalEnergyConsumption=FakeNVML.NVMLError("not supported")), "x")
    assert energy_per_step(lambda: None, lambda: None, gpu, 1.0) == ()


@pytest.mark.parametrize(
    ("hard", "slug"),
    [
        ({"cpu": "AMD EPYC", "cores": "2", "architecture": "x86_64"}, "amd-epyc-2c-x86-64"),
        (
            {"cpu": "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", "cores": "28", "architecture": "x86_64"},
            "intel-xeon-e5-2680-v4-28c-x86-64",
        ),
        (
            {
                "gpu": "NVIDIA H200",
                "gpu_memory": "140 GiB",
                "gpu_count": "1",
                "mig": "off",
                "cpu": "Xeon",
                "cores": "16",
                "architecture": "x86_64",
            },
            "nvidia-h200-140-1x-xeon-16c-x86-64",
        ),
        ({"cpu": "../../etc" + "x" * 90, "cores": "2", "architecture": "x"}, ("etc" + "x" * 90)[:64]),
    ],
)
def test_a_machines_slug_is_readable_and_safe(hard, slug):
    """It names a folder."""
    assert environment.slug(hard) == slug


def test_describing_this_machine():
    """Hard fields decide, soft ones inform."""
    machine = environment.describe_machine(torch.device("cpu"), None)
    assert set(machine.hard) == {"cpu", "cores", "architecture"}
    assert machine.soft["torch"] == torch.__version__


def test_a_gpu_machine_has_its_gpu_in_the_hard_fields(monkeypatch):
    """Model, memory, count and partitioning."""
    properties = SimpleNamespace(name="NVIDIA H200", total_memory=140 * 2**30, uuid="77")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    machine = environment.describe_machine(torch.device("cuda", 0), Gpu(FakeNVML(), "77"))
    assert machine.hard["gpu"] == "NVIDIA H200"
    assert machine.hard["mig"] == "off"
    assert machine.soft["driver"] == "580.1"


def test_cuda_without_a_gpu_is_an_error(monkeypatch):
    """With the remedy."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert environment.choose_device("auto").type == "cpu"
    with pytest.raises(SettingsError, match="nvidia-smi"):
        environment.choose_device("cuda")


def test_a_process_says_what_changes_its_timing(tmp_path, monkeypatch):
    """Huge pages, threads, waiting; and nothing else of the environment."""
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    process = environment.describe_process(torch.device("cpu"), None, tmp_path, "src/workloads")
    assert process.tunables["huge_pages"] == "on"
    assert process.threads == torch.get_num_threads()
    assert "hunter2" not in str(process)
    monkeypatch.delenv("GLIBC_TUNABLES")
    assert (
        environment.describe_process(torch.device("cpu"), None, tmp_path, "src/workloads").tunables["huge_pages"]
        == "off"
    )


def test_the_canary_reads_two_positive_times():
    """A product and a copy."""
    readings = read_canary(torch.device("cpu"))
    assert set(readings) == {"matmul", "copy"}
    assert all(seconds > 0 for seconds in readings.values())
