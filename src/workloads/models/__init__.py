"""The models, one file each, and their catalogue by name."""

from workloads.models.mlp import MLP
from workloads.models.resnet import ResNet18, ResNet18Cifar, ResNet50
from workloads.models.transformer import GPT2, Transformer
from workloads.models.vit import ViTB16
from workloads.workload import Workload

CATALOGUE: dict[str, Workload] = {
    each.name: each for each in (MLP(), ResNet18(), ResNet18Cifar(), ResNet50(), ViTB16(), Transformer(), GPT2())
}
"""Default instances by the name used at the command line."""

__all__ = ["CATALOGUE", "GPT2", "MLP", "ResNet18", "ResNet18Cifar", "ResNet50", "Transformer", "ViTB16"]
