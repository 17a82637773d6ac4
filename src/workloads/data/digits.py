"""The 1,797 handwritten digits that scikit-learn ships (UCI, Alpaydin & Kaynak 1998): real data without a download."""

import functools

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

LEVELS = 17  # pixels are integers from 0 to 16
TEST_SHARE = 5  # every fifth sample of a seeded shuffle is a test sample


@functools.cache
def _samples(*, train: bool) -> tuple[Tensor, Tensor]:
    """Raw pixels (n, 8, 8) of 0..16 and labels (n,), the same split in every process."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
    chosen = order[torch.arange(len(order)) % TEST_SHARE != 0] if train else order[::TEST_SHARE]
    return torch.from_numpy(digits.images)[chosen], torch.from_numpy(digits.target)[chosen].long()


@functools.cache
def images(*, train: bool, image_size: int) -> TensorDataset:
    """Digits upscaled to (3, image_size, image_size), normalised to zero mean and unit variance."""
    pixels, labels = _samples(train=train)
    grey = (pixels.float().unsqueeze(1) / (LEVELS - 1) - 0.305) / 0.376  # mean and deviation of the data set
    scaled = torch.nn.functional.interpolate(grey, size=(image_size, image_size), mode="bilinear")
    return TensorDataset(scaled.expand(-1, 3, -1, -1).contiguous(), labels)


def tokens(*, train: bool) -> Tensor:
    """Each digit as 65 tokens (n, 65): 64 pixel levels 0..16, then its label as 17..26."""
    pixels, labels = _samples(train=train)
    return torch.cat([pixels.long().flatten(1), labels.unsqueeze(1) + LEVELS], dim=1)
