"""On a real GPU: the contract of every technique that needs one, alone and in pairs.

Not run by ``make test``: ``tox run -e gpu`` does, on a machine that has one.
"""

import pytest
import torch

from tests.workloads.contract import WORKLOADS, ways
from workloads import ResNet18
from workloads.optimizations import CATALOGUE, CudaGraph

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore:.torch.jit.*is deprecated")]

EAGER = [each for each in CATALOGUE.values() if not each.compiled]
COMPILED = [each for each in CATALOGUE.values() if each.compiled]
PHOTOS = ResNet18(batch_size=8, data="photos", image_size=64)
SUBJECTS = (*WORKLOADS, PHOTOS)
COUNTED = {"compiled_graphs": 1, "graph_launches": 1}
"""What only whoever measures can count."""


@pytest.fixture
def device():
    """The current GPU."""
    return torch.device("cuda", torch.cuda.current_device())


@pytest.mark.parametrize("technique", EAGER, ids=str)
def test_alone(technique, device):
    """Each gives the same result as plain, is in effect, and leaves no state behind, or says why not."""
    assert ways((technique,), device, workloads=SUBJECTS)


@pytest.mark.parametrize("first", range(len(EAGER)), ids=lambda index: str(EAGER[index]))
def test_pairs(first, device):
    """So does every pair."""
    for second in EAGER[first + 1 :]:
        ways((EAGER[first], second), device)


@pytest.mark.parametrize("technique", EAGER, ids=str)
def test_captured_pairs(technique, device):
    """A graph of the whole step takes every other technique, or says why not."""
    ways((CudaGraph(), technique), device, COUNTED)


@pytest.mark.compile
@pytest.mark.parametrize("technique", COMPILED, ids=str)
def test_compiled_alone(technique, device):
    """Compiled code, too."""
    assert ways((technique,), device, COUNTED, workloads=WORKLOADS[:1], kinds=("train", "inference"))
