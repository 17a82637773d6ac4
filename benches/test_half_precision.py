"""Pure half precision for inference: is it faster and smaller than float32, and than autocast with its casts?"""

import pytest

from workloads import GPT2, MLP, ResNet18, ResNet50, Transformer, ViTB16
from workloads.optimizations import AMP, PureHalf

pytestmark = pytest.mark.benchmark(group="half precision")

LARGE = [pytest.param(each, marks=pytest.mark.gpu) for each in (ResNet50(), ViTB16(), GPT2(batch_size=4))]
TYPES = ["bfloat16", pytest.param("float16", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("workload", [MLP(), ResNet18(), *LARGE], ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_inference(measure, workload, dtype):
    """Weights and activations in 16 bits, against float32."""
    measure(workload.inference_step(PureHalf(dtype)), against=workload.inference_step())


@pytest.mark.parametrize("workload", [Transformer(), *LARGE], ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_against_autocast(measure, workload, dtype):
    """Weights converted once, against autocast, which keeps them in float32 and casts them in every pass."""
    measure(workload.inference_step(PureHalf(dtype)), against=workload.inference_step(AMP(dtype)))
