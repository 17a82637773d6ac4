"""ResNets (He et al. 2015, arXiv:1512.03385): the 18 on 32x32 images, as it is and with the CIFAR stem, and the 50."""

from dataclasses import dataclass
from typing import ClassVar

import torchvision
from torch import nn
from torchvision.models.resnet import Bottleneck

from workloads.models.images import ImageClassifier

BRANCH_SCALE = 0.1
"""Of the last batch norm of each branch of ResNet-50. Torchvision starts it at 1, and in training mode rounding to
bfloat16 then turns the first gradients away (cosine 0.14, batch of 16): nothing could be compared. Goyal et al. 2017
(arXiv:1706.02677) start it at 0, where the branches' convolutions get no gradient at all. Operators stay the same."""


@dataclass(frozen=True, kw_only=True)
class ResNet18(ImageClassifier):
    """torchvision's ResNet-18 with ten classes: the classic baseline, at batch 32 in float32."""

    name: ClassVar[str] = "resnet18-cifar-tv"

    def model(self) -> nn.Module:
        """7x7 stride-2 stem and max-pool, as published for ImageNet."""
        model: nn.Module = torchvision.models.resnet18(num_classes=self.classes)
        return model


@dataclass(frozen=True, kw_only=True)
class ResNet18Cifar(ResNet18):
    """ResNet-18 that keeps the resolution: 11.17 M parameters, 1.11 GFLOP per image forward, 3.33 in training."""

    name: ClassVar[str] = "resnet18-cifar"

    def model(self) -> nn.Module:
        """3x3 stride-1 stem without max-pool, as usual for CIFAR-10."""
        model = super().model()
        model.conv1 = nn.Conv2d(3, 64, kernel_size=3, stride=1, padding=1, bias=False)
        model.maxpool = nn.Identity()
        return model


@dataclass(frozen=True, kw_only=True)
class ResNet50(ImageClassifier):
    """torchvision's ResNet-50 on ImageNet's size: 25.6 M parameters, 8.18 GFLOP per image forward, 24.3 in training.

    Each branch starts small, see :data:`BRANCH_SCALE`.
    """

    name: ClassVar[str] = "resnet50"
    batch_size: int = 64
    image_size: int = 224
    classes: int = 1000

    def model(self) -> nn.Module:
        """With bottleneck blocks, as published but for the start of its branches."""
        model: nn.Module = torchvision.models.resnet50(num_classes=self.classes)
        for module in model.modules():
            if isinstance(module, Bottleneck):
                nn.init.constant_(module.bn3.weight, BRANCH_SCALE)
        return model
