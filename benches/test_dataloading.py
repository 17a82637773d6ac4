"""Data loading: what brings JPEG photographs to the device faster?

Worker processes, pinned memory, prefetching, and stages of the work left to the device.
"""

import pytest

from workloads import ResNet18
from workloads.optimizations import (
    DeviceAugmentation,
    GpuDecode,
    NonBlocking,
    PersistentWorkers,
    PinMemory,
    Prefetch,
    Workers,
)

pytestmark = [pytest.mark.benchmark(group="data loading"), pytest.mark.loader]

PHOTOS = ResNet18(data="photos", image_size=128)
TWO = Workers(2)


@pytest.mark.parametrize("workers", [Workers(2), Workers(4), Workers(8)], ids=str)
def test_workers(measure, workers):
    """One epoch decoded by so many processes, against decoding in the main process."""
    measure(PHOTOS.loading_step(workers), against=PHOTOS.loading_step())


def test_persistent_workers(measure):
    """Two workers that live on between epochs, against two that are started for each."""
    measure(PHOTOS.loading_step(TWO, PersistentWorkers()), against=PHOTOS.loading_step(TWO))


@pytest.mark.slow
@pytest.mark.parametrize("prefetch", [Prefetch(4)], ids=str)
def test_prefetch_factor(measure, prefetch):
    """Two workers that prepare so many batches ahead, against the default of two."""
    measure(PHOTOS.loading_step(TWO, prefetch), against=PHOTOS.loading_step(TWO))


@pytest.mark.gpu
def test_pin_memory(measure):
    """Page-locked batches, against pageable ones."""
    measure(PHOTOS.loading_step(TWO, PinMemory()), against=PHOTOS.loading_step(TWO))


@pytest.mark.gpu
def test_non_blocking(measure):
    """Copies that the host does not wait for, against copies that it does, both from pinned memory."""
    measure(
        PHOTOS.loading_step(TWO, PinMemory(), NonBlocking()),
        against=PHOTOS.loading_step(TWO, PinMemory()),
    )


def test_device_augmentation(measure):
    """Normalised and flipped on the device, a batch at a time, against in the loader, one by one."""
    measure(PHOTOS.loading_step(DeviceAugmentation()), against=PHOTOS.loading_step())


@pytest.mark.gpu
def test_gpu_decode(measure):
    """JPEG files decoded and resized by the GPU, against by two workers; the rest is done by the GPU in both."""
    measure(PHOTOS.loading_step(TWO, GpuDecode()), against=PHOTOS.loading_step(TWO, DeviceAugmentation()))
