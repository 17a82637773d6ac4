"""CIFAR-10 (Krizhevsky 2009): 50,000 training and 10,000 test images of 32x32, read by torchvision from a folder."""

import functools
import os
from typing import Any, cast

import torch
import torchvision
from torch.utils.data import Dataset
from torchvision.transforms import v2

from workloads.data.folder import data_folder
from workloads.workload import Unsuitable

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of the training images, per channel


@functools.cache
def images(*, train: bool, image_size: int) -> Dataset[Any]:
    """Normalised CIFAR-10 images from the data folder; downloaded only where ``PERFGATE_DOWNLOAD=1``.

    Raises:
        Unsuitable: where the folder holds no CIFAR-10.
    """
    folder = data_folder()
    steps = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    if image_size != 32:
        steps.append(v2.Resize(image_size, antialias=True))
    try:
        samples = torchvision.datasets.CIFAR10(
            str(folder),
            train=train,
            transform=v2.Compose(steps),
            target_transform=torch.tensor,
            download=os.environ.get("PERFGATE_DOWNLOAD") == "1",
        )
    except (RuntimeError, OSError) as error:
        raise Unsuitable(
            f"no CIFAR-10 in {folder} ({error}). Put cifar-10-batches-py there, name its folder with "
            "PERFGATE_DATA, or allow the download with PERFGATE_DOWNLOAD=1; the data source digits is built in"
        ) from error
    return cast("Dataset[Any]", samples)
