"""An epoch: how much of the loader's cost does training see, and how long does it wait for data?

Each record has the ``starvation_share``: the part of the epoch in which the step waited for the loader.
"""

import pytest

from workloads import ResNet18
from workloads.optimizations import (
    AMP,
    ChannelsLast,
    DeviceAugmentation,
    GpuDecode,
    NonBlocking,
    PersistentWorkers,
    PinMemory,
    Prefetcher,
    Workers,
)

pytestmark = [pytest.mark.benchmark(group="data loading"), pytest.mark.loader]

PHOTOS = ResNet18(batch_size=8, data="photos", image_size=64)
BATCHES = 3  # of 8 photographs: a round of less than half a second on one core
LARGE = ResNet18(batch_size=32, data="photos", image_size=224)
PINNED = (Workers(4), PersistentWorkers(), PinMemory(), NonBlocking())
CHAIN = (*PINNED, Prefetcher(), ChannelsLast(), AMP("bfloat16"))


def test_worker(measure):
    """One worker that lives on, decoding while the step runs, against decoding in turn with it."""
    measure(
        PHOTOS.epoch_step(Workers(1), PersistentWorkers(), batches=BATCHES),
        against=PHOTOS.epoch_step(batches=BATCHES),
    )


@pytest.mark.slow
def test_device_augmentation(measure):
    """Batches normalised and flipped as a whole, against sample by sample in the loader."""
    measure(PHOTOS.epoch_step(DeviceAugmentation(), batches=BATCHES), against=PHOTOS.epoch_step(batches=BATCHES))


@pytest.mark.gpu
def test_stream_prefetcher(measure):
    """The next batch copied beside the step, against copied before it; both pinned and without waiting."""
    measure(LARGE.epoch_step(*PINNED, Prefetcher()), against=LARGE.epoch_step(*PINNED))


@pytest.mark.gpu
@pytest.mark.parametrize("preparation", [DeviceAugmentation(), GpuDecode()], ids=str)
def test_whole_chain(measure, preparation):
    """Workers, pinned copies on a stream of their own, preparation on the device and a fast step, against plain."""
    measure(LARGE.epoch_step(*CHAIN, preparation), against=LARGE.epoch_step())
