"""Copies and syncs: what do the habits cost that every tuning guide warns of? The slow twin is the plain one."""

import pytest

from workloads import MLP, ResNet18, ResNet18Cifar
from workloads.optimizations import CopyEachStep, EmptyCache, PerSample, ReadLoss

pytestmark = pytest.mark.benchmark(group="copies and syncs")

SMALL = pytest.param(ResNet18(batch_size=8), marks=pytest.mark.gpu)
LARGE = pytest.param(ResNet18Cifar(batch_size=256), marks=pytest.mark.gpu)


@pytest.mark.parametrize("workload", [MLP(), SMALL, LARGE], ids=str)
def test_no_item_in_the_loop(measure, workload):
    """A loss that stays on the device, against ``loss.item()`` in every step."""
    measure(workload.train_step(), against=workload.train_step(ReadLoss()))


@pytest.mark.parametrize("workload", [MLP(batch_size=32), SMALL], ids=str)
def test_batched(measure, workload):
    """One forward pass and one loss for the batch, against one per sample."""
    measure(workload.train_step(), against=workload.train_step(PerSample()))


@pytest.mark.parametrize("workload", [SMALL, LARGE], ids=str)
def test_no_empty_cache_in_the_loop(measure, workload):
    """An allocator that keeps its memory, against ``empty_cache()`` in every step."""
    measure(workload.train_step(), against=workload.train_step(EmptyCache()))


@pytest.mark.parametrize("workload", [SMALL, LARGE], ids=str)
def test_data_on_the_device(measure, workload):
    """A batch made on the device, against one made on the host and copied in every step."""
    measure(workload.train_step(), against=workload.train_step(CopyEachStep()))
