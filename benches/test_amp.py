"""AMP: does half precision make a step faster and smaller, at the same result?"""

import pytest

from workloads import MLP, ResNet18, ResNet18Cifar, Transformer
from workloads.optimizations import AMP

pytestmark = pytest.mark.benchmark(group="amp")

WORKLOADS = [MLP(), ResNet18(), Transformer(), pytest.param(ResNet18Cifar(batch_size=256), marks=pytest.mark.gpu)]
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
