"""Images as they are stored, with the stages that make them a model's inputs, so that a device may do the later ones.

encoded bytes -> pixels, uint8 and of one size -> float32, normalised and flipped
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

LEVELS = 255  # of a uint8


class StoredImages(Dataset[Any]):
    """Images that exist as uint8 before they are inputs; ``self[index]`` goes through all stages, sample by sample."""

    def __len__(self) -> int:
        """The number of images."""
        raise NotImplementedError

    def pixels(self, index: int) -> tuple[Tensor, Tensor]:
        """(3, height, width) uint8, of one size for all images, and the class."""
        raise NotImplementedError

    def finished(self, pixels: Tensor, indices: Tensor) -> Tensor:
        """A batch of :meth:`pixels` on any device, as the float32 inputs that ``self[index]`` gives, on that device."""
        raise NotImplementedError


class EncodedImages(StoredImages):
    """Images that exist as JPEG files."""

    def encoded(self, index: int) -> tuple[Tensor, Tensor]:
        """The bytes of a file (length,) uint8, and the class."""
        raise NotImplementedError

    def resized(self, images: Sequence[Tensor]) -> Tensor:
        """Decoded images (3, any height, any width) uint8 on one device as a batch of :meth:`pixels`, there."""
        raise NotImplementedError


class Pixels(Dataset[Any]):
    """The same images up to their pixels: ((pixels, index), class)."""

    def __init__(self, images: StoredImages) -> None:
        """The index goes along, since augmentation depends on it."""
        self.images = images

    def __len__(self) -> int:
        """As many."""
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[tuple[Tensor, int], Tensor]:
        """Decoded and resized, not more."""
        pixels, label = self.images.pixels(index)
        return (pixels, index), label


class Encoded(Dataset[Any]):
    """The same images as they lie in their files: ((bytes, index), class)."""

    def __init__(self, images: EncodedImages) -> None:
        """The index goes along, since augmentation depends on it."""
        self.images = images

    def __len__(self) -> int:
        """As many."""
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[tuple[Tensor, int], Tensor]:
        """Read, not more."""
        encoded, label = self.images.encoded(index)
        return (encoded, index), label


def normalised(pixels: Tensor, mean: tuple[float, ...], deviation: tuple[float, ...]) -> Tensor:
    """(batch, 3, height, width) uint8 as float32 of zero mean and unit deviation, where these are shares of 255."""
    summand, factor = _constants(mean, deviation, pixels.device)
    return torch.addcmul(summand, pixels.to(torch.float32), factor)


@functools.cache  # copying them for every batch would make the host wait for a GPU
def _constants(mean: tuple[float, ...], deviation: tuple[float, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """What to add and what to multiply with, each (3, 1, 1)."""
    means, deviations = (torch.tensor(each, dtype=torch.float64).view(-1, 1, 1) for each in (mean, deviation))
    summand, factor = -means / deviations, 1 / (LEVELS * deviations)
    return summand.to(device, torch.float32), factor.to(device, torch.float32)


def flipped(images: Tensor, wanted: Tensor) -> Tensor:
    """(batch, 3, height, width) mirrored where ``wanted`` (batch,); without a wait for how many that are."""
    return torch.where(wanted.view(-1, 1, 1, 1), images.flip(-1), images)
