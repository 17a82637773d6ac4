"""A workload's model without its weights: cheap to make, and enough to see which layers it has."""

import torch
from torch import nn

from workloads.workload import Workload


def blueprint(workload: Workload) -> nn.Module:
    """The model in evaluation mode on the meta device; with its weights where it cannot be made there."""
    try:
        with torch.device("meta"):
            return workload.model().eval()
    except (RuntimeError, NotImplementedError, TypeError, ValueError):  # weights that are computed, or read from a file
        return workload.model().eval()
