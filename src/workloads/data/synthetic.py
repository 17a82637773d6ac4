"""Seeded random tensors: no file, no decoding, the same in every process."""

import functools

import torch
from torch import Tensor
from torch.utils.data import TensorDataset

SAMPLES = 512
CLASSES = 10


@functools.cache
def images(*, train: bool, image_size: int) -> TensorDataset:
    """512 images of standard normal noise with random classes."""
    generator = torch.Generator().manual_seed(1 if train else 2)
    noise = torch.randn(SAMPLES, 3, image_size, image_size, generator=generator)
    return TensorDataset(noise, torch.randint(CLASSES, (SAMPLES,), generator=generator))


@functools.cache
def tokens(vocabulary: int, length: int, *, train: bool) -> Tensor:
    """512 sequences of ``length`` random tokens below ``vocabulary``."""
    generator = torch.Generator().manual_seed(1 if train else 2)
    return torch.randint(vocabulary, (SAMPLES, length), generator=generator)
