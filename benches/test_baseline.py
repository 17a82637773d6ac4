"""The baseline: what does a plain float32 step cost on this machine, in training and in inference?"""

import pytest

from workloads import GPT2, MLP, ResNet18, ResNet18Cifar, ResNet50, Transformer, ViTB16

pytestmark = pytest.mark.benchmark(group="baseline")

WORKLOADS = [
    MLP(),
    ResNet18(),
    Transformer(),
    pytest.param(ResNet18Cifar(), marks=pytest.mark.slow),
    *(
        pytest.param(each, marks=pytest.mark.gpu)
        for each in (ResNet18Cifar(batch_size=256), ResNet50(batch_size=128), ViTB16(), GPT2())
    ),
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_train_step(measure, workload):
    """Forward, loss, backward, update."""
    measure(workload.train_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_inference(measure, workload):
    """Forward in evaluation mode."""
    measure(workload.inference_step())
