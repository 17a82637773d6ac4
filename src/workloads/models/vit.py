"""ViT-B/16 (Dosovitskiy et al. 2020, arXiv:2010.11929), torchvision's."""

from dataclasses import dataclass
from typing import ClassVar

import torchvision
from torch import nn

from workloads.models.images import ImageClassifier


@dataclass(frozen=True, kw_only=True)
class ViTB16(ImageClassifier):
    """Vision transformer: 86.6 M parameters, 35.1 GFLOP per image forward, 105.2 in training."""

    name: ClassVar[str] = "vit-b16"
    batch_size: int = 64
    image_size: int = 224
    classes: int = 1000

    def model(self) -> nn.Module:
        """Patches of 16x16 pixels, 12 blocks of width 768."""
        model: nn.Module = torchvision.models.vit_b_16(image_size=self.image_size, num_classes=self.classes)
        # torchvision's head of zeros gives zeros, which compare with nothing
        nn.init.normal_(model.get_parameter("heads.head.weight"), std=0.02)
        return model
