"""torch.compile: does generated code beat eager, and what does it cost to generate?

Beside the speedup: compile time with a cold and a warm cache, graph breaks, recompilations, steps until it has paid.
"""

import pytest

from workloads import GPT2, MLP, ResNet18, ResNet18Cifar, ResNet50, Transformer
from workloads.optimizations import Compile

pytestmark = [pytest.mark.benchmark(group="compile"), pytest.mark.compile]

LARGE = pytest.param(ResNet18Cifar(batch_size=256), marks=pytest.mark.gpu)
SLOW = pytest.param(ResNet18(), marks=pytest.mark.slow)
MODES = [Compile(), pytest.param(Compile("reduce-overhead"), marks=pytest.mark.gpu)]
OTHERS = [
    Compile("lite"),
    Compile(fullgraph=True),
    pytest.param(Compile(dynamic=True), marks=pytest.mark.slow),
    pytest.param(Compile("max-autotune-no-cudagraphs"), marks=pytest.mark.slow),
    pytest.param(Compile("max-autotune"), marks=[pytest.mark.gpu, pytest.mark.slow]),
]
HUGE = [
    pytest.param(workload, marks=[pytest.mark.gpu, pytest.mark.slow])
    for workload in (ResNet50(batch_size=128), GPT2(batch_size=8))
]


@pytest.mark.parametrize("workload", [MLP(), SLOW, LARGE, *HUGE], ids=str)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_train_step(measure, workload, mode):
    """One step, against eager."""
    measure(workload.train_step(mode), against=workload.train_step())


@pytest.mark.parametrize("workload", [ResNet18(), Transformer(), LARGE], ids=str)
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_inference(measure, workload, mode):
    """Forward, against eager."""
    measure(workload.inference_step(mode), against=workload.inference_step())


@pytest.mark.parametrize("workload", [Transformer(batch_size=4), LARGE], ids=str)  # another graph: not in the cache
@pytest.mark.parametrize("mode", OTHERS, ids=str)
def test_modes(measure, workload, mode):
    """Forward in the other modes, against eager."""
    measure(workload.inference_step(mode), against=workload.inference_step())
