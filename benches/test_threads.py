"""CPU threads: how much faster is a step on more cores?"""

import pytest

from workloads import MLP, ResNet18
from workloads.optimizations import PersistentWorkers, Threads, Workers

pytestmark = pytest.mark.benchmark(group="CPU threads")


@pytest.mark.parametrize("workload", [MLP(), ResNet18()], ids=str)
@pytest.mark.parametrize("threads", [Threads(2), Threads(4), Threads(8), Threads(16)], ids=str)
def test_train_step(measure, workload, threads):
    """One step, against one thread."""
    measure(workload.train_step(threads), against=workload.train_step(Threads(1)))


@pytest.mark.slow
@pytest.mark.loader
def test_threads_and_workers(measure):
    """An epoch with two threads and a worker that decodes beside them, against one thread that does both."""
    photos = ResNet18(batch_size=8, data="photos", image_size=64)
    measure(
        photos.epoch_step(Threads(2), Workers(1), PersistentWorkers(), batches=3),
        against=photos.epoch_step(Threads(1), batches=3),
    )
