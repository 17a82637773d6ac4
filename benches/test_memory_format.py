"""Memory format: does channels-last order make convolutions faster, in float32 and under AMP?"""

import pytest

from workloads import ResNet18, ResNet18Cifar, ResNet50
from workloads.optimizations import AMP, ChannelsLast

pytestmark = pytest.mark.benchmark(group="memory format")

LARGE = [ResNet18Cifar(batch_size=256), ResNet50()]
WORKLOADS = [ResNet18(), *(pytest.param(each, marks=pytest.mark.gpu) for each in LARGE)]
FLOAT32, HALF = pytest.param((), id="float32"), pytest.param((AMP(),), id="amp-bf16")
SLOW_FLOAT32 = pytest.param((), id="float32", marks=pytest.mark.slow)
SLOW_AMP = pytest.param((AMP(),), id="amp-bf16", marks=pytest.mark.slow)


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("precision", [FLOAT32, SLOW_AMP])
def test_train_step(measure, workload, precision):
    """One step in NHWC order, against NCHW in the same precision."""
    measure(workload.train_step(ChannelsLast(), *precision), against=workload.train_step(*precision))


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
@pytest.mark.parametrize("precision", [SLOW_FLOAT32, HALF])
def test_inference(measure, workload, precision):
    """Forward in NHWC order, against NCHW in the same precision."""
    measure(workload.inference_step(ChannelsLast(), *precision), against=workload.inference_step(*precision))
