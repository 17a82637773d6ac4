"""The trace of one step: what belongs to it, and nothing that says where it was made."""

import gzip
import json

import pytest

from tools import step_trace


def event(cat, name, ts, dur=1.0, **arguments):
    """As the profiler writes them."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 2, "ts": ts, "dur": dur, "args": arguments}


EVENTS = [
    event("user_annotation", "traced-step", 100.0, 10.0),
    event("cuda_runtime", "cudaLaunchKernel", 98.0, correlation=1),  # of the step before
    event("kernel", "before", 101.0, correlation=1, stream=7),
    event("cpu_op", "aten::mm", 102.0, **{"Input Dims": [[2, 2]], "Stack": "/home/somebody/train.py"}),
    event("cuda_runtime", "cudaGraphLaunch", 103.0, correlation=2),
    event("kernel", "late", 500.0, correlation=2, stream=7, grid=[1, 1, 1]),
    event("kernel", "later", 501.0, correlation=2, stream=7),
    event("gpu_user_annotation", "traced-step", 101.0, 400.0),
    event("python_function", "/home/somebody/train.py(3): step", 102.0),
    event("cpu_op", "aten::add", 111.0),  # of the step after
]


def test_kernels_belong_to_the_step_that_launched_them():
    """Whenever they run; a graph launches many with one call."""
    assert [each["name"] for each in step_trace.of_step(EVENTS)] == [
        "traced-step",
        "aten::mm",
        "cudaGraphLaunch",
        "late",
        "later",
    ]


def test_times_begin_with_the_step():
    """And nothing says where something lay."""
    mark, product, *_, late, _ = step_trace.of_step(EVENTS)
    assert (mark["ts"], product["ts"], late["ts"]) == (0.0, 2.0, 400.0)
    assert product["args"] == {"Input Dims": [[2, 2]]}
    assert late["args"] == {"correlation": 2, "stream": 7, "grid": [1, 1, 1]}


def traced(monkeypatch, *words):
    """The tool with these words."""
    monkeypatch.setattr("sys.argv", ["step_trace.py", *map(str, words)])
    step_trace.main()


def test_a_real_step(monkeypatch, tmp_path, capsys):
    """Forward, backward and update, in a file that git can keep."""
    file = tmp_path / "made" / "mlp.json.gz"
    traced(monkeypatch, file, "--workload", "mlp", "--batch-size", 4, "--device", "cpu")
    text = gzip.decompress(file.read_bytes()).decode()
    assert ".py" not in text
    document = json.loads(text)
    assert document["step"] == "mlp-b4/train/plain"
    names = {each["name"] for each in document["traceEvents"]}
    assert {"traced-step", "aten::addmm", "autograd::engine::evaluate_function: AddmmBackward0"} <= names
    assert any(name.startswith("Optimizer.step#SGD") for name in names)
    assert f"{len(document['traceEvents'])} events of mlp-b4/train/plain, {file.stat().st_size} bytes" in (
        capsys.readouterr().out
    )


def test_what_is_too_large_is_not_written(monkeypatch, tmp_path):
    """And says what to do."""
    monkeypatch.setattr(step_trace, "MOST_BYTES", 100)
    file = tmp_path / "mlp.json.gz"
    with pytest.raises(SystemExit, match=r"too many for git, 100 are allowed: take a smaller model"):
        traced(monkeypatch, file, "--workload", "mlp", "--batch-size", 4, "--device", "cpu")
    assert not file.exists()
