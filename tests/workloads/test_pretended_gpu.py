"""Every eager technique on a GPU that is only pretended: each tensor is where it must be, and steps can be captured.

The same contract as on a real one, see ``tests/gpu/test_contract.py``.
"""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import nn

from tests.workloads.contract import WORKLOADS, ways
from tests.workloads.pretended_gpu import CPU, GPU, Graph, pretended_gpu
from workloads import NotInEffect, Optimization, ResNet18
from workloads.optimizations import CATALOGUE, CudaGraph

KERNELS = ("attention-", "export", "gpu-decode", "semi-structured", "torchscript-")
"""How the names begin of what needs a GPU's own kernels, or a tracer that does not know this one."""
THREADS = ("own-plans",)
"""What goes on in other threads, into which the pretence does not see."""
EAGER = [each for name, each in CATALOGUE.items() if not (each.compiled or name.startswith(KERNELS) or name in THREADS)]
CAPTURED = [each for each in EAGER if "train" in each.kinds and not each.name.endswith(("unstructured", "masks"))]
REFUSING = (
    "device-augmentation",  # below, with stored photos
    "non-blocking",
    "persistent-workers",
    "prefetch",
    "stream-prefetcher",
    "threads",
)
"""What is not for a GPU, or not alone."""
NOT_CAPTURED = ("amp-fp16", "copy", "cuda-graph")
MANY = tuple(f"workers-{count}" for count in (4, 8))  # more than this machine may have cores
PHOTOS = ResNet18(batch_size=8, data="photos", image_size=64)
COUNTED = {"graph_launches": 1}
COPIED = torch.ones(2, 3)

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.*is deprecated")


@pytest.fixture
def device(monkeypatch):
    """The pretended GPU."""
    with pretended_gpu(monkeypatch) as device:
        yield device


def check(found, *, refusing):
    """Refused everywhere, or in effect somewhere."""
    reasons = [each for each in found.values() if isinstance(each, str)]
    assert (len(reasons) == len(found)) == refusing, found


@pytest.mark.parametrize("technique", [each for each in EAGER if str(each) not in MANY], ids=str)
def test_alone(technique, device):
    """Each gives the same result as plain, is in effect, and leaves no state behind, or says why not."""
    kinds = ("train", "inference", "load") if technique.name == "workers" else ("train", "inference", "load", "epoch")
    check(ways((technique,), device, kinds=kinds), refusing=technique.name in REFUSING)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("load", "pin-memory,non-blocking"),
        ("load", "device-augmentation"),
        ("epoch", "pin-memory,stream-prefetcher,device-augmentation,channels-last,amp-bf16"),
    ],
)
def test_what_goes_before_the_step(kind, names, device):
    """Copies that the GPU waits for, and images that arrive as bytes."""
    found = ways([CATALOGUE[name] for name in names.split(",")], device, workloads=(PHOTOS,), kinds=(kind,))
    assert not [reason for reason in found.values() if isinstance(reason, str)]


@pytest.mark.parametrize("technique", CAPTURED, ids=str)
def test_captured(technique, device):
    """A graph of the whole step takes every other technique, or says why not."""
    found = ways((CudaGraph(), technique), device, COUNTED, kinds=("train",))
    check(found, refusing=technique.name in REFUSING or str(technique) in NOT_CAPTURED)


def test_a_graph_is_proven_by_its_launch(device):
    """Random numbers cost two launches that fill the seed in; a step that runs beside its graph costs more."""
    step = WORKLOADS[0].train_step(CudaGraph())
    step.build(device)
    step.run()
    for launches in (1, 3):
        assert step.proof({"graph_launches": 1, "kernel_launches": launches})
    with pytest.raises(NotInEffect, match="3 launches of kernels"):
        step.proof({"graph_launches": 1, "kernel_launches": 4})


class TestPretence:
    """It refuses what a GPU refuses."""

    def test_a_tensor_that_was_left_on_the_host(self, device):
        """In forward, and in what only backward computes."""
        layer = nn.Linear(3, 4).to(device)
        with pytest.raises(RuntimeError, match=r"same device, but aten::addmm was given .*cpu\(2, 3\)"):
            layer(COPIED)
        with pytest.raises(RuntimeError, match="same device, but aten::mul"):
            Leaving.apply(COPIED.to(device).requires_grad_()).sum().backward()
        with pytest.raises(RuntimeError, match="same device, but aten::add_"):
            torch.zeros(()).add_(torch.ones((), device=device))
        with pytest.raises(RuntimeError, match="same device, but aten::index_put_"):
            COPIED.to(device)[torch.tensor([0])] = COPIED[:1]
        assert (COPIED.to(device) * torch.tensor(2.0))[torch.tensor([0])].device == GPU
        assert layer(COPIED.to(device)).device == GPU
        assert layer(COPIED.to(device)).cpu().device == CPU

    def test_numpy(self, device):
        """Of host memory only."""
        with pytest.raises(TypeError, match=r"Use Tensor\.cpu\(\)"):
            COPIED.to(device).numpy()

    @pytest.mark.parametrize(
        "work",
        [
            lambda x: x.sum().item(),
            lambda x: x.cpu(),
            lambda x: x.tolist(),
            lambda x: x[x > 0],
            lambda x: x.add_(COPIED.to(x.device)),
            lambda x: x.copy_(COPIED),
            lambda x: torch.tensor([1.0], device=x.device),
            lambda x: torch.cuda.synchronize(),
        ],
        ids=["item", "cpu", "tolist", "mask", "to", "copy", "tensor", "wait"],
    )
    def test_what_a_capture_cannot_hold(self, device, work):
        """Values for the host, and copies from it."""
        x = COPIED.to(device)
        with pytest.raises(RuntimeError, match="not permitted when stream is capturing"), torch.cuda.graph(Graph()):
            work(x)

    def test_a_graph_computes_when_it_is_replayed(self, device):
        """Not in its capture; on what lies at the same place by then."""
        x, total, graph = COPIED.to(device), torch.zeros(2, 3, device=device), torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            doubled = torch.zeros(2, 3, device=device)
            doubled += x * 2
            total += doubled
        assert total.sum().item() == 0
        graph.replay()
        x.fill_(5)
        graph.replay()
        assert total[0, 0].item() == 2 + 10
        assert doubled[0, 0].item() == 10

    @pytest.mark.parametrize("kind", ["train", "inference"])
    def test_a_technique_that_forgets_its_device(self, device, kind):
        """The kind of fault that only a GPU shows otherwise; on the CPU it does nothing wrong."""
        assert ways((Forgetful(),), CPU, kinds=(kind,))
        with pytest.raises(RuntimeError, match="same device"):
            ways((Forgetful(),), device, kinds=(kind,))


@dataclass(frozen=True)
class Forgetful(Optimization):
    """Adds a tensor that it makes on the host."""

    name: ClassVar[str] = "forgetful"

    def apply(self, parts):
        """Beside what the model gives."""
        forward = parts.forward
        parts.forward = lambda inputs: (outputs := forward(inputs)) + torch.zeros(outputs.shape[-1])

    def proof(self, seen):
        """Always."""
        return "zeros were added"


class Leaving(torch.autograd.Function):
    """Its backward mixes devices."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * COPIED
