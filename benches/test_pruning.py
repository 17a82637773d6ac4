"""Pruning: which kind makes a model faster, zeroed weights, zeroed channels or removed ones, and at which accuracy?"""

import pytest

from workloads import MLP, ResNet18, ResNet18Cifar, ResNet50
from workloads.optimizations import ChannelMasks, ChannelPruning, L1Pruning, RandomPruning

pytestmark = pytest.mark.benchmark(group="pruning")

WORKLOADS = [ResNet18(), pytest.param(ResNet18Cifar(batch_size=256), marks=pytest.mark.gpu)]
SLOW = pytest.mark.slow
LEARNT = ResNet18(data="digits", image_size=16)


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("pruning", [L1Pruning(0.3), L1Pruning(0.5), L1Pruning(0.9)], ids=str)
def test_unstructured(measure, workload, pruning):
    """The smallest weights of every Conv2d zeroed, against the dense model."""
    measure(workload.inference_step(pruning), against=workload.inference_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize(
    "pruning",
    [
        pytest.param(RandomPruning(0.5), marks=SLOW),
        pytest.param(L1Pruning(0.5, "global"), marks=SLOW),
        pytest.param(L1Pruning(0.9, "global", "all"), marks=SLOW),
    ],
    ids=str,
)
def test_other_choices_of_weights(measure, workload, pruning):
    """Chosen at random, or over all layers together, against the dense model."""
    measure(workload.inference_step(pruning), against=workload.inference_step())


def test_linear_layers(measure):
    """The smallest weights of every Linear zeroed, against the dense model."""
    measure(MLP().inference_step(L1Pruning(0.9, layers="linear")), against=MLP().inference_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("pruning", [ChannelPruning(0.3), ChannelPruning(0.5), ChannelPruning(0.7)], ids=str)
def test_channels_removed(measure, workload, pruning):
    """Channels of least norm removed with all that depends on them, against the whole model."""
    measure(workload.inference_step(pruning), against=workload.inference_step())


@pytest.mark.gpu
@pytest.mark.parametrize("pruning", [ChannelPruning(0.05), ChannelPruning(0.5)], ids=str)
def test_channels_removed_from_resnet50(measure, pruning):
    """Published: 2.19 times faster at 0.5, and slower than the whole model at 0.05."""
    workload = ResNet50(batch_size=128)
    measure(workload.inference_step(pruning), against=workload.inference_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_training_with_channels_removed(measure, workload):
    """A training step of the smaller model, against the whole model's."""
    measure(workload.train_step(ChannelPruning(0.5)), against=workload.train_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_channels_masked(measure, workload):
    """The contrast: half of the channels zeroed but still computed, against the whole model."""
    measure(workload.inference_step(ChannelMasks(0.5)), against=workload.inference_step())


@pytest.mark.parametrize(
    "pruning",
    [
        L1Pruning(0.9),
        ChannelPruning(0.5),
        *(
            pytest.param(each, marks=SLOW)
            for each in (L1Pruning(0.3), L1Pruning(0.5), RandomPruning(0.5), ChannelPruning(0.3), ChannelPruning(0.7))
        ),
    ],
    ids=str,
)
def test_accuracy(measure, pruning):
    """The test set through a trained model, with its accuracy before, after pruning, and after an epoch of tuning."""
    measure(LEARNT.accuracy_step(pruning), against=LEARNT.accuracy_step())
