"""A user's own model in the user's own repository: few lines, every technique, and clear words where it is wrong."""

import os

import pytest

SUITE = """
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import nn
from workloads import Workload, comparisons

@dataclass(frozen=True, kw_only=True)
class Net(Workload):
    name: ClassVar[str] = "net"
    batch_size: int = 4

    def model(self):
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 6 * 6, 5))

    def batch(self):
        return torch.randn(self.batch_size, 3, 8, 8), torch.arange(self.batch_size) % 5

NET = Net()

@pytest.mark.parametrize("each", comparisons(NET), ids=str)
def test_technique(measure, each):
    measure(each.step, against=each.against)
"""
SOME = "amp or channels-last or l1-unstructured-0.5 or channel-pruning-0.5 or workers-2 or cudnn-benchmark"
OURS = """
import pytest
from workloads import comparisons, own

EACH = [each for each in comparisons(own.load()) if str(each.technique) == "amp-bf16"]

@pytest.mark.parametrize("each", EACH, ids=str)
def test_technique(measure, each):
    measure(each.step, against=each.against)
"""


@pytest.fixture
def repository(project, monkeypatch):
    """A repository of somebody who installed perfgate."""
    monkeypatch.delenv("PERFGATE_WORKLOAD", raising=False)
    (project.path / "benches" / "test_tiny.py").unlink()
    return project


def write(repository, name, code):
    """A file of theirs."""
    (repository.path / name).write_text(code, encoding="utf-8")


def test_techniques_run_and_the_others_say_why_not(repository):
    """From ten lines of workload and four of benchmark, under ids that can be read."""
    write(repository, "test_net.py", SUITE)
    result = repository.runpytest("test_net.py", "--perfgate-smoke", "-v", "-k", SOME)
    lines = [line for line in result.outlines if line.startswith("test_net.py::")]
    checked = {line.partition("[")[2].partition("]")[0] for line in lines if "CHECKED" in line}
    assert checked >= {f"net-b4 {kind} amp-bf16" for kind in ("train", "inference")}
    assert checked >= {f"net-b4 {kind} channel-pruning-0.5" for kind in ("train", "inference")}
    assert not [line for line in lines if "FAILED" in line or "ERROR" in line]
    said = " ".join(result.stdout.str().split())
    assert "cudnn.benchmark needs a CUDA GPU" in said
    assert "float16 autocast needs a GPU: use amp-bf16" in said
    assert "net has no dataset(), so there is nothing to load" in said


def test_a_workload_of_the_option_reaches_benchmarks_that_ask_for_own_ones(repository):
    """And the variable is what it was when the session is over."""
    write(repository, "net.py", SUITE.partition("@pytest.mark")[0])
    write(repository, "test_ours.py", OURS)
    result = repository.runpytest("test_ours.py", "--perfgate-smoke", "-v", "--perfgate-workload=net:NET")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_technique?net-b4 train amp-bf16? CHECKED*"])
    assert "PERFGATE_WORKLOAD" not in os.environ


def test_a_workload_that_is_not_there_fails_the_collection(repository):
    """It was asked for."""
    write(repository, "net.py", SUITE.partition("@pytest.mark")[0])
    write(repository, "test_ours.py", OURS)
    result = repository.runpytest("test_ours.py", "--perfgate-smoke", "--perfgate-workload=net:NETT")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*Unsuitable: net has no NETT; there is NET*"])


def test_without_a_workload_our_own_benchmarks_are_none(repository, monkeypatch, pytestconfig):
    """No skip, no error."""
    monkeypatch.setattr("workloads.own.entry_points", lambda group: [])
    code = (pytestconfig.rootpath / "benches" / "test_own_model.py").read_text(encoding="utf-8")
    write(repository, "test_own_model.py", code)
    result = repository.runpytest("test_own_model.py", "--perfgate-smoke")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


FAULTS = """
from workloads.optimizations import AMP, Compile

class Shape(Net):
    def model(self):
        return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(0, 1))

class Size(Net):
    def batch(self):
        return torch.randn(3, 3, 8, 8), torch.zeros(3, dtype=torch.long)

class Infinite(Net):
    def loss(self, outputs, targets):
        return super().loss(outputs, targets) * float("inf")

class Broken(nn.Sequential):
    def forward(self, inputs):
        torch._dynamo.graph_break()
        return super().forward(inputs)

class Uncompiled(Net):
    def model(self):
        return Broken(*super().model())

class Memory(Net):
    def model(self):
        class Hungry(nn.Flatten):
            def forward(self, inputs):
                return torch.empty(1 << 60) if torch._C._get_tracing_state() is None else inputs
        return nn.Sequential(Hungry(), nn.Linear(192, 5))

class Refusing(Net):
    refused = {"train amp-bf16": "our operator knows no bfloat16"}

class Nothing(Workload):
    pass

BAD = [Shape, Size, Infinite, Memory, Refusing, Nothing, Net]

@pytest.mark.parametrize("made", BAD)
def test_amp(measure, made):
    measure(made().train_step(AMP()), against=made().train_step())

def test_compile(measure):
    measure(Uncompiled().inference_step(Compile(fullgraph=True)), against=Uncompiled().inference_step())
"""


def test_what_is_wrong_with_a_workload_is_said_and_the_rest_runs(repository):
    """One by one, with the step's name where it happened on the way."""
    write(repository, "test_bad.py", SUITE.partition("@pytest.mark")[0] + FAULTS)
    result = repository.runpytest_subprocess("test_bad.py", "--perfgate-smoke", "-v")
    said = " ".join(result.stdout.str().split())
    for each in (
        "test_amp[Net] CHECKED",
        "Expected input batch_size (32) to match target batch_size (4)",
        "in the first call of net-b4/train/amp-bf16",
        "net: batch() gave 3 inputs and 3 targets, not 4",
        "wrong-result: the movement of the variant holds NaN or infinite values",
        "unjudged test_bad.py::test_amp[Memory]: out of host memory",
        "net refuses amp-bf16: our operator knows no bfloat16",
        "Nothing must define model()",
        "cannot-compile: net-b4/inference/compile-fullgraph cannot be compiled: ",
    ):
        assert each in said
    passed, failed, skipped = (result.parseoutcomes().get(each, 0) for each in ("passed", "failed", "skipped"))
    assert (passed, failed, skipped) == (1, 6, 1)
