"""Model analysis: what is a training step made of, and how much of the machine does it use?"""

import pytest

from workloads import GPT2, MLP, ResNet18, ResNet18Cifar, ResNet50, Transformer

pytestmark = pytest.mark.benchmark(group="analysis")

WORKLOADS = [
    MLP(),
    ResNet18(),
    pytest.param(Transformer(), marks=pytest.mark.slow),
    pytest.param(ResNet18Cifar(batch_size=256), marks=pytest.mark.gpu),
    pytest.param(ResNet50(), marks=pytest.mark.gpu),
    pytest.param(GPT2(batch_size=8), marks=pytest.mark.gpu),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_train_step(measure, workload):
    """Parameters, FLOPs, memory by purpose, time by phase, the roofline, and scaling, saved beside the step's time."""
    measure(workload.analysis_step())
