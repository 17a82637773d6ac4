"""Batch size: where does throughput stop rising, and what is the largest batch that fits?"""

import pytest

from workloads import MLP, ResNet18Cifar
from workloads.capacity import LargestBatch
from workloads.optimizations import AMP
from workloads.sweep import GPU_SIZES

pytestmark = pytest.mark.benchmark(group="batch size")

PRECISIONS = [(), (AMP("float16"),)]
NAMES = ["float32", "amp-fp16"]


@pytest.mark.parametrize("batch_size", [16, 128, 1024])
def test_mlp(measure, batch_size):
    """A training step of so many samples; the throughput tells the sizes apart."""
    measure(MLP(batch_size=batch_size).train_step())


@pytest.mark.gpu
@pytest.mark.parametrize("precision", PRECISIONS, ids=NAMES)
@pytest.mark.parametrize("batch_size", GPU_SIZES)
def test_resnet(measure, batch_size, precision):
    """The same of ResNet-18, in float32 and with AMP: small batches leave a GPU idle."""
    measure(ResNet18Cifar(batch_size=batch_size).train_step(*precision))


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("precision", PRECISIONS, ids=NAMES)
def test_largest_batch(measure, precision):
    """How many samples fit, found by doubling and bisection; saved as ``largest_batch``."""
    measure(LargestBatch(ResNet18Cifar(batch_size=256), precision))
