"""The accuracy step: a trained model, pruned, tuned; and the choices of unstructured pruning."""

import pytest
import torch

from tests.workloads.contract import Tiny, composed
from workloads import MLP, NotInEffect, Unsuitable
from workloads.accuracy import trained
from workloads.models.images import ImageClassifier
from workloads.optimizations import AMP, ChannelPruning, L1Pruning, RandomPruning

CPU = torch.device("cpu")
DIGITS = MLP(data="digits", image_size=8, width=32, batch_size=32)


def figures(step):
    """Its accuracies by name."""
    step.build(CPU)
    return {each.name: each.values[0] for each in step.figures()}


def test_pruning_costs_accuracy_and_tuning_wins_it_back():
    """Nine of ten weights at random are too many; an epoch of tuning helps."""
    found = figures(DIGITS.accuracy_step(RandomPruning(0.9, layers="linear")))
    assert found["accuracy_before"] > 0.9
    assert found["accuracy_after"] < found["accuracy_before"]
    assert found["accuracy_after"] < found["accuracy_finetuned"] <= 1


def test_the_smallest_weights_are_the_better_choice():
    """Better than as many at random."""
    l1, chance = (figures(DIGITS.accuracy_step(each(0.7, layers="linear"))) for each in (L1Pruning, RandomPruning))
    assert l1["accuracy_after"] > chance["accuracy_after"]


def test_the_plain_step_has_only_the_accuracy_of_the_trained_model():
    """All test samples in one pass, and the same training for all who ask."""
    step = DIGITS.accuracy_step()
    found = figures(step)
    assert found == {"accuracy_before": found["accuracy_after"], "accuracy_after": found["accuracy_after"]}
    assert step.samples == len(step.parts.inputs) == 360
    assert trained(DIGITS, "cpu") is trained(DIGITS, "cpu")


def test_figures_leave_the_measured_model_as_it_is():
    """Tuning works on a model of its own."""
    step = DIGITS.accuracy_step(L1Pruning(0.9, layers="linear"))
    step.build(CPU)
    before = step.outcome().tensors["outputs"]
    list(step.figures())
    assert torch.equal(before, step.outcome().tensors["outputs"])


def test_channels_stay_removed_while_tuning():
    """The pruned model is what is tuned."""

    class Learning(Tiny):
        dataset = ImageClassifier.dataset

    found = figures(Learning(data="digits", batch_size=64).accuracy_step(ChannelPruning(0.5)))
    assert found["accuracy_finetuned"] > 0.5


def test_techniques_that_are_no_pruning_are_refused():
    """With the kinds of step that they are for."""
    reason = DIGITS.accuracy_step(AMP()).unsuitable(CPU)
    assert reason == "amp-bf16 is for inference and train steps, not for accuracy"


@pytest.mark.parametrize("kind", ["train", "inference"])
@pytest.mark.parametrize(
    "pruning",
    [RandomPruning(0.3, "global", "all"), RandomPruning(0.7, layers="all"), L1Pruning(0.3, "global", "linear")],
    ids=str,
)
def test_other_scopes_and_layers(pruning, kind):
    """The twin zeroes the same weights by its own arithmetic."""
    assert "of" in composed(Tiny(), kind, (pruning,), CPU)[str(pruning)]


def test_global_pruning_is_not_pruning_of_every_layer():
    """Shares differ between layers, and only their sum is proven."""
    step = Tiny().inference_step(L1Pruning(0.5, "global", "all"))
    step.build(CPU)
    with pytest.raises(NotInEffect, match="weights are zero"):
        L1Pruning(0.5, "layer", "all").proof(type("Seen", (), {"parts": step.parts}))


@pytest.mark.parametrize("wrong", [(0.5, "everywhere"), (0.5, "layer", "norm"), (1.0,), (float("nan"),)])
def test_impossible_prunings_are_refused(wrong):
    """When they are made."""
    with pytest.raises(Unsuitable, match="l1-unstructured"):
        L1Pruning(*wrong)


@pytest.mark.parametrize(
    ("pruning", "slug"),
    [
        (L1Pruning(0.5), "l1-unstructured-0.5"),
        (L1Pruning(0.5, "global"), "l1-unstructured-0.5-global"),
        (RandomPruning(0.9, "global", "all"), "random-unstructured-0.9-global-all"),
    ],
)
def test_slugs_of_pruning(pruning, slug):
    """Benchmarks of earlier runs keep their names."""
    assert str(pruning) == slug
