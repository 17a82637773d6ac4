"""cudnn.benchmark: does trying cuDNN's algorithms pay where shapes stay fixed, and what does the first call cost?"""

import pytest

from workloads import ResNet18, ResNet18Cifar
from workloads.optimizations import CudnnBenchmark

pytestmark = [pytest.mark.benchmark(group="cudnn"), pytest.mark.gpu]

WORKLOADS = [ResNet18(), ResNet18Cifar(batch_size=256)]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_train_step(measure, workload):
    """One step, against the algorithms that cuDNN's heuristic picks."""
    measure(workload.train_step(CudnnBenchmark()), against=workload.train_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_inference(measure, workload):
    """Forward, against the same heuristic."""
    measure(workload.inference_step(CudnnBenchmark()), against=workload.inference_step())
