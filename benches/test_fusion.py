"""Fusion for inference: what do folded batch norms, passes without autograd and activations in place save?"""

import pytest

from workloads import GPT2, MLP, ResNet18, ResNet18Cifar, ResNet50
from workloads.optimizations import Fusion, GradMode, InPlace, OutOfPlace

pytestmark = pytest.mark.benchmark(group="fusion for inference")

LARGE = [pytest.param(each, marks=pytest.mark.gpu) for each in (ResNet18Cifar(batch_size=256), ResNet50())]
GRAD, NO_GRAD, INFERENCE = GradMode("grad"), GradMode("no-grad"), GradMode("inference")


@pytest.mark.parametrize("workload", [ResNet18(), *LARGE], ids=str)
def test_batch_norms_folded(measure, workload):
    """Batch norms as part of the convolutions before them, against batch norms of their own."""
    measure(workload.inference_step(Fusion()), against=workload.inference_step())


@pytest.mark.parametrize("workload", [ResNet18(), *LARGE], ids=str)
def test_no_grad(measure, workload):
    """``no_grad``, against a pass that autograd records: less to do, and no activations kept."""
    measure(workload.inference_step(NO_GRAD), against=workload.inference_step(GRAD))


@pytest.mark.parametrize(
    "workload", [MLP(batch_size=1), *LARGE, pytest.param(GPT2(batch_size=1), marks=pytest.mark.gpu)], ids=str
)
def test_inference_mode(measure, workload):
    """``inference_mode``, against ``no_grad``: less bookkeeping on the host, which shows where little is computed."""
    measure(workload.inference_step(INFERENCE), against=workload.inference_step(NO_GRAD))


@pytest.mark.parametrize("workload", [ResNet18(), *LARGE], ids=str)
def test_in_place_activations(measure, workload):
    """ReLU in place, as torchvision has it, against out of place."""
    measure(workload.inference_step(InPlace()), against=workload.inference_step(OutOfPlace()))


@pytest.mark.slow
@pytest.mark.parametrize("workload", [ResNet18(), *LARGE], ids=str)
def test_in_place_activations_in_training(measure, workload):
    """The same in a training step."""
    measure(workload.train_step(InPlace()), against=workload.train_step(OutOfPlace()))
