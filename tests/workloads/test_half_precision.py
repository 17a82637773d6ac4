"""Pure half precision: everything is converted, and the proof notices what is not."""

import pytest
import torch

from workloads import MLP, NotInEffect, Transformer, Unsuitable
from workloads.optimizations import AMP, PureHalf

CPU = torch.device("cpu")
TINY = MLP(batch_size=4, width=8, image_size=4)


def built(workload, *stack):
    """An inference step on the CPU."""
    step = workload.inference_step(*stack)
    step.build(CPU)
    return step


def test_weights_and_inputs_are_converted():
    """All of them."""
    parts = built(TINY, PureHalf()).parts
    assert {each.dtype for each in [parts.inputs, *parts.model.parameters()]} == {torch.bfloat16}


def test_tokens_stay_integers():
    """They are indices."""
    small = Transformer(batch_size=2, context=8, width=16, depth=1)
    step = built(small, PureHalf())
    assert step.parts.inputs.dtype == torch.int64
    assert step.proof({}) == {"half-bf16": "layers produced torch.bfloat16 only"}


def test_a_layer_left_in_float32_is_noticed():
    """One is enough."""
    step = built(TINY, PureHalf())
    layer = step.parts.model[-1].float()
    layer.register_forward_pre_hook(lambda module, args: (args[0].float(),))
    with pytest.raises(NotInEffect, match="activations only, saw"):
        step.proof({})


def test_a_parameter_left_in_float32_is_noticed():
    """Even where its layer's outputs are converted."""
    step = built(TINY, PureHalf())
    step.parts.model.register_parameter("forgotten", torch.nn.Parameter(torch.zeros(1)))
    with pytest.raises(NotInEffect, match=r"1 parameters are not .* forgotten among them"):
        step.proof({})


def test_where_it_cannot_be_used():
    """float16 on a CPU, in training, with autocast, in another type."""
    assert "use half-bf16" in PureHalf("float16").unsuitable(TINY, CPU)
    assert "not for train" in TINY.train_step(PureHalf()).unsuitable(CPU)
    assert "leaves nothing in float32" in TINY.inference_step(PureHalf(), AMP()).unsuitable(CPU)
    with pytest.raises(Unsuitable, match="got 'float8'"):
        PureHalf("float8")
