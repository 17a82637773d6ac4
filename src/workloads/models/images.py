"""What every image classifier of the suite shares: colour images of one size, ten classes, any image source."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch.utils.data import Dataset

from workloads import data
from workloads.workload import Workload


@dataclass(frozen=True, kw_only=True)
class ImageClassifier(Workload):
    """A classifier of (batch, 3, image_size, image_size) float images into ``classes`` classes."""

    sources: ClassVar[tuple[str, ...]] = data.SOURCES
    image_size: int = 32
    classes: int = 10

    def dataset(self, *, train: bool) -> Dataset[Any]:
        """Images of this workload's source, each (3, image_size, image_size) with its class."""
        return data.load(self.data, train=train, image_size=self.image_size)
