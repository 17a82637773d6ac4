"""JPEG decoding on the GPU: the loader reads files, and nvJPEG decodes a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torchvision
from torch import Tensor
from torch.utils.data import default_collate

from workloads.data.stored import Encoded, EncodedImages
from workloads.optimizations.dataloading import KINDS
from workloads.optimizations.device_augmentation import PREPARATION, came_as_bytes, not_stored, take_over
from workloads.workload import NotInEffect, Observation, Optimization, Parts, Tolerance, Unsuitable, Workload


@dataclass(frozen=True)
class GpuDecode(Optimization):
    """``torchvision.io.decode_jpeg(..., device="cuda")``; resized, normalised and flipped there, too.

    torchvision has deprecated its decoders from 0.29 on in favour of TorchCodec's, and still ships them.
    """

    name: ClassVar[str] = "gpu-decode"
    order: ClassVar[int] = 8
    slot: ClassVar[str] = PREPARATION
    keeps_samples: ClassVar[bool] = False
    # JPEG leaves a decoder's rounding and the interpolation of its colours open; one level of 255 in all pixels is
    # 1.6 % of a deviation of a quarter
    tolerance: ClassVar[Tolerance] = Tolerance(norm_ratio=0.05, cosine=0.98, relative_error=0.05)
    source: ClassVar[str] = "https://docs.pytorch.org/vision/stable/generated/torchvision.io.decode_jpeg.html"
    kinds: ClassVar[frozenset[str]] = KINDS

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Needs nvJPEG and JPEG files."""
        if device.type != "cuda":
            return "nvJPEG decodes on a CUDA GPU: use device-augmentation on a CPU"
        return not_stored(self, workload, EncodedImages, "JPEG files: use data photos")

    def apply(self, parts: Parts) -> None:
        """Let the loader stop at the files, and the GPU go on from there.

        Raises:
            Unsuitable: where torchvision was built without nvJPEG, or it does not start.
        """
        images = take_over(self, parts, EncodedImages, Encoded)
        _try(images, parts.device)
        parts.loader_arguments["collate_fn"] = joined

        def arrive(parts: Parts, loaded: Any) -> Tensor:
            content, lengths, indices = loaded
            if parts.device.type == "cuda":
                torch.cuda.current_stream(parts.device).synchronize()  # nvJPEG's own stream waits for nobody's memory
            decoded = _decode(list(content.split(lengths.tolist())), parts.device)
            parts.notes[self.name] = decoded[0].device.type
            return images.finished(images.resized(decoded), indices.to(parts.device, non_blocking=parts.non_blocking))

        parts.arrive = arrive

    def proof(self, seen: Observation) -> str:
        """The loader gave bytes only, and the decoder left its images on the device."""
        where = seen.parts.notes.get(self.name)
        if where != seen.parts.device.type:
            raise NotInEffect(f"images were decoded on {where}")
        return f"{came_as_bytes(seen)}, decoded on {where}"


def joined(samples: Sequence[Any]) -> list[Any]:
    """Collates files of unequal length: their bytes in one tensor, their lengths and indices, and the rest as usual."""
    inputs, *rest = zip(*samples, strict=True)
    contents, indices = zip(*inputs, strict=True)
    lengths = torch.tensor([len(each) for each in contents])
    return [(torch.cat(contents), lengths, torch.tensor(indices)), *(default_collate(list(each)) for each in rest)]


def _decode(files: list[Tensor], device: torch.device) -> list[Tensor]:
    """Each (3, height, width) uint8 on ``device``; the files are in host memory."""
    mode = torchvision.io.ImageReadMode.RGB
    images: list[Tensor] = torchvision.io.decode_jpeg(files, mode=mode, device=device)  # type: ignore[assignment]
    return images


def _try(images: EncodedImages, device: torch.device) -> None:
    try:
        _decode([images.encoded(0)[0]], device)
    except RuntimeError as error:
        if "nvjpeg" not in str(error).lower():
            raise
        raise Unsuitable(f"nvJPEG cannot be used here: use device-augmentation ({error})") from error
