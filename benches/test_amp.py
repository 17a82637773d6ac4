"""AMP: does half precision make a step faster and smaller, at the same result?"""

import pytest

from workloads import GPT2, MLP, ResNet18, ResNet18Cifar, ResNet50, Transformer, ViTB16
from workloads.optimizations import AMP

pytestmark = pytest.mark.benchmark(group="amp")

WORKLOADS = [
    MLP(),
    ResNet18(),
    Transformer(),
    *(
        pytest.param(each, marks=pytest.mark.gpu)
        for each in (ResNet18Cifar(batch_size=256), ResNet50(batch_size=128), ViTB16(), GPT2())
    ),
]
PRECISIONS = [AMP("bfloat16"), pytest.param(AMP("float16"), marks=pytest.mark.gpu)]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("amp", PRECISIONS, ids=str)
def test_train_step(measure, workload, amp):
    """One step: forward, loss, backward, update, against the same step in float32."""
    measure(workload.train_step(amp), against=workload.train_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("amp", PRECISIONS, ids=str)
def test_inference(measure, workload, amp):
    """Forward, against the same in float32."""
    measure(workload.inference_step(amp), against=workload.inference_step())
