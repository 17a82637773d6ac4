"""What is counted of a step: FLOPs by module, traffic and precision, against values computed by hand."""

import dataclasses

import pytest
import torch
from torch import nn

from workloads import MLP, ResNet18, ResNet18Cifar, Transformer
from workloads.analysis.counting import prepare
from workloads.analysis.modules import size_of
from workloads.analysis.traffic import WorkCounter, precision_of, work_of
from workloads.optimizations import AMP

CPU = torch.device("cpu")
IMAGES, SIDE = 2, 8


@dataclasses.dataclass(frozen=True, kw_only=True)
class Layers(MLP):
    """One convolution and one linear layer on two small images."""

    batch_size: int = IMAGES
    image_size: int = SIDE

    def model(self):
        convolution = nn.Conv2d(3, 4, 3, padding=1)
        return nn.Sequential(convolution, nn.Flatten(), nn.Linear(4 * SIDE * SIDE, 10), nn.Identity())


def prepared(workload, *optimizations):
    """A built and warm training step."""
    step = workload.train_step(*optimizations)
    prepare(step, CPU)
    return step


def test_flops_of_a_convolution_and_a_linear_layer():
    """A multiply-add is two; backward has two products of the same size, the first layer's input needs none."""
    found = size_of(prepared(Layers()))
    convolution = 2 * IMAGES * 4 * SIDE * SIDE * 3 * 3 * 3
    linear = 2 * IMAGES * 4 * SIDE * SIDE * 10
    assert [each.forward_flops for each in found.modules] == [convolution, 0, linear, 0]
    assert [each.train_flops for each in found.modules] == [2 * convolution, 0, 3 * linear, 0]
    assert (found.forward_flops, found.train_flops) == (convolution + linear, 2 * convolution + 3 * linear)


def test_parameters_by_module():
    """Elements and bytes."""
    found = size_of(prepared(Layers()))
    sizes = [3 * 4 * 9 + 4, 0, 4 * SIDE * SIDE * 10 + 10, 0]
    assert [each.parameters for each in found.modules] == sizes
    assert [each.parameter_bytes for each in found.modules] == [4 * each for each in sizes]
    assert found.parameters == sum(sizes)


@pytest.mark.parametrize(
    ("workload", "forward", "train"),
    [
        (ResNet18Cifar(batch_size=1), 1.11e9, 3.33e9),
        (ResNet18(batch_size=1, image_size=224, classes=1000), 3.64e9, 10.7e9),
    ],
    ids=str,
)
def test_flops_of_resnet_18(workload, forward, train):
    """Per image, as published: 1.11 GFLOP with the CIFAR stem, 3.64 at 224x224."""
    step = workload.train_step()
    step.build(CPU)
    found = size_of(step)
    assert found.forward_flops == pytest.approx(forward, rel=0.01)
    assert found.train_flops == pytest.approx(train, rel=0.01)


def test_shared_weights_count_once():
    """The head of a tied model is its embedding; positions are the model's own."""
    sizes = Transformer(batch_size=1, context=4, width=8, heads=2, depth=1, vocabulary=16, tied=True)
    found = size_of(prepared(sizes))
    by_name = {each.name: each.parameters for each in found.modules}
    assert (by_name["tokens"], by_name["head"]) == (16 * 8, 0)
    assert found.parameters - sum(by_name.values()) == 4 * 8


def test_flops_of_the_step_agree_with_torchs_counter():
    """Two ways to the same number."""
    step = prepared(Layers())
    assert work_of(step).total_flops == size_of(step).train_flops


def test_counting_leaves_the_parts_as_they_were():
    """Forward, loss, backward and update are the workload's again."""
    step = prepared(Layers())
    before = vars(step.parts).copy()
    size_of(step)
    assert vars(step.parts) == before


def counted_bytes(work):
    """Bytes that the operators of ``work`` read and write."""
    with WorkCounter() as counter:
        work()
    return counter.traffic_bytes


A, B = torch.ones(10, 20), torch.ones(20, 30)


@pytest.mark.parametrize(
    ("work", "expected"),
    [
        (lambda: A @ B, 4 * (200 + 600 + 300)),
        (A.relu, 4 * (200 + 200)),
        (lambda: A.clone().add_(1), 4 * (200 + 200) + 4 * (200 + 200)),
        (lambda: torch.add(A, 1, out=torch.empty(10, 20)), 4 * (200 + 200)),
        (lambda: A.view(20, 10).t(), 0),
        (lambda: torch.empty(50), 0),
        (lambda: torch.zeros(50), 4 * 50),
        (lambda: torch.ones(1, 20).expand(10, 20).sum(), 4 * 20 + 4 * (20 + 1)),
    ],
    ids=["product", "elementwise", "in place", "into an output", "views", "allocation", "fill", "expanded"],
)
def test_traffic_of_one_operator(work, expected):
    """Inputs are read, new and changed tensors written; a view moves nothing."""
    assert counted_bytes(work) == expected


def test_flops_are_told_apart_by_precision():
    """Autocast puts the products into bfloat16."""
    assert set(work_of(prepared(Layers())).flops) == {"float32"}
    assert work_of(prepared(Layers(), AMP())).main_precision == "bfloat16"


class OnCuda:
    """What is asked of a float32 tensor on a GPU."""

    device, dtype = torch.device("cuda"), torch.float32

    def is_floating_point(self):
        return True


def test_tf32_is_what_cuda_may_use_for_float32():
    """By default for convolutions, and not for products."""
    assert precision_of([OnCuda()], convolution=True) == "tf32"
    assert precision_of([OnCuda()]) == "float32"
    assert precision_of([A]) == "float32"
    assert precision_of([torch.ones(2, dtype=torch.int8)]) == "integer"
