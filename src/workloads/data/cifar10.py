"""CIFAR-10 (Krizhevsky 2009): 50,000 training and 10,000 test images of 32x32, read by torchvision from a folder."""

import functools
import os
from typing import Any, cast

import torch
import torchvision
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms import v2

from workloads.data.folder import data_folder
from workloads.data.stored import StoredImages, normalised
from workloads.workload import Unsuitable

SIDE = 32  # pixels
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of the training images, per channel


class Cifar10(StoredImages):
    """torchvision's CIFAR-10, normalised and, where another size is asked for, resized."""

    def __init__(self, samples: Dataset[Any], image_size: int) -> None:
        """``samples`` give (3, 32, 32) uint8 images with their class as a tensor."""
        self.samples = samples
        steps: list[Any] = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
        self._resize = None if image_size == SIDE else v2.Resize(image_size, antialias=True)
        self._finish = v2.Compose([*steps, self._resize] if self._resize else steps)

    def __len__(self) -> int:
        """50,000 or 10,000."""
        return len(self.samples)  # type: ignore[arg-type]

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """(3, image_size, image_size) float32 and the class."""
        image, label = self.samples[index]
        return self._finish(image), label

    def pixels(self, index: int) -> tuple[Tensor, Tensor]:
        """(3, 32, 32) uint8 as stored, for they are resized as float32, and the class."""
        image, label = self.samples[index]
        return image.as_subclass(Tensor), label

    def finished(self, pixels: Tensor, indices: Tensor) -> Tensor:
        """Normalised and resized; nothing depends on the index."""
        images = normalised(pixels, MEAN, STD)
        return self._resize(images) if self._resize else images


@functools.cache
def images(*, train: bool, image_size: int) -> Dataset[Any]:
    """Normalised CIFAR-10 images from the data folder; downloaded only where ``PERFGATE_DOWNLOAD=1``.

    Raises:
        Unsuitable: where the folder holds no CIFAR-10.
    """
    folder = data_folder()
    try:
        samples = torchvision.datasets.CIFAR10(
            str(folder),
            train=train,
            transform=v2.ToImage(),
            target_transform=torch.tensor,
            download=os.environ.get("PERFGATE_DOWNLOAD") == "1",
        )
    except (RuntimeError, OSError) as error:
        raise Unsuitable(
            f"no CIFAR-10 in {folder} ({error}). Put cifar-10-batches-py there, name its folder with "
            "PERFGATE_DATA, or allow the download with PERFGATE_DOWNLOAD=1; the data source digits is built in"
        ) from error
    return Cifar10(cast("Dataset[Any]", samples), image_size)
