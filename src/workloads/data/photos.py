"""Real JPEG files to decode: crops of the two photographs that scikit-learn ships, made at first use."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import Tensor
from torch.utils.data import Dataset
from torchvision.transforms import v2

from workloads.data.folder import data_folder

COUNT = 256
SIDE = 384  # pixels of a crop: about what a photograph of ImageNet has, so that decoding costs what it does there
QUALITY = 90
VERSION = f"photos-{COUNT}x{SIDE}-q{QUALITY}"  # a changed recipe is another folder


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
    originals = [torch.from_numpy(image.copy()).permute(2, 0, 1) for image in load_sample_images().images]
    for index in range(COUNT):
        photo = originals[index % len(originals)]
        top = int(torch.randint(photo.shape[1] - SIDE, (1,), generator=generator))
        left = int(torch.randint(photo.shape[2] - SIDE, (1,), generator=generator))
        crop = photo[:, top : top + SIDE, left : left + SIDE].contiguous()
        torchvision.io.write_jpeg(crop, str(target / f"{index:04d}-{index % len(originals)}.jpg"), quality=QUALITY)


class Photos(Dataset[Any]):
    """Decodes a JPEG, resizes, flips (by index, so that every pass is the same) and normalises it."""

    def __init__(self, files: list[Path], image_size: int) -> None:
        """``files`` named ``<index>-<class>.jpg``."""
        self.files = files
        self._transform = v2.Compose(
            [
                v2.Resize((image_size, image_size), antialias=True),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize((0.5, 0.5, 0.5), (0.25, 0.25, 0.25)),
            ]
        )

    def __len__(self) -> int:
        """The number of files."""
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """(3, image_size, image_size) float32 and the class."""
        file = self.files[index]
        image = self._transform(torchvision.io.decode_image(str(file)))
        return image.flip(-1) if index % 2 else image, torch.tensor(int(file.stem.split("-")[1]))


@functools.cache
def images(*, train: bool, image_size: int) -> Dataset[Any]:
    """Three quarters of the files for training, the rest for testing."""
    files = sorted(folder().glob("*.jpg"))
    return Photos([file for number, file in enumerate(files) if (number // 2 % 4 != 3) == train], image_size)
