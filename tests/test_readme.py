"""The examples of the README run as they stand."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
IMPORTS = """
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset

from workloads import MLP, NotInEffect, Optimization, Parts, ResNet18, Workload, comparisons
from workloads.optimizations import AMP, Workers
from workloads.workload import Observation

class OurTagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.tags = nn.Embedding(5000, 16), nn.Linear(16, 9)

    def forward(self, sentences):
        return self.tags(self.words(sentences).mean(dim=1))
"""


def blocks():
    """The Python examples, without the indentation of the list they stand in."""
    for indent, code in re.findall(r"^( *)```python\n(.*?)^ *```", README, flags=re.DOTALL | re.MULTILINE):
        yield re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)


def test_every_example_runs(project):
    """A new optimization, its benchmark, and a model from outside."""
    optimization, bench, model = blocks()
    bench = bench.replace("MLP(), ResNet18()", "MLP(batch_size=4, width=8, image_size=4)")
    model = model.replace("comparisons(Tagger())", "comparisons(Tagger(), [AMP(), Workers(1)])")
    code = f"{IMPORTS}\n{optimization}\n{bench}\n{model}"
    (project.path / "benches" / "test_tiny.py").write_text(code, encoding="utf-8")
    project.runpytest("benches").assert_outcomes(passed=4)
