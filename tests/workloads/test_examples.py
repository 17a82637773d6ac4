"""The scripts of a student's submission run, with arguments small enough for a test."""

import runpy
from pathlib import Path

import pytest
import torch

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def cpu(monkeypatch):
    """No GPU, whatever machine this is."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def lines_of(name, capsys, *arguments):
    """What a script prints."""
    runpy.run_path(str(EXAMPLES / name))["main"](arguments)
    return capsys.readouterr().out.splitlines()


def test_optimized_train(capsys):
    """A line per stack, from the baseline on; techniques that need a GPU are left out."""
    lines = lines_of("optimized_train.py", capsys, "--epochs", "1", "--image-size", "8", "--batch-size", "256")
    assert lines[0].split() == ["setup", "images/s", "speedup", "peak", "MiB", "accuracy"]
    assert [line.split("  ")[0] for line in lines[1:]] == [
        "baseline",
        "AMP",
        "AMP + workers",
        "AMP + workers + channels-last",
    ]
    assert lines[1].split()[2] == "1.00x"
    assert all(line.endswith("%") for line in lines[1:])


def test_pruning_demo(capsys, monkeypatch):
    """Zeros where single weights are pruned, fewer channels where channels are, accuracy three times for each."""
    import workloads.timing

    gain = workloads.timing.Interval(low=1.0, median=1.1, high=1.2)
    monkeypatch.setattr(workloads.timing, "side_by_side", lambda *_: gain)
    lines = lines_of("pruning_demo.py", capsys, "--epochs", "1", "--image-size", "8", "--batch-size", "256")
    last_layer = [line.split("  ") for line in lines if line.startswith("  layer4.1.conv2")]
    unstructured, structured = ([word.strip() for word in words if word.strip()] for words in last_layer)
    assert unstructured[1:] == ["(512, 512, 3, 3)", "50.0% zeros"]
    assert structured[1:] == ["(256, 256, 3, 3)", "75.0% removed"]
    before, after = ([line.split()[each] for line in lines if "parameters" in line] for each in (1, 3))
    assert before[0] == before[1] == after[0] == "11,181,642"
    assert int(after[1].replace(",", "")) < 0.3 * 11_181_642
    results = [line for line in lines if "fine-tuned" in line]
    assert len(results) == 2
    assert all(line.endswith("inference 1.10x (1.00-1.20)") and line.count("->") == 2 for line in results)
