"""Activations in place: switches are set, the operators follow, and one that does not is noticed."""

import pytest
import torch

from workloads import MLP, NotInEffect, Transformer
from workloads.optimizations import InPlace, OutOfPlace

CPU = torch.device("cpu")
TINY = MLP(batch_size=4, width=8, image_size=4)


@pytest.mark.parametrize(
    ("technique", "operator", "other"), [(InPlace(), "relu_", "relu"), (OutOfPlace(), "relu", "relu_")]
)
@pytest.mark.parametrize("kind", ["train_step", "inference_step"])
def test_operators_follow_the_switch(technique, operator, other, kind):
    """In training and in inference."""
    from workloads.observation import OperatorNames

    step = getattr(TINY, kind)(technique)
    step.build(CPU)
    with OperatorNames() as seen:
        step.run()
    assert f"aten::{operator}" in seen.names
    assert f"aten::{other}" not in seen.names


@pytest.mark.parametrize("technique", [InPlace(), OutOfPlace()], ids=str)
def test_a_switch_the_other_way_is_noticed(technique):
    """One module is enough."""
    step = TINY.inference_step(technique)
    step.build(CPU)
    step.parts.model[2].inplace = not technique.in_place
    with pytest.raises(NotInEffect, match="1 of 2 modules have the other setting"):
        step.proof({})


def test_a_switch_without_effect_is_noticed():
    """The operators are what counts."""
    step = TINY.inference_step(InPlace())
    step.build(CPU)
    for index in (2, 4):
        step.parts.model[index].forward = torch.relu
    with pytest.raises(NotInEffect, match="aten::relu_ was not dispatched"):
        step.proof({})


def test_one_saves_what_the_other_allocates():
    """One buffer per activation of a pass in which nothing else is different."""
    wide = MLP(batch_size=64, width=256, image_size=4)

    def allocated(technique):
        step = wide.inference_step(technique)
        step.build(CPU)
        with torch.profiler.profile(profile_memory=True) as profile:
            step.run()
        return sum(max(0, each.self_cpu_memory_usage) for each in profile.key_averages())

    assert allocated(OutOfPlace()) - allocated(InPlace()) == 2 * 64 * 256 * 4


def test_needs_a_module_with_the_switch():
    """A transformer of GELUs has none; both settings decide one thing."""
    assert "no module with an inplace switch" in InPlace().unsuitable(Transformer(), CPU)
    assert "choose one" in InPlace().clash(OutOfPlace())
    assert InPlace().baseline() == (OutOfPlace(),)
