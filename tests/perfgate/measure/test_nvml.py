"""NVML that answers, refuses, lost its GPU or is missing; and which processes are others."""

import os
import re
import sys
from types import SimpleNamespace

import pytest

from perfgate.errors import DeviceLost
from perfgate.measure.discovery import find_gpu, module_version
from perfgate.measure.nvml import Gpu
from perfgate.measure.processes import count_others, family
from tests.perfgate.measure.fakes import FakeNVML, alone, processes

Error = FakeNVML.NVMLError


def test_a_gpu_is_found_by_its_uuid():
    """NVML and CUDA number devices differently; torch leaves the prefix out."""
    library = FakeNVML()
    assert find_gpu("1234", library).uuid == "GPU-1234"
    assert find_gpu("MIG-77", library).uuid == "MIG-77"
    handles = [call for call in library.asked if call[0] == "nvmlDeviceGetHandleByUUID"]
    assert [call[1] for call in handles] == ["GPU-1234", "MIG-77"]


def only_slices(uuid):
    """NVML's answer where the GPU is divided."""
    return "slice" if uuid.startswith("MIG-") else Error("not found", 6)


def test_a_slice_without_its_prefix_is_found_as_a_slice():
    """Torch leaves that prefix out, too."""
    library = FakeNVML()
    library.nvmlDeviceGetHandleByUUID = lambda uuid: answer(only_slices(uuid))
    assert find_gpu("77", library).uuid == "MIG-77"


def answer(value):
    """Return or raise."""
    if isinstance(value, Exception):
        raise value
    return value


def test_readings_with_units():
    """All of them."""
    readings = Gpu(FakeNVML(), "x").readings()
    assert readings == {
        "gpu": "GPU-x",
        "gpu_clock": "1980 MHz",
        "memory_clock": "1980 MHz",
        "temperature": "45 C",
        "power": "321 W",
        "throttling": "none",
        "other_processes": "0",
        "sharing": "none",
        "memory_errors": "none",
        "persistence": "on",
    }


CALLS = sorted(name for name in FakeNVML().answers if name.startswith("nvmlDeviceGet") and "Handle" not in name)


@pytest.mark.parametrize("error", [Error("no permission", 4), AttributeError("not in this version"), OSError("ctypes")])
@pytest.mark.parametrize("call", CALLS)
def test_each_call_that_refuses_is_unknown_alone(call, error):
    """The others still answer."""
    gpu, calm = Gpu(FakeNVML(**{call: error}), "x"), Gpu(FakeNVML(), "x").readings()
    readings = gpu.readings()
    assert {key for key in readings if readings[key] != calm[key]} == {
        key for key in readings if readings[key] == "unknown"
    }
    gpu.energy_joules(), gpu.mig(), gpu.held_down_nanoseconds(), gpu.clock_megahertz(), gpu.driver()


def test_where_everything_refuses_everything_is_unknown():
    """And no error."""
    gpu = Gpu(FakeNVML(**dict.fromkeys(CALLS, Error()), nvmlSystemGetDriverVersion=Error()), "x")
    readings = gpu.readings()
    assert readings.pop("gpu") == "GPU-x"
    assert set(readings.values()) == {"unknown"}
    assert (gpu.energy_joules(), gpu.mig(), gpu.driver()) == (None, "unknown", "unknown")
    assert gpu.held_down_nanoseconds() == {}


@pytest.mark.parametrize("value", ["text", None, object()])
def test_a_nonsensical_number_is_unknown(value):
    """Whatever a driver may answer."""
    library = FakeNVML(nvmlDeviceGetClockInfo=value, nvmlDeviceGetPowerUsage=value, nvmlDeviceGetRemappedRows=value)
    library.answers["nvmlDeviceGetViolationStatus"] = value
    gpu = Gpu(library, "x")
    assert (gpu.readings()["gpu_clock"], gpu.readings()["power"]) == ("unknown", "unknown")
    assert gpu.held_down_nanoseconds() == {}


def test_old_drivers_tell_throttling_by_another_name():
    """Before 535."""
    library = FakeNVML(nvmlDeviceGetCurrentClocksEventReasons=Error("function not found", 13))
    assert Gpu(library, "x").throttles() is None
    library.answers["nvmlDeviceGetCurrentClocksThrottleReasons"] = 0x60
    assert Gpu(library, "x").throttles() == ["software thermal slowdown", "hardware thermal slowdown"]


@pytest.mark.parametrize("number", [15, 16])
def test_a_lost_gpu_is_no_unknown(number):
    """Whichever call finds out."""
    lost = Error("GPU is lost", number)
    for call in CALLS:
        gpu = Gpu(FakeNVML(**{call: lost}), "x")
        with pytest.raises(DeviceLost, match=rf"-x: .*{number}"):
            [gpu.readings(), gpu.energy_joules(), gpu.mig(), gpu.held_down_nanoseconds(), slice_of(call, lost).mig()]
    with pytest.raises(DeviceLost, match="drain"):
        find_gpu("x", FakeNVML(nvmlDeviceGetHandleByUUID=lost))


def slice_of(call, found):
    """A slice whose call gives ``found``."""
    return Gpu(FakeNVML(**{"nvmlDeviceGetName": "without a profile", call: found}), "MIG-x")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(4, "/dev/nvidiactl"), (6, "in this container"), (9, "modprobe"), (12, "--gpus all"), (999, "NVML: it says so")],
)
def test_a_gpu_without_nvml_says_why_and_what_to_do(number, remedy):
    """All its readings are unknown."""
    gpu = find_gpu("x", FakeNVML(nvmlInit=Error("it says so", number)))
    assert remedy in gpu.problem
    readings = gpu.readings()
    assert readings.pop("gpu") == "GPU-x"
    assert set(readings.values()) == {"unknown"}
    assert (gpu.energy_joules(), gpu.mig(), gpu.driver(), gpu.clock_megahertz()) == (None, "unknown", "unknown", None)


def test_without_the_bindings_there_is_a_remedy(monkeypatch):
    """One command."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in find_gpu("x").problem


def test_a_mismatch_names_both_versions(tmp_path):
    """Of the module in the kernel and of the library; either may be unknown."""
    mismatch = Error("RM has detected an NVML/RM version mismatch", 18)
    file = tmp_path / "proc/driver/nvidia/version"
    file.parent.mkdir(parents=True)
    file.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 2023\n", encoding="utf-8")
    assert "(535.129.03 and 13.580.1)" in find_gpu("x", FakeNVML(nvmlInit=mismatch), tmp_path).problem
    library = FakeNVML(nvmlInit=mismatch, nvmlSystemGetNVMLVersion=mismatch)
    assert "(unknown and unknown)" in find_gpu("x", library, tmp_path / "nowhere").problem
    newer = tmp_path / "sys/module/nvidia/version"
    newer.parent.mkdir(parents=True)
    newer.write_text("580.65.06\n", encoding="utf-8")
    assert module_version(tmp_path) == "580.65.06"


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"nvmlDeviceGetName": "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}, "1g.10gb"),
        ({"nvmlDeviceGetAttributes": SimpleNamespace(gpuInstanceSliceCount=3, memorySizeMB=40_448)}, "3g.40gb"),
        ({}, "on"),
    ],
)
def test_a_slice_tells_its_profile(answers, found):
    """By its name, else by its size."""
    assert Gpu(FakeNVML(**answers), "MIG-x").mig() == found


def test_a_slice_is_read_through_its_whole_gpu_where_only_that_answers():
    """Clocks and temperature; but energy and processes are the slice's own, or unknown."""
    library = FakeNVML(nvmlDeviceGetHandleByUUID="slice", nvmlDeviceGetDeviceHandleFromMigDeviceHandle="whole")
    gpu = Gpu(library, "MIG-x")
    gpu.readings(), gpu.energy_joules(), gpu.held_down_nanoseconds()
    asked = {(name, arguments[0]) for name, *arguments in library.asked if arguments}
    assert ("nvmlDeviceGetTemperature", "whole") in asked
    assert ("nvmlDeviceGetClockInfo", "whole") in asked
    for own in (
        "nvmlDeviceGetComputeRunningProcesses",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetPowerUsage",
    ):
        assert (own, "slice") in asked


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"nvmlDeviceGetMPSComputeRunningProcesses": processes(7)}, "MPS"),
        ({"nvmlDeviceGetVirtualizationMode": 2}, "vGPU"),
        ({"nvmlDeviceGetVirtualizationMode": 1}, "none"),  # passed through as a whole
        (
            {"nvmlDeviceGetVirtualizationMode": 3, "nvmlDeviceGetMPSComputeRunningProcesses": processes(7)},
            "MPS, vGPU host",
        ),
        ({"nvmlDeviceGetVirtualizationMode": Error()}, "none"),
    ],
)
def test_sharing_in_words(answers, found):
    """Whatever lets others compute at the same time."""
    assert Gpu(FakeNVML(**answers), "x").sharing() == found


@pytest.mark.parametrize(
    ("ecc", "rows", "found"),
    [
        (2, (0, 1, 0, 0), "2 uncorrectable"),
        (0, (0, 1, 1, 0), "a row remap is pending"),
        (Error(), (0, 1, 0, 1), "a row remap failed"),
        (1, Error(), "1 uncorrectable"),
        (0, (5, 2, 0, 0), "none"),  # remapped rows are mended
    ],
)
def test_memory_errors_in_words(ecc, rows, found):
    """Only those that are not mended."""
    library = FakeNVML(nvmlDeviceGetTotalEccErrors=ecc, nvmlDeviceGetRemappedRows=rows)
    assert Gpu(library, "x").memory_errors() == found


def kernel(tmp_path, own, **parents):
    """A ``/proc`` in which processes have these parents."""
    (tmp_path / "self").symlink_to(str(own))
    for name, parent in parents.items():
        folder = tmp_path / name.removeprefix("p")
        folder.mkdir()
        (folder / "stat").write_text(f"{folder.name} (a (strange) name) S {parent} 1 1 0\n", encoding="utf-8")
    (tmp_path / "999").mkdir()  # ended meanwhile
    return tmp_path


TREE = {"p1": 0, "p10": 1, "p20": 10, "p30": 20, "p31": 30, "p21": 10, "p40": 21, "p50": 1}


def test_relatives_are_not_others(tmp_path):
    """Ancestors wait and descendants are our own; whoever has the same parent may be anybody."""
    proc = kernel(tmp_path, 20, **TREE)
    assert family(proc=proc) - {os.getpid()} == {1, 10, 20, 30, 31}
    assert family(partners=True, proc=proc) - {os.getpid()} == {1, 10, 20, 21, 30, 31, 40}


def test_others_are_counted_without_relatives(tmp_path):
    """In this process's own namespace."""
    proc = kernel(tmp_path, 20, **TREE)
    assert count_others([20, 31], proc=proc) == 0
    assert count_others([20, 50, 50, 4711], proc=proc) == 2
    assert count_others([20, 21, 4711], partners=True, proc=proc) == 1


def test_process_ids_of_another_namespace(tmp_path):
    """This process must be one of those listed; with partners, nobody knows how many are ours."""
    proc = kernel(tmp_path, 20, **TREE)
    assert count_others([70_001], proc=proc) == 0
    assert count_others([70_001, 70_002], proc=proc) == 1
    assert count_others([70_001, 70_002], partners=True, proc=proc) is None


def test_an_empty_list_hides_even_this_process(tmp_path):
    """As NVML in many containers: that is no proof that nobody else is there."""
    assert count_others([], proc=kernel(tmp_path, 20, **TREE)) is None
    assert Gpu(FakeNVML(nvmlDeviceGetComputeRunningProcesses=[]), "x").readings()["other_processes"] == "unknown"


def test_without_proc_this_process_is_still_no_other(tmp_path):
    """Elsewhere than on Linux."""
    assert family(proc=tmp_path / "nowhere") == {os.getpid(), os.getppid()}
    assert count_others([each.pid for each in alone()], proc=tmp_path / "nowhere") == 0


def test_the_real_bindings_still_have_what_is_used():
    """Names that the fake made up would make every reading unknown, silently."""
    pynvml = pytest.importorskip("pynvml")
    made_up = {name for name in FakeNVML().answers if not hasattr(pynvml, name)}
    constants = {name for name in vars(FakeNVML) if re.fullmatch("NVML_[A-Z_]+", name)}
    assert not made_up
    assert {name for name in constants if getattr(pynvml, name) != getattr(FakeNVML, name)} == set()


def test_a_driver_too_old_for_a_call_makes_its_value_unknown():
    """Newer libraries raise what is no error of NVML."""

    class Mismatch(Exception):
        pass

    library = FakeNVML(nvmlDeviceGetTotalEnergyConsumption=Mismatch("driver too old"))
    library.NVMLLibraryMismatchError = Mismatch
    assert Gpu(library, "x").energy_joules() is None
