"""``python -m workloads techniques``: the catalogue, and what of it can be used here."""

import pytest
import torch

from workloads import MLP, ResNet18, Transformer
from workloads.__main__ import main
from workloads.commands.techniques import purpose, usable
from workloads.optimizations import AMP, CATALOGUE, Attention, Checkpointing, GradMode, L1Pruning, PersistentWorkers

CPU = torch.device("cpu")


def test_every_technique_is_listed_with_its_purpose(capsys, monkeypatch):
    """In a paragraph."""
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["techniques", "--workload", "mlp", "--device", "cpu"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in CATALOGUE)
    assert "with mlp-b128-digits on cpu" in shown


def test_nothing_is_cut_in_a_narrow_terminal(capsys, monkeypatch):
    """Names can be copied."""
    monkeypatch.setenv("COLUMNS", "50")
    assert main(["techniques", "--workload", "mlp", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert set(CATALOGUE) <= set(lines)
    assert not any("…" in line for line in lines)
    assert max(len(line) for line in lines if line.startswith(" ")) <= 50


@pytest.mark.parametrize("technique", CATALOGUE.values(), ids=str)
def test_a_purpose_is_a_sentence(technique):
    """The first of the documentation, without markup."""
    assert purpose(technique).partition(" [")[0].endswith(".")
    assert "`" not in purpose(technique)


@pytest.mark.parametrize(
    ("technique", "workload", "said"),
    [
        (AMP(), MLP(), "train, inference"),
        (Attention("flash"), Transformer(), "train, inference"),
        (L1Pruning(0.5), MLP(), "mlp has no Conv2d for l1-unstructured to prune"),
        (Checkpointing(), ResNet18(), "train"),
        (PersistentWorkers(), MLP(), "load"),
        (GradMode("grad"), MLP(), "only as the twin of another"),
    ],
    ids=str,
)
def test_what_can_be_used_here(technique, workload, said):
    """The kinds of step, or the reason."""
    assert usable(technique, workload, CPU) == said
