"""The baseline: what does a plain float32 step cost on this machine, in training and in inference?"""

import pytest

from workloads import MLP, ResNet18, ResNet18Cifar, Transformer

pytestmark = pytest.mark.benchmark(group="baseline")

WORKLOADS = [
    MLP(),
    ResNet18(),
    Transformer(),
    pytest.param(ResNet18Cifar(), marks=pytest.mark.slow),
    pytest.param(ResNet18Cifar(batch_size=256), marks=pytest.mark.gpu),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_train_step(measure, workload):
    """Forward, loss, backward, update."""
    measure(workload.train_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_inference(measure, workload):
    """Forward in evaluation mode."""
    measure(workload.inference_step())
