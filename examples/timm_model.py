"""A model of timm as a workload: MobileNetV3-Small with random weights, on 64x64 images.

`pytest examples/timm_model.py` measures every technique on it.
"""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import timm
import torch

from workloads import Workload, comparisons


@dataclass(frozen=True, kw_only=True)
class MobileNet(Workload):
    """Images of noise into ten classes."""

    name: ClassVar[str] = "mobilenetv3-small"
    batch_size: int = 8
    refused: ClassVar = {"train compile-lite": "its hardswish gets another memory order in the backward pass"}

    def model(self):
        """A new one; its weights are drawn after the workload's seed."""
        return timm.create_model("mobilenetv3_small_050", pretrained=False, num_classes=10)

    def batch(self):
        """Images (batch, 3, 64, 64) and classes (batch)."""
        return torch.randn(self.batch_size, 3, 64, 64), torch.randint(10, (self.batch_size,))


NET = MobileNet()


@pytest.mark.benchmark(group="timm")
@pytest.mark.parametrize("each", comparisons(NET), ids=str)
def test_technique(measure, each):
    """One technique against its twin."""
    measure(each.step, against=each.against)
