"""Optimizer: do fused updates pay, and how much of a step is the update at all?"""

import pytest

from workloads import GPT2, ResNet18, ResNet18Cifar, Transformer
from workloads.optimizations import Update

pytestmark = pytest.mark.benchmark(group="optimizer")

WORKLOADS = [
    pytest.param(ResNet18(), "sgd"),
    pytest.param(Transformer(), "adamw"),
    pytest.param(ResNet18Cifar(batch_size=128), "sgd", marks=pytest.mark.gpu),
    pytest.param(GPT2(batch_size=8), "adamw", marks=pytest.mark.gpu),
]


@pytest.mark.parametrize(("workload", "algorithm"), WORKLOADS, ids=str)
@pytest.mark.parametrize("implementation", ["foreach", "fused"])
def test_train_step(measure, workload, algorithm, implementation):
    """One step, against an update parameter by parameter."""
    measure(
        workload.train_step(Update(implementation, algorithm)),
        against=workload.train_step(Update("for-loop", algorithm)),
    )
