"""Pruning: which kind makes inference faster: single weights, masked channels, or channels really removed?"""

import pytest

from workloads import ResNet18, ResNet18Cifar
from workloads.optimizations import ChannelMasks, ChannelPruning, L1Pruning

pytestmark = pytest.mark.benchmark(group="pruning")

WORKLOADS = [ResNet18(), pytest.param(ResNet18Cifar(batch_size=256), marks=pytest.mark.gpu)]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("pruning", [L1Pruning(0.3), L1Pruning(0.5), L1Pruning(0.9)], ids=str)
def test_unstructured(measure, workload, pruning):
    """The smallest weights of every Conv2d zeroed, against the dense model."""
    measure(workload.inference_step(pruning), against=workload.inference_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("pruning", [ChannelPruning(0.3), ChannelPruning(0.5), ChannelPruning(0.7)], ids=str)
def test_channels_removed(measure, workload, pruning):
    """Channels of least norm removed with all that depends on them, against the whole model."""
    measure(workload.inference_step(pruning), against=workload.inference_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_training_with_channels_removed(measure, workload):
    """A training step of the smaller model, against the whole model's."""
    measure(workload.train_step(ChannelPruning(0.5)), against=workload.train_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_channels_masked(measure, workload):
    """The contrast: half of the channels zeroed but still computed, against the whole model."""
    measure(workload.inference_step(ChannelMasks(0.5)), against=workload.inference_step())
