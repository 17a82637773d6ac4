"""Memory savers: what do gradient accumulation and activation checkpointing cost in time for what they save?"""

import pytest

from workloads import GPT2, ResNet18Cifar, Transformer
from workloads.optimizations import AMP, Checkpointing, GradientAccumulation

WORKLOADS = [Transformer(), pytest.param(GPT2(batch_size=8), marks=pytest.mark.gpu)]
STEPS = [
    GradientAccumulation(4),
    *(pytest.param(GradientAccumulation(steps), marks=pytest.mark.slow) for steps in (2, 8)),
]
LARGE = pytest.param(ResNet18Cifar(batch_size=512), marks=pytest.mark.gpu)


@pytest.mark.benchmark(group="gradient accumulation")
@pytest.mark.parametrize("workload", [Transformer(), LARGE], ids=str)
@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_accumulation(measure, workload, steps):
    """A step of the same batch in parts, against the whole batch at once."""
    measure(workload.train_step(steps), against=workload.train_step())


@pytest.mark.benchmark(group="activation checkpointing")
@pytest.mark.parametrize("workload", [*WORKLOADS, LARGE], ids=str)
def test_checkpointing(measure, workload):
    """A step whose blocks are computed twice, against one that keeps all activations."""
    measure(workload.train_step(Checkpointing()), against=workload.train_step())


@pytest.mark.gpu
@pytest.mark.benchmark(group="activation checkpointing")
def test_checkpointing_with_amp(measure):
    """The same in half precision."""
    gpt2 = GPT2(batch_size=16)
    measure(gpt2.train_step(AMP(), Checkpointing()), against=gpt2.train_step(AMP()))
