"""Real JPEG files to decode: crops of the two photographs that scikit-learn ships, made at first use."""

import functools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms import v2

from workloads.data.folder import data_folder
from workloads.data.stored import EncodedImages, flipped, normalised

COUNT = 256
SIDE = 384  # pixels of a crop: about what a photograph of ImageNet has, so that decoding costs what it does there
QUALITY = 90
MEAN, DEVIATION = (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)  # 0..1 becomes -2..2
VERSION = f"photos-{COUNT}x{SIDE}-q{QUALITY}-pillow"  # a changed recipe is another folder


def folder() -> Path:
    """The folder of JPEG files, made once; safe where several processes make it at the same time."""
    target = data_folder() / VERSION
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=target.parent, prefix=".tmp-photos-"))
    _write(unfinished)
    try:
        unfinished.rename(target)
    except OSError:  # another process was first
        for leftover in unfinished.iterdir():
            leftover.unlink()
        unfinished.rmdir()
    return target


def _write(target: Path) -> None:
    """``COUNT`` seeded crops, alternately of the one and the other photograph; the class is the photograph."""
    from sklearn.datasets import load_sample_images

    generator = torch.Generator().manual_seed(0)
    originals = [Image.fromarray(image) for image in load_sample_images().images]
    for index in range(COUNT):
        photo = originals[index % len(originals)]
        top = int(torch.randint(photo.height - SIDE, (1,), generator=generator))
        left = int(torch.randint(photo.width - SIDE, (1,), generator=generator))
        crop = photo.crop((left, top, left + SIDE, top + SIDE))
        crop.save(target / f"{index:04d}-{index % len(originals)}.jpg", quality=QUALITY)


class Photos(EncodedImages):
    """Decodes a JPEG, resizes, flips (by index, so that every pass is the same) and normalises it."""

    def __init__(self, files: list[Path], image_size: int) -> None:
        """``files`` named ``<index>-<class>.jpg``."""
        self.files = files
        self._resize = v2.Resize((image_size, image_size), antialias=True)
        self._normalise = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)])

    def __len__(self) -> int:
        """The number of files."""
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """(3, image_size, image_size) float32 and the class."""
        pixels, label = self.pixels(index)
        image = self._normalise(pixels)
        return image.flip(-1) if index % 2 else image, label

    def _label(self, index: int) -> Tensor:
        return torch.tensor(int(self.files[index].stem.split("-")[1]))

    def encoded(self, index: int) -> tuple[Tensor, Tensor]:
        """The file, and the class."""
        content = bytearray(self.files[index].read_bytes())
        return torch.frombuffer(content, dtype=torch.uint8), self._label(index)

    def pixels(self, index: int) -> tuple[Tensor, Tensor]:
        """Decoded and resized to (3, image_size, image_size) uint8, and the class."""
        with Image.open(self.files[index]) as image:  # torchvision's own decoders are deprecated since 0.29
            decoded = v2.functional.pil_to_tensor(image.convert("RGB"))
        return self._resize(decoded), self._label(index)

    def resized(self, images: Sequence[Tensor]) -> Tensor:
        """All at once where they are of one size, as the crops are."""
        if len({image.shape for image in images}) == 1:
            pixels: Tensor = self._resize(torch.stack(list(images)))
            return pixels
        return torch.stack([self._resize(image) for image in images])

    def finished(self, pixels: Tensor, indices: Tensor) -> Tensor:
        """Normalised, and flipped where the index is odd."""
        return flipped(normalised(pixels, MEAN, DEVIATION), indices % 2 == 1)


@functools.cache
def images(*, train: bool, image_size: int) -> Dataset[Any]:
    """Three quarters of the files for training, the rest for testing."""
    files = sorted(folder().glob("*.jpg"))
    return Photos([file for number, file in enumerate(files) if (number // 2 % 4 != 3) == train], image_size)
