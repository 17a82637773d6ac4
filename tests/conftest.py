"""Fixtures shared by all tests: tiny runs, and projects whose benchmarks take milliseconds."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch._dynamo  # torch can be imported once per process: before pytester takes its snapshot of modules
import torch._inductor.utils
import torchvision  # noqa: F401

from perfgate.results.record import Machine, Measurement, Process, Record, Run

torch.set_num_threads(1)  # two threads on two busy cores wait for each other for whole time slices

STRICT = ["error", *(f"ignore:::{package}.*" for package in ("torch", "torchvision", "torch_pruning", "sklearn"))]


def pytest_collection_modifyitems(items):
    """Warnings are errors in tests, except other packages' own. Benchmarks must run with tomorrow's torch, too."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for each in STRICT:
                item.add_marker(pytest.mark.filterwarnings(each))


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path_factory):
    """Tests take no device away from a suite that measures on this machine."""
    monkeypatch.setenv("PERFGATE_LOCKS", str(tmp_path_factory.getbasetemp() / "locks"))


SETTINGS = """
[tool.perfgate]
warmup_seconds = 0.001
timed_seconds = 0.001
threshold = 9.0
"""

TINY_BENCH = """
import pytest
from workloads import MLP
from workloads.optimizations import AMP

TINY = MLP(batch_size=4, width=8, image_size=4)
pytestmark = pytest.mark.benchmark(group="tiny")

def test_plain(measure):
    measure(TINY.train_step())

def test_amp(measure):
    measure(TINY.train_step(AMP()), against=TINY.train_step())
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A project with two tiny benchmarks, in which no time can be a regression."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(pytester.path.parent))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as above, in children
    pytester.makepyprojecttoml(SETTINGS)
    (pytester.path / "benches").mkdir()
    (pytester.path / "benches" / "test_tiny.py").write_text(TINY_BENCH, encoding="utf-8")
    return pytester


def saved_runs(project):
    """The files saved in a project, oldest first."""
    return sorted((project.path / "results").glob("*/*.json"))


def edit(file, change):
    """Rewrite a JSON file after ``change(document)``."""
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf-8")


def fewer_operators(document):
    """One operator less in every saved record, so that the next run has one more."""
    for each in document["perfgate"]["records"]:
        for measurement in each["measurements"]:
            if measurement["metric"] == "operators":
                key = next(iter(measurement["table"]))
                measurement["samples"] = [[measurement["samples"][0][0] - 1]]
                measurement["table"][key] -= 1


MACHINE = Machine(
    slug="testcpu-2c-x86-64",
    hard={"cpu": "testcpu", "cores": "2", "architecture": "x86_64"},
    soft={"torch": "2.15.0", "python": "3.11.7"},
)
PROCESS = Process(
    started="2026-01-01T00:00:00+00:00",
    threads=1,
    canary={"matmul": 0.001, "copy": 0.001},
    tunables={"huge_pages": "on"},
    subject={},
    readings={"load": "0.1"},
)


def times(*values, metric="wall_seconds", better="lower", kind="sampled"):
    """A measurement of times."""
    return Measurement(metric=metric, unit="s", better=better, kind=kind, samples=(values,))


SPREAD = (1.02, 0.98, 1.0, 0.99, 1.0, 1.01, 1.0, 1.0)  # rounds around their median, the same on both sides


def around(middle, **fields):
    """A measurement of eight rounds that differ, with this median."""
    return times(*(middle * each for each in SPREAD), **fields)


def count(metric, value, better="lower", **table):
    """A counted measurement."""
    return Measurement(metric=metric, unit="count", better=better, kind="counted", samples=((value,),), table=table)


def record(name="benches/test_a.py::test_a", *measurements, **fields):
    """A record with six equal times unless told otherwise."""
    defaults = {"group": "g", "identity": "0" * 12, "step": "mlp-b4/train/plain"}
    return Record(id=name, measurements=measurements or (times(*[0.01] * 6),), **{**defaults, **fields})


def run(*records, **fields):
    """A complete run of the whole suite."""
    defaults = {
        "machine": MACHINE,
        "commit": {"id": "a" * 40, "branch": "main", "dirty": "no"},
        "stamp": "20260101T000000000Z",
        "status": "complete",
        "scope": {"args": ["benches"], "deselected": 0, "full": True},
        "processes": (PROCESS,),
        "records": records or (record(),),
    }
    return Run(**{**defaults, **fields})


def stock_of(a_run):
    """A stock document that agrees with the run."""
    benchmarks = []
    for each in a_run.records:
        data = list(each.measurement("wall_seconds").values)
        middle = sorted(data)[len(data) // 2]
        stats = {"min": min(data), "max": max(data), "median": middle, "data": data}
        benchmarks.append({"fullname": each.id, "stats": stats})
    return {"benchmarks": benchmarks}


def replaced(instance, **changes):
    """``dataclasses.replace``, shorter."""
    return dataclasses.replace(instance, **changes)
