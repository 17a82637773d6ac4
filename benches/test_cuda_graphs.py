"""CUDA graphs: does one launch instead of hundreds pay, and up to which batch?"""

import pytest

from workloads import MLP, ResNet18, Transformer
from workloads.optimizations import AMP, CudaGraph, Update

pytestmark = [pytest.mark.benchmark(group="cuda graphs"), pytest.mark.gpu]

WORKLOADS = [MLP(), ResNet18(batch_size=8), ResNet18(batch_size=256), Transformer()]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_train_step(measure, workload):
    """The whole step replayed, against the same launched kernel by kernel."""
    measure(workload.train_step(CudaGraph()), against=workload.train_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_inference(measure, workload):
    """Forward replayed, against launched."""
    measure(workload.inference_step(CudaGraph()), against=workload.inference_step())


@pytest.mark.parametrize("workload", [Transformer()], ids=str)
def test_with_amp_and_adamw(measure, workload):
    """A step of many small kernels: half precision, AdamW."""
    stack = AMP(), Update("fused", "adamw")
    measure(workload.train_step(*stack, CudaGraph()), against=workload.train_step(*stack))
