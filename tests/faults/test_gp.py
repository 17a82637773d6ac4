"""GPU and machine: GP-01 to GP-24 of the fault matrix, on a CPU, with an NVML that answers whatever a test wants.

What only a real GPU shows is in ``tests/gpu``.
"""

import ast
import os
import time
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from perfgate.errors import DeviceLost, MeasurementError, SettingsError, WrongResult
from perfgate.faults import recognise
from perfgate.measure import clock as clocks
from perfgate.measure import environment, host
from perfgate.measure.check import check_same_result
from perfgate.measure.clock import Timing, WallClock, time_round
from perfgate.measure.discovery import find_gpu
from perfgate.measure.nvml import Gpu
from perfgate.measure.procedure import Plan, Subject, measure_step
from perfgate.measure.rounds import Side, run_rounds
from perfgate.report.terminal import also_changed
from perfgate.results.baseline import Baseline
from perfgate.results.ledger import Ledger
from perfgate.settings import Settings
from perfgate.verdict.compare import compare
from tests.conftest import MACHINE, replaced, run
from tests.perfgate.measure.fakes import FakeBenchmark, FakeNVML, FakeStep, processes
from workloads import MLP

CPU = torch.device("cpu")
TINY = MLP(batch_size=4, width=8, image_size=4)
SOURCES = sorted((Path(__file__).parent.parent.parent / "src").rglob("*.py"))
Error = FakeNVML.NVMLError


def after(calls, value, then):
    """An answer that changes after so many calls."""
    left = iter([value] * calls)
    return lambda: next(left, then)


def library(**answers):
    """NVML; without the counter of energy, whose windows take seconds."""
    return FakeNVML(**{"nvmlDeviceGetTotalEnergyConsumption": Error(), **answers})


def plan(gpu, **fields):
    """As short as can be; the work is done on the CPU, whatever the fake GPU says."""
    return Plan(
        **{"device": CPU, "gpu": gpu, "smoke": False, "warmup_seconds": 0.001, "timed_seconds": 0.001, **fields}
    )


def measured(gpu, benchmark=None, step=None, **fields):
    """The record of a tiny training step beside this GPU."""
    subject = Subject(name="b.py::b", group="g", step=step or TINY.train_step(), against=None)
    return measure_step(benchmark or FakeBenchmark(), subject, plan(gpu, **fields))


@cache
def calm():
    """A record of a GPU that nothing disturbs."""
    return measured(Gpu(library(), "x"))


def judged(record):
    """The verdict on this record against a calm one."""
    found = compare([run(record)], Baseline(runs=(run(calm()),)), Settings(threshold=9.0), Ledger()).verdicts()
    assert len(found) == 1
    return found[0]


def calls_of(file):
    """Every attribute that a file names."""
    return {
        node.attr for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Attribute)
    }


def test_gp_01_without_a_cuda_build_gpu_benchmarks_skip_with_a_reason(project, monkeypatch):
    """And asking for a GPU all the same says what torch says."""

    def init():
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    with pytest.raises(SettingsError, match=r"\(Torch not compiled with CUDA enabled\).*use cpu"):
        environment.choose_device("cuda")
    (project.path / "benches" / "test_tiny.py").write_text(
        "import pytest\n@pytest.mark.gpu\ndef test_gpu(measure): ...\n", encoding="utf-8"
    )
    result = project.runpytest("benches", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs a CUDA GPU; this run has none*"])


def test_gp_02_an_expected_gpu_that_is_missing_fails_before_measuring(project, monkeypatch):
    """Green by skipping is how a broken runner looks healthy."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = project.runpytest("benches", "--perfgate-expect=gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--perfgate-expect gpu*"])
    assert "passed" not in result.stdout.str()


def test_gp_03_without_nvml_the_record_says_which_checks_are_off():
    """Partial, and judged: it is for the gate's policy to refuse it."""
    gpu = find_gpu("x", library(nvmlInit=Error("NVML Shared Library Not Found", 12)))
    record = measured(gpu)
    assert record.evidence["machine"].startswith("partial: clock, temperature and other-process checks are off")
    assert "libnvidia-ml.so.1 is missing" in record.evidence["machine"]
    assert record.flags == ()
    assert judged(record).word != "unjudged"


def test_gp_04_each_call_that_nvml_refuses_is_unknown_alone():
    """No exception, and no other reading lost; the record says what was not checked."""
    calls = [name for name in FakeNVML().answers if name.startswith("nvmlDeviceGet") and "Handle" not in name]
    for error in (Error("Insufficient Permissions", 4), Error("Not Supported", 3)):
        for call in calls:
            readings = Gpu(library(**{call: error}), "x").readings()
            assert list(readings.values()).count("unknown") <= 2  # a call gives two readings at most
    record = measured(Gpu(library(**dict.fromkeys(calls, Error())), "x"))
    assert record.flags == ()
    assert "NVML does not tell throttling" in record.evidence["machine"]


def test_gp_05_a_driver_mismatch_names_both_versions_and_the_fix(tmp_path, monkeypatch):
    """On the record and among the readings of the process; a driver that is too old names its version, too."""
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("535.129.03\n", encoding="utf-8")
    gpu = find_gpu("x", library(nvmlInit=Error("NVML/RM version mismatch", 18)), tmp_path)
    for part in ("535.129.03", "13.580.1", "restart the machine", "modprobe"):
        assert part in gpu.problem
    assert gpu.problem in measured(gpu).evidence["machine"]
    assert environment.describe_process(CPU, gpu, tmp_path, "src/workloads").readings["nvml"] == gpu.problem

    def too_old():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", too_old)
    monkeypatch.setattr(environment, "module_version", lambda: "470.57")
    with pytest.raises(SettingsError, match=r"found version 11040.*470\.57"):
        environment.choose_device("cuda")


def test_gp_06_a_gpu_that_is_lost_during_the_rounds_ends_the_session():
    """Told as such, whichever reading finds out, and no record is made."""
    lost = Error("GPU is lost", 15)
    temperature = after(1, 45, lost)  # the reading before the rounds still works
    with pytest.raises(DeviceLost, match="drain this runner") as caught:
        measured(Gpu(library(nvmlDeviceGetTemperature=temperature), "x"))
    assert caught.value.code == "device-lost"
    assert recognise(caught.value).ends_session


def test_gp_07_a_sticky_cuda_error_is_told_as_one_and_costs_the_process():
    """It is neither a wrong result nor a technique that is not in effect."""
    broken = TINY.train_step()

    def raises(*_):
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    for name in ("run", "proof", "last_value"):
        step = TINY.train_step()
        setattr(step, name, raises)
        with pytest.raises(torch.AcceleratorError, match="illegal memory access") as caught:
            measured(None, step=step)
        fault = recognise(caught.value)
        assert (fault.code, fault.poisons) == ("cuda-error", True)
    assert measured(None, step=broken).flags == ()


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({"nvmlDeviceGetTotalEccErrors": 1}, "1 uncorrectable"),
        ({"nvmlDeviceGetRemappedRows": (0, 1, 1, 0)}, "a row remap is pending"),
    ],
)
def test_gp_08_memory_errors_make_the_gpu_unfit(answers, reason):
    """Times are not judged, with the reason; trying again would not help."""
    benchmark = FakeBenchmark()
    record = measured(Gpu(library(**answers), "x"), benchmark)
    assert record.flags[0].startswith("unfit: errors in the GPU's memory")
    assert reason in record.flags[0]
    assert (judged(record).word, judged(record).code) == ("unjudged", "flagged")


def test_gp_09_a_slice_is_another_machine_than_the_whole_gpu(monkeypatch):
    """Its profile is a hard field and part of the folder's name; what it does not support is unknown."""
    properties = SimpleNamespace(name="NVIDIA H100", total_memory=10 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    unsupported = {
        name: Error() for name in FakeNVML().answers if name.startswith("nvmlDeviceGet") and "Hand" not in name
    }
    answers = {**unsupported, "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}
    part, whole = Gpu(library(**answers), "MIG-7"), Gpu(library(), "7")
    machine = environment.describe_machine(torch.device("cuda", 0), part)
    assert machine.hard["mig"] == "1g.10gb"
    assert "-mig-1g-10gb-" in machine.slug
    assert machine.slug != environment.describe_machine(torch.device("cuda", 0), whole).slug
    assert part.readings()["temperature"] == "unknown"


def test_gp_10_nvml_is_asked_by_uuid_and_never_by_index(monkeypatch):
    """The two libraries number GPUs differently, and ``CUDA_DEVICE_ORDER`` renumbers them."""
    nvml = library()
    nvml.nvmlDeviceGetHandleByUUID = {"GPU-a": "first", "GPU-b": "second"}.__getitem__
    nvml.answers["nvmlDeviceGetTemperature"] = 45
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    find_gpu("b", nvml).readings()
    assert {call[1] for call in nvml.asked if call[0] == "nvmlDeviceGetTemperature"} == {"second"}
    by_another_way = {"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetHandleBySerial"}
    assert not any(calls_of(file) & by_another_way for file in SOURCES)


STRANGER = 2**30  # above any process id


def test_gp_11_another_process_before_or_after_is_found_and_the_rounds_are_taken_again():
    """Clean the second time, judged; disturbed both times, not. Our own process is no other."""
    both, alone = processes(os.getpid(), STRANGER), processes(os.getpid())
    came = measured(Gpu(library(nvmlDeviceGetComputeRunningProcesses=after(1, alone, both)), "x"))
    assert came.flags == ("1 other process on the GPU after the rounds",)
    verdict = judged(came)
    assert (verdict.word, verdict.code) == ("unjudged", "flagged")
    assert "1 other process" in verdict.reason
    left = measured(Gpu(library(nvmlDeviceGetComputeRunningProcesses=after(1, both, alone)), "x"))
    assert left.flags == ()
    assert "taken twice, because the first were disturbed: 1 other process" in left.evidence["machine"]
    assert judged(left).word != "unjudged"


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        ({"nvmlDeviceGetMPSComputeRunningProcesses": processes(os.getpid())}, "MPS"),
        ({"nvmlDeviceGetVirtualizationMode": 2}, "vGPU"),
    ],
)
def test_gp_12_a_shared_gpu_is_recorded_and_unfit(answers, word):
    """MPS and vGPU; time slicing has no call and shows as other processes (GP-11)."""
    gpu = Gpu(library(**answers), "x")
    assert gpu.readings()["sharing"] == word
    record = measured(gpu)
    assert record.flags == (f"unfit: the GPU is shared ({word}), so that others slow it down unseen",)
    assert judged(record).word == "unjudged"


def throttled(attempts):
    """A GPU that holds its clocks down, thermally, after so many first attempts."""
    return Gpu(library(nvmlDeviceGetCurrentClocksEventReasons=after(attempts, 0x40, 0)), "x")


def test_gp_13_throttled_rounds_are_kept_and_judged_only_where_a_second_attempt_is_clean():
    """The record, pytest-benchmark's samples and the verdict agree; counts are judged in either case."""
    benchmark = FakeBenchmark()
    hot = measured(Gpu(library(nvmlDeviceGetCurrentClocksEventReasons=0x40), "x"), benchmark)
    assert len(hot.measurement("wall_seconds").values) == len(benchmark.stats.stats.data) > 0
    assert "hardware thermal slowdown" in hot.flags[0]
    assert judged(hot).word == "unjudged"
    more = {each.metric: each for each in hot.measurements}
    flops = replaced(more["flops"], samples=((2.0 * more["flops"].values[0],),))
    worse = replaced(hot, measurements=tuple({**more, "flops": flops}.values()))
    assert judged(worse).word == "slower"
    benchmark = FakeBenchmark()
    cooled = measured(throttled(1), benchmark)
    assert cooled.flags == ()
    assert "taken twice" in cooled.evidence["machine"]
    assert cooled.measurement("wall_seconds").values == pytest.approx(benchmark.stats.stats.data, rel=1e-6)
    assert judged(cooled).word != "unjudged"


def test_gp_13_throttling_between_two_readings_is_seen_by_its_counter():
    """The clocks may be free again when the rounds are over; partners are not kept waiting for a second attempt."""
    held = (SimpleNamespace(violationTime=nanoseconds) for nanoseconds in range(0, 10**9, 10**6))
    gpu = Gpu(library(nvmlDeviceGetViolationStatus=lambda: next(held)), "x")
    assert "thermal slowdown" in measured(gpu).flags[0]
    turns = SimpleNamespace(agree=lambda rounds: rounds, before_round=lambda: None, after_rounds=lambda: None)
    record = measured(gpu, turns=turns)
    assert record.flags
    assert "twice" not in record.evidence.get("machine", "")


def test_gp_14_a_power_cap_alone_is_a_note():
    """Large GPUs run into it under any load."""
    record = measured(Gpu(library(nvmlDeviceGetCurrentClocksEventReasons=0x4), "x"))
    assert record.flags == ()
    assert record.evidence["machine"] == "the power cap held clocks down, which is normal under load"
    assert judged(record).word != "unjudged"


SETTERS = ("nvmlDeviceSet", "nvmlDeviceReset", "nvmlDeviceClear", "nvmlDeviceModify")


def test_gp_15_clocks_are_measured_as_they_are_and_never_locked():
    """Without the permission to lock them nothing changes, since a whole measurement only reads."""
    nvml = library(nvmlDeviceSetGpuLockedClocks=Error("Insufficient Permissions", 4))
    assert measured(Gpu(nvml, "x")).flags == ()
    assert nvml.asked
    assert not [call for call, *_ in nvml.asked if call.startswith(SETTERS)]


def test_gp_16_nothing_can_be_left_behind_since_no_code_changes_the_gpu():
    """No call of NVML that sets anything, and no ``nvidia-smi`` is run, in any source file."""
    for file in SOURCES:
        assert not [name for name in calls_of(file) if name.startswith(SETTERS)], file
        texts = [
            node.value
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant)
        ]
        assert "nvidia-smi" not in texts, file  # as the name of a program; in sentences it is a hint


def test_gp_17_warm_up_waits_for_the_clock_of_a_cold_gpu():
    """Until two successive readings agree, or the budget is spent."""
    rising = iter(range(300, 3000, 300))
    nvml = library(nvmlDeviceGetClockInfo=lambda: next(rising, 1980), nvmlDeviceGetPersistenceMode=0)
    gpu = Gpu(nvml, "x")
    assert gpu.readings()["persistence"] == "off"
    record = measured(gpu, warmup_seconds=60.0)
    asked = [call for call in nvml.asked if call == ("nvmlDeviceGetClockInfo", "handle", nvml.NVML_CLOCK_SM)]
    assert record.evidence["warm-up"].startswith("steady")
    assert len(asked) > 9  # beyond the last that rose


def test_gp_18_governor_turbo_and_smt_are_recorded_or_unknown(tmp_path):
    """And nothing is refused for them."""
    assert set(host.frequencies(tmp_path).values()) == {"unknown"}
    tunables = environment.describe_process(CPU, None, tmp_path, "src/workloads").tunables
    assert {"governor", "turbo", "smt"} <= set(tunables)


def test_gp_19_a_machine_that_tells_nothing_is_described_with_unknowns(tmp_path, monkeypatch):
    """A container, a virtual machine or WSL is named; load is recorded."""
    assert (host.kind(tmp_path), host.steal_ticks(tmp_path)) == ("unknown", "unknown")
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/cpuinfo").write_text("flags\t\t: fpu hypervisor\n", encoding="utf-8")
    (tmp_path / "proc/sys/kernel/osrelease").write_text("6.6.87-microsoft-standard-WSL2\n", encoding="utf-8")
    assert host.kind(tmp_path, {"RUNNER_ENVIRONMENT": "github-hosted"}) == "GitHub-hosted, WSL, virtual machine"
    assert "load" in environment.describe_process(CPU, None, tmp_path, "src/workloads").readings
    monkeypatch.delattr(host.os, "getloadavg")
    assert host.load() == "unknown"


def gpu_machine(monkeypatch, name="NVIDIA H200", gpu_count=1, **answers):
    """A machine with this GPU."""
    properties = SimpleNamespace(name=name, total_memory=140 * 2**30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    return environment.describe_machine(torch.device("cuda", 0), Gpu(library(**answers), "7"), gpu_count=gpu_count)


def test_gp_20_hard_fields_make_another_machine_and_soft_ones_are_also_changed(monkeypatch):
    """GPU model, partitioning and count are hard; driver and torch are told beside the comparison."""
    old = gpu_machine(monkeypatch)
    updated = gpu_machine(monkeypatch, nvmlSystemGetDriverVersion="590.2")
    assert (updated.slug, updated.hard) == (old.slug, old.hard)
    changes = list(also_changed(run(machine=updated), run(machine=old)))
    assert changes == ["driver 580.1 -> 590.2"]
    others = [
        gpu_machine(monkeypatch, name="NVIDIA H100"),
        gpu_machine(monkeypatch, gpu_count=2),
        gpu_machine(monkeypatch, nvmlDeviceGetMigMode=(1, 1)),
    ]
    assert len({each.slug for each in (old, *others)}) == 4


def test_gp_21_a_field_that_the_old_file_lacks_is_a_soft_note():
    """Unknown is not equal."""
    old = replaced(MACHINE, soft={"torch": "2.15.0"})
    assert list(also_changed(run(), run(machine=old))) == ["python unset -> 3.11.7"]


def test_gp_22_no_wall_clock_that_can_jump_is_used_for_measuring(monkeypatch):
    """A jump of a day changes nothing, and no file of the instrument reads that clock."""
    measuring = [file for file in SOURCES if file.parent.name == "measure"]
    assert measuring
    assert not [file for file in measuring if "time.time" in file.read_text(encoding="utf-8")]
    jumping, steady = iter([0.0, 86_400.0]), iter([10.0, 10.25])
    monkeypatch.setattr(time, "time", lambda: next(jumping))
    monkeypatch.setattr(clocks.time, "perf_counter", lambda: next(steady))
    assert time_round(WallClock(), lambda: None) == Timing(0.25, None)


def test_gp_23_events_that_the_wall_clock_did_not_wait_for_are_an_error():
    """A round that returned before its kernels were done is no fast round."""

    class Unsynchronised(WallClock):
        def event_seconds(self):
            return 3600.0

    with pytest.raises(MeasurementError, match="did not see the step"):
        run_rounds(FakeBenchmark(), Side(FakeStep(), Unsynchronised()), None, 2)


def outcome(values):
    """Outputs of a step."""
    return SimpleNamespace(kind="outputs", tensors={"y": torch.tensor(values)})


@pytest.mark.parametrize("values", [[1.0, float("nan")], [1.0, float("inf")], [1.0, 3.0]])
def test_gp_24_a_wrong_or_infinite_result_has_no_speed(values):
    """Checked against the plain twin, outside of the timed part."""
    with pytest.raises(WrongResult) as caught:
        check_same_result(outcome(values), outcome([1.0, 2.0]), FakeStep.tolerance)
    assert caught.value.code == "wrong-result"


def test_gp_24_a_loss_that_became_infinite_in_the_timed_rounds_has_no_speed():
    """As with half precision that overflows."""
    step = TINY.train_step()
    step.last_value = lambda: torch.tensor(float("nan"))
    with pytest.raises(WrongResult, match="NaN or infinite"):
        measured(None, step=step)
