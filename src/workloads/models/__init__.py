"""The models, one file each, and their catalogue by name."""

from workloads.models.mlp import MLP
from workloads.models.resnet import ResNet18, ResNet18Cifar
from workloads.models.transformer import Transformer
from workloads.workload import Workload

CATALOGUE: dict[str, Workload] = {
    "mlp": MLP(),
    "resnet18-cifar-tv": ResNet18(),
    "resnet18-cifar": ResNet18Cifar(),
    "transformer": Transformer(),
}
"""Default instances by the name used at the command line."""

__all__ = ["CATALOGUE", "MLP", "ResNet18", "ResNet18Cifar", "Transformer"]
