"""Grad mode: each mode is seen in the outputs, and a mode that is not in effect is noticed."""

import pytest
import torch

from workloads import MLP, NotInEffect, Unsuitable
from workloads.optimizations import GradMode

CPU = torch.device("cpu")
TINY = MLP(batch_size=4, width=8, image_size=4)
MODES = ["grad", "no-grad", "inference"]


@pytest.mark.parametrize("mode", MODES)
def test_outputs_are_made_in_the_mode(mode):
    """By torch's own account; the outcome can be compared in each."""
    step = TINY.inference_step(GradMode(mode))
    step.build(CPU)
    step.run()
    last = step.last_value()
    assert (last.requires_grad, last.is_inference()) == (mode == "grad", mode == "inference")
    assert not step.outcome().tensors["outputs"].requires_grad


@pytest.mark.parametrize("mode", MODES)
def test_another_mode_is_noticed(mode):
    """Whichever it is."""
    step = TINY.inference_step(GradMode(mode))
    step.build(CPU)
    step.parts.grad_mode = torch.no_grad if mode != "no-grad" else torch.inference_mode
    with pytest.raises(NotInEffect, match="outputs were made in mode"):
        step.proof({})


def test_the_plain_step_records_nothing():
    """So a recorded pass is a twin, and no_grad is what inference mode is held against."""
    plain = TINY.inference_step()
    plain.build(CPU)
    plain.run()
    assert not plain.last_value().requires_grad
    assert GradMode("inference").baseline() == (GradMode("no-grad"),)
    assert GradMode("no-grad").baseline() == GradMode("grad").baseline() == (GradMode("grad"),)


def test_other_modes_are_refused():
    """By name."""
    with pytest.raises(Unsuitable, match="got 'train'"):
        GradMode("train")
