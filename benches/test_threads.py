"""CPU threads: how much faster is a step on more cores?"""

import pytest

from workloads import MLP, ResNet18
from workloads.optimizations import Threads

pytestmark = pytest.mark.benchmark(group="CPU threads")


@pytest.mark.parametrize("workload", [MLP(), ResNet18()], ids=str)
@pytest.mark.parametrize("threads", [Threads(2), Threads(4), Threads(8), Threads(16)], ids=str)
def test_train_step(measure, workload, threads):
    """One step, against one thread."""
    measure(workload.train_step(threads), against=workload.train_step(Threads(1)))
