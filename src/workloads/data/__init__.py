"""Where samples come from: one file per source. Nothing is downloaded unless asked for."""

from typing import Any

from torch.utils.data import Dataset

from workloads.data import cifar10, digits, photos, synthetic

SOURCES = ("synthetic", "digits", "photos", "cifar10")


def load(source: str, *, train: bool, image_size: int) -> Dataset[Any]:
    """Images (3, image_size, image_size) float32 with an integer class each.

    Raises:
        Unsuitable: where the source's files are absent; the message says how to get them.
    """
    loaders = {
        "synthetic": synthetic.images,
        "digits": digits.images,
        "photos": photos.images,
        "cifar10": cifar10.images,
    }
    return loaders[source](train=train, image_size=image_size)
