"""Three Linear layers: the smallest workload in which matrix products dominate."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from workloads.models.images import ImageClassifier


@dataclass(frozen=True, kw_only=True)
class MLP(ImageClassifier):
    """Flattened image -> width -> width -> classes, with ReLU between."""

    name: ClassVar[str] = "mlp"
    batch_size: int = 128
    width: int = 512

    def model(self) -> nn.Module:
        """Linear(3 * image_size^2, width), Linear(width, width), Linear(width, classes)."""
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(3 * self.image_size**2, self.width),
            nn.ReLU(),
            nn.Linear(self.width, self.width),
            nn.ReLU(),
            nn.Linear(self.width, self.classes),
        )
