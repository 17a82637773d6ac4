"""torch.compile: does generated code beat eager, and what does it cost to generate?"""

import pytest

from workloads import MLP, ResNet18, ResNet18Cifar, Transformer
from workloads.optimizations import Compile

pytestmark = [pytest.mark.benchmark(group="compile"), pytest.mark.compile]

LARGE = pytest.param(ResNet18Cifar(batch_size=256), marks=pytest.mark.gpu)
MODES = [Compile(), pytest.param(Compile("reduce-overhead"), marks=pytest.mark.gpu)]


@pytest.mark.parametrize("workload", [MLP(), ResNet18(), LARGE], ids=str)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_train_step(measure, workload, mode):
    """One step, against eager."""
    measure(workload.train_step(mode), against=workload.train_step())


@pytest.mark.parametrize("workload", [ResNet18(), Transformer(), LARGE], ids=str)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_inference(measure, workload, mode):
    """Forward, against eager."""
    measure(workload.inference_step(mode), against=workload.inference_step())
