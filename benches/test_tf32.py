"""TensorFloat-32: what do products and convolutions of 10-bit factors save, against full float32?

Plain torch is neither (convolutions in TensorFloat-32, products not), so both sides say what they use.
"""

import pytest

from workloads import GPT2, MLP, ResNet18Cifar, ResNet50
from workloads.optimizations import Float32Precision

pytestmark = [pytest.mark.benchmark(group="tf32"), pytest.mark.gpu]

TF32, IEEE = Float32Precision("tf32"), Float32Precision("ieee")
WORKLOADS = [MLP(batch_size=1024, width=4096), ResNet18Cifar(batch_size=256), ResNet50(), GPT2(batch_size=4)]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_train_step(measure, workload):
    """One step, against the same in IEEE float32."""
    measure(workload.train_step(TF32), against=workload.train_step(IEEE))


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_inference(measure, workload):
    """Forward, against the same in IEEE float32."""
    measure(workload.inference_step(TF32), against=workload.inference_step(IEEE))
