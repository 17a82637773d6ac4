"""Batch-norm folding: same function from fewer modules, and the proof notices where nothing or the wrong was folded."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from workloads import MLP, NotInEffect, Transformer
from workloads.models.images import ImageClassifier
from workloads.optimizations import Fusion

CPU = torch.device("cpu")


class Branching(nn.Module):
    """A model that fx cannot trace: it looks at a value."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(10))

    def forward(self, inputs):
        return self.layers(inputs) if inputs.sum() > 0 else self.layers(-inputs)


@dataclass(frozen=True, kw_only=True)
class Small(ImageClassifier):
    """Convolutions with and without a norm of their own."""

    name = "small"
    batch_size: int = 4
    image_size: int = 8
    shape: str = "foldable"

    def model(self):
        """The norm follows the convolution, or precedes it, or cannot be traced."""
        if self.shape == "branching":
            return Branching()
        pair = [nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)]
        if self.shape == "norm first":
            pair = [nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3, padding=1)]
        else:
            pair[1].running_var = torch.full((4,), 3.0)
            pair[1].running_mean = torch.full((4,), 2.0)
        return nn.Sequential(*pair, nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))


def built(workload):
    """A fused inference step."""
    step = workload.inference_step(Fusion())
    step.build(CPU)
    return step


def test_statistics_are_folded_into_weights():
    """Running mean and variance count, and no batch norm is left."""
    step, plain = built(Small()), Small().inference_step()
    plain.build(CPU)
    torch.testing.assert_close(step.outcome().tensors["outputs"], plain.outcome().tensors["outputs"])
    assert step.proof({})["fusion"].startswith("batch norms 1 -> 0, modules 6 -> 5, largest error")


def test_a_model_that_was_not_folded_is_noticed():
    """By its batch norms."""
    step = built(Small())
    step.parts.model = Small().model()
    with pytest.raises(NotInEffect, match="1 of 1 batch norms are left"):
        step.proof({})


def test_a_fold_that_moves_the_outputs_is_noticed(monkeypatch):
    """The bound is far below the suite's own, which must allow TensorFloat-32."""
    from workloads.optimizations import fusion

    def wrong(model):
        result = fusion.fuse(model)
        next(result.parameters()).data.mul_(1.5)
        return result

    monkeypatch.setattr(fusion, "folded", wrong)
    with pytest.raises(NotInEffect, match="folding moved the outputs by"):
        built(Small()).proof({})


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (MLP(), "has no batch norm to fold"),
        (Transformer(), "has no batch norm to fold"),
        (Small(shape="norm first"), "no batch norm right after a convolution"),
        (Small(shape="branching"), "torch.fx cannot trace it"),
    ],
    ids=str,
)
def test_unsuitable_says_why(workload, said):
    """Before anything is measured."""
    assert said in Fusion().unsuitable(workload, CPU)


def test_training_is_refused():
    """Statistics change in training."""
    assert "not for train" in Small().train_step(Fusion()).unsuitable(CPU)
