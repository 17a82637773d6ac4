"""cuDNN's algorithms: does trying them pay where shapes stay fixed, and what do deterministic ones cost?

Where algorithms are tried, each side has plans of its own: torch would give those of the first to both.
"""

import pytest

from workloads import ResNet18, ResNet18Cifar
from workloads.optimizations import CudnnBenchmark, CudnnDeterministic, OwnPlans

pytestmark = [pytest.mark.benchmark(group="cudnn"), pytest.mark.gpu]

WORKLOADS = [ResNet18(), ResNet18Cifar(batch_size=256)]


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_train_step(measure, workload):
    """One step, against the algorithms that cuDNN's heuristic picks."""
    measure(workload.train_step(CudnnBenchmark(), OwnPlans()), against=workload.train_step(OwnPlans()))


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_inference(measure, workload):
    """Forward, against the same heuristic."""
    measure(workload.inference_step(CudnnBenchmark(), OwnPlans()), against=workload.inference_step(OwnPlans()))


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_deterministic(measure, workload):
    """One step with algorithms that give the same bits every time, against whatever the heuristic picks."""
    measure(workload.train_step(CudnnDeterministic()), against=workload.train_step())


@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_deterministic_and_tried(measure, workload):
    """The fastest of the deterministic algorithms, against the fastest of all."""
    measure(
        workload.train_step(CudnnBenchmark(), CudnnDeterministic(), OwnPlans()),
        against=workload.train_step(CudnnBenchmark(), OwnPlans()),
    )
