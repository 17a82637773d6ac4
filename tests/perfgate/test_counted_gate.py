"""The counted gate from end to end: a regression put into a subject is exit 1, whatever the noise of its times.

Each project is measured, changed without touching the benchmark's identity, and compared. No time can be a regression
in it, and every counted metric but the one under test may grow tenfold: this metric alone has to catch it.
"""

import json
import operator
import re
from functools import partial

import pytest
import torch._dynamo.repro.after_dynamo  # noqa: F401  what the first compilation imports, see tests/conftest.py

from perfgate.measure import procedure
from perfgate.measure.profiled import MARK, Event, count_device_work
from tests.conftest import SETTINGS, saved_runs

COUNTED = {
    "flops",
    "float32_flops",
    "operators",
    "scalar_reads",
    "peak_bytes",
    "compiled_graphs",
    "graph_breaks",
    "recompilations",
    "parameters",
    "kernel_launches",
    "graph_launches",
    "synchronisations",
    "copies_to_device",
    "copies_to_host",
}

SUBJECT = """
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.utils.data import TensorDataset

from workloads import Workload
from workloads.optimizations import AMP, Compile


class Float32(nn.Linear):
    def forward(self, inputs):
        with torch.autocast("cpu", enabled=False):
            return super().forward(inputs.float())


class Model(nn.Sequential):
    def forward(self, inputs):
        outputs = super().forward(inputs)
        return outputs * 2


@dataclass(frozen=True, kw_only=True)
class Tiny(Workload):
    name: ClassVar[str] = "tiny"
    batch_size: int = 4

    def model(self):
        return Model(
            nn.Linear(8, 8),  # first
            nn.Linear(8, 8),  # second
            nn.Linear(8, 8),
        )

    def dataset(self, *, train):
        return TensorDataset(torch.linspace(-1, 1, 32).view(4, 8), torch.arange(4))

    def loss(self, outputs, targets):
        loss = super().loss(outputs, targets)
        return loss


@dataclass(frozen=True)
class Captured(Compile):  # runs what dynamo captures as it is: no C++ compiler, and no seconds
    def unsuitable(self, workload, device):
        return None

    def apply(self, parts):
        parts.model.compile(backend="eager")


def test_eager(measure):
    measure(Tiny().train_step())


def test_compiled(measure):
    measure(Tiny().inference_step(Captured()))


def test_amp(measure):
    measure(Tiny().train_step(AMP()), against=Tiny().train_step())


def test_amp_compiled(measure):
    measure(Tiny().inference_step(Captured(), AMP()))
"""

COMMENT = "return loss", "return loss  # a comment"
ITEM = "return loss", "loss.item()\n        return loss"
GRAPH_BREAK = "return outputs", "torch._dynamo.graph_break()\n        return outputs"
LAYER_TWICE = "nn.Linear(8, 8),  # second", "nn.Linear(8, 8), nn.Linear(8, 8),"
FIRST_IN_FLOAT32 = "nn.Linear(8, 8),  # first", "Float32(8, 8),"
SECOND_IN_FLOAT32 = "nn.Linear(8, 8),  # second", "Float32(8, 8),"

LAUNCH = Event("cudaLaunchKernel", "host", 10, 11)
COPY_TO_DEVICE = Event("Memcpy HtoD (Pinned -> Device)", "device", 20, 30)
COPY_TO_HOST = Event("Memcpy DtoH (Device -> Pinned)", "device", 20, 30)
SYNCHRONISATION = Event("cudaDeviceSynchronize", "host", 40, 50)


@pytest.fixture
def subject(project):
    """The project with four benchmarks of one subject, which :func:`inject` changes."""
    (project.path / "benches" / "test_tiny.py").write_text(SUBJECT, encoding="utf-8")
    return project


def inject(subject, old, new):
    """Exchange ``old`` for ``new``."""
    assert SUBJECT.count(old) == 1
    (subject.path / "benches" / "test_tiny.py").write_text(SUBJECT.replace(old, new), encoding="utf-8")


def allow_growth(subject, metrics):
    """Let these metrics grow tenfold."""
    lines = (f"{metric} = 9.9" for metric in sorted(metrics))
    subject.makepyprojecttoml("\n".join([SETTINGS, "[tool.perfgate.thresholds]", *lines]))


def measure(subject, bench):
    """Make the baseline of one benchmark."""
    assert subject.runpytest(f"benches/test_tiny.py::{bench}").ret == 0


def compare(subject, bench, said):
    """Compare: the gate is closed, and names the benchmark with what the pattern ``said`` matches."""
    result = subject.runpytest(f"benches/test_tiny.py::{bench}", "--benchmark-compare")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["FAIL 1 slower"])
    text = " ".join(result.stdout.str().split())
    assert re.search(rf"slower benches/test_tiny\.py::{bench}: {said}", text), text


def operators(subject):
    """How many there were in each saved run of one benchmark."""
    for file in saved_runs(subject):
        (record,) = json.loads(file.read_text(encoding="utf-8"))["perfgate"]["records"]
        yield next(each["samples"][0][0] for each in record["measurements"] if each["metric"] == "operators")


@pytest.mark.parametrize(
    ("bench", "change", "metric", "grown"),
    [
        pytest.param("test_eager", ITEM, "scalar_reads", "0 -> 1", id="item"),
        pytest.param("test_compiled", GRAPH_BREAK, "graph_breaks", "0 -> 1", id="graph-break"),
        pytest.param("test_eager", LAYER_TWICE, "operators", r"\d+ -> \d+ \(\+", id="layer-operators"),
        pytest.param("test_eager", LAYER_TWICE, "flops", "4,096 -> 5,632", id="layer-flops"),
        pytest.param("test_eager", LAYER_TWICE, "peak_bytes", r"[\d,]+ -> [\d,]+", id="layer-peak"),
    ],
)
def test_one_metric_alone_closes_the_gate(subject, bench, change, metric, grown):
    """An ``.item()``, a graph break or a layer too many."""
    allow_growth(subject, COUNTED - {metric})
    measure(subject, bench)
    inject(subject, *change)
    compare(subject, bench, f"{metric} {grown}")


@pytest.mark.parametrize(
    ("change", "relation"),
    [
        pytest.param(SECOND_IN_FLOAT32, operator.eq, id="as-many-operators"),
        pytest.param(FIRST_IN_FLOAT32, operator.lt, id="fewer-operators"),
    ],
)
def test_a_layer_left_in_float32_closes_the_gate(subject, change, relation):
    """However many operators there are: the first layer's inputs are float32 already, so that casts are saved."""
    allow_growth(subject, COUNTED - {"operators"})
    measure(subject, "test_amp")
    inject(subject, *change)
    compare(subject, "test_amp", ".*float32")
    before, after = operators(subject)
    assert relation(after, before)


def test_a_layer_left_in_float32_closes_the_gate_of_compiled_code(subject):
    """Not only by its memory, which may stay within the allowance."""
    allow_growth(subject, {"peak_bytes"})
    measure(subject, "test_amp_compiled")
    inject(subject, *SECOND_IN_FLOAT32)
    compare(subject, "test_amp_compiled", ".*float32")


def pretend_device_work(monkeypatch, *events):
    """Have every benchmark's profile hold these events of a GPU beside a launch."""
    work = count_device_work([Event(MARK, "host", 0, 100), LAUNCH, *events])
    monkeypatch.setattr(procedure, "Passes", partial(procedure.Passes, device_work=work))


@pytest.mark.parametrize(
    ("event", "metric"),
    [
        pytest.param(COPY_TO_DEVICE, "copies_to_device", id="copy"),
        pytest.param(SYNCHRONISATION, "synchronisations", id="synchronisation"),
    ],
)
def test_one_more_copy_or_synchronisation_closes_the_gate(subject, monkeypatch, event, metric):
    """On a GPU, of which the events are pretended."""
    allow_growth(subject, COUNTED - {metric})
    pretend_device_work(monkeypatch, event)
    measure(subject, "test_eager")
    pretend_device_work(monkeypatch, event, event)
    compare(subject, "test_eager", f"{metric} 1 -> 2")


@pytest.mark.parametrize(
    ("event", "counted"),
    [
        (COPY_TO_DEVICE, {"copies_to_device"}),
        (COPY_TO_HOST, {"copies_to_host"}),
        (Event("Memcpy DtoD (Device -> Device)", "device", 20, 30), set()),
        (Event("Memset (Device)", "device", 20, 30), set()),
        (SYNCHRONISATION, {"synchronisations"}),
        (Event("cudaEventSynchronize", "host", 40, 50), {"synchronisations"}),
        (Event("cudaStreamWaitEvent", "host", 40, 50), set()),
        (Event("cudaEventQuery", "host", 40, 50), set()),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else "+".join(value) or "uncounted",
)
def test_an_event_more_is_one_more_of_its_own_count(event, counted):
    """Pinned memory is copied, too; what happens within the device, or makes only a stream wait, is neither."""
    profile = [Event(MARK, "host", 0, 100), LAUNCH, COPY_TO_DEVICE, COPY_TO_HOST, SYNCHRONISATION]
    before, after = count_device_work(profile), count_device_work([*profile, event])
    assert {name: after[name] - before[name] for name in after} == {name: int(name in counted) for name in before}


def test_a_comment_closes_no_gate(subject, monkeypatch):
    """No metric of any of the benchmarks may grow, and none does."""
    pretend_device_work(monkeypatch, COPY_TO_DEVICE, SYNCHRONISATION)
    assert subject.runpytest("benches").ret == 0
    inject(subject, *COMMENT)
    result = subject.runpytest("benches", "--benchmark-compare")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["PASS 4 same"])
    result.stdout.no_fnmatch_line("*slower*")
