"""Augmentation on the device: the loader delivers uint8, the device makes a whole batch of it the model's inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor

from workloads.data.stored import Pixels, StoredImages
from workloads.optimizations.dataloading import KINDS
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Unsuitable, Workload

if TYPE_CHECKING:
    from torch.utils.data import Dataset

PREPARATION = "image-preparation"
"""What techniques that leave stages of the images to the device decide alone."""
Images = TypeVar("Images", bound=StoredImages)


@dataclass(frozen=True)
class DeviceAugmentation(Optimization):
    """Decode and resize in the loader; convert, normalise and flip on the device: a quarter of the bytes to move.

    On a CPU the gain is that the last stages work on a batch at a time.
    """

    name: ClassVar[str] = "device-augmentation"
    order: ClassVar[int] = 8
    slot: ClassVar[str] = PREPARATION
    keeps_samples: ClassVar[bool] = False  # one multiplication and addition, where plain scales and normalises in turn
    source: ClassVar[str] = "Leclerc et al. 2023, arXiv:2306.12517: FFCV's device-side normalisation and flips"
    kinds: ClassVar[frozenset[str]] = KINDS

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Needs images that are stored as uint8."""
        return not_stored(self, workload, StoredImages, "images stored as uint8: use data photos or cifar10")

    def apply(self, parts: Parts) -> None:
        """Let the loader stop at the pixels, and the device go on from there."""
        images = take_over(self, parts, StoredImages, Pixels)

        def arrive(parts: Parts, loaded: Any) -> Tensor:
            pixels, indices = (each.to(parts.device, non_blocking=parts.non_blocking) for each in loaded)
            return images.finished(pixels, indices)

        parts.arrive = arrive

    def proof(self, seen: Observation) -> str:
        """The loader gave uint8 only, and floats arrived."""
        return came_as_bytes(seen)


def not_stored(optimization: Optimization, workload: Workload, kind: type[StoredImages], wanted: str) -> str | None:
    """Why a workload's images cannot be taken at that earlier stage."""
    if type(workload).dataset is not Workload.dataset and isinstance(workload.samples(train=True), kind):
        return None
    return f"{workload.name} on {workload.data} has no {wanted}; {optimization.name} has nothing to leave to the device"


def take_over(optimization: Optimization, parts: Parts, kind: type[Images], view: Any) -> Images:
    """Let the loader take ``view`` of the samples; returns the training images.

    Raises:
        Unsuitable: where the parts have no such images.
    """
    samples = parts.dataset
    images = samples(train=True) if samples else None
    if samples is None or not isinstance(images, kind):
        raise Unsuitable(f"{optimization} needs a step with a loader over {kind.__name__}")

    def viewed(*, train: bool) -> Dataset[Any]:
        made: Dataset[Any] = view(samples(train=train))
        return made

    parts.dataset = viewed
    return images


def came_as_bytes(seen: Observation) -> str:
    """How much smaller the batches were on their way.

    Raises:
        NotInEffect: where floats came, or no floats arrived.
    """
    loaded, arrived = seen.facts.get("loaded_dtypes", set()), seen.facts.get("arrived_dtypes", set())
    if torch.uint8 not in loaded or any(each.is_floating_point for each in loaded):
        raise NotInEffect(f"the loader delivers {', '.join(sorted(map(str, loaded))) or 'nothing'}, expected uint8")
    if arrived != {torch.float32}:
        raise NotInEffect(f"{', '.join(sorted(map(str, arrived)))} arrived, expected float32")
    return f"the loader delivers {seen.facts['loaded_bytes']:,} bytes for {seen.facts['arrived_bytes']:,} of inputs"
