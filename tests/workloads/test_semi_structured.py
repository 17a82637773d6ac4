"""2:4 sparsity: the arithmetic of the mask, which layers fit, and the proof, with a stand-in for torch's compressed tensor."""

import pytest
import torch
from torch import nn

from workloads import MLP, NotInEffect, Transformer, Unsuitable
from workloads.optimizations import AMP, Export, GradMode, PureHalf, SemiStructured, semi_structured
from workloads.optimizations.semi_structured import CompressedLinear, fits, two_of_four

CPU, GPU = torch.device("cpu"), torch.device("cuda")
SMALL = MLP(batch_size=4, width=64, image_size=8)


class Compressed:
    """As torch's compressed tensor, for a CPU: the weights stay dense inside."""

    def __init__(self, weight):
        self.packed = weight

    def to_dense(self):
        return self.packed


@pytest.fixture
def on_a_cpu(monkeypatch):
    """Compression and the product with it without a GPU; everything else as it is."""
    monkeypatch.setattr(semi_structured, "to_sparse_semi_structured", Compressed)
    monkeypatch.setattr(semi_structured, "SparseSemiStructuredTensor", Compressed)
    monkeypatch.setattr(SemiStructured, "unsuitable", lambda self, workload, device: None)
    monkeypatch.setattr(
        CompressedLinear,
        "forward",
        lambda self, inputs: nn.functional.linear(inputs, self.compressed.packed, self.bias),
    )


def built(*stack):
    """An inference step of the small MLP."""
    step = SMALL.inference_step(*stack)
    step.build(CPU)
    return step


def test_mask_keeps_the_larger_two_of_every_four():
    """By magnitude, row by row, exactly two even among equals."""
    weight = torch.tensor([[1.0, -3.0, 2.0, 0.5, 4.0, 4.0, 4.0, 4.0], [0.0, 0.0, 0.0, -1.0, 9.0, 8.0, 7.0, 6.0]])
    mask = two_of_four(weight)
    assert mask[0, :4].tolist() == [0, 1, 1, 0]
    assert mask[1, 4:].tolist() == [1, 1, 0, 0]
    assert mask.unflatten(-1, (-1, 4)).sum(dim=-1).eq(2).all()
    assert two_of_four(weight.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Linear(64, 32), True),
        (nn.Linear(32, 32), False),
        (nn.Linear(64, 10), False),
        (nn.Conv2d(64, 32, 1), False),
        (nn.modules.linear.NonDynamicallyQuantizableLinear(64, 32), False),
    ],
    ids=str,
)
def test_layers_that_fit(layer, expected):
    """Plain Linear layers whose sizes are multiples of what the kernels take."""
    assert fits(layer) is expected


def test_the_twin_has_the_same_zeros(on_a_cpu):
    """Pruned by the mask, and dense."""
    step, plain = built(PureHalf(), SemiStructured()), built(PureHalf())
    ours = step.outcome().tensors["outputs"]
    theirs = plain.reference_outcome(step).tensors["outputs"]
    torch.testing.assert_close(ours, theirs)
    assert not torch.equal(ours, plain.outcome().tensors["outputs"])
    assert step.proof({})["semi-structured"] == "2 Linear layers hold Compressed, two of four weights zero"


def test_compressed_tensors_are_counted_as_memory(on_a_cpu):
    """They are buffers, and the dense weights are gone."""
    step = built(PureHalf(), SemiStructured())
    names = dict(step.parts.model.named_buffers())
    assert set(names) == {"1.packed", "3.packed"}
    assert [name for name, _ in step.parts.model.named_parameters()] == ["1.bias", "3.bias", "5.weight", "5.bias"]


def test_a_tied_embedding_stays_dense(on_a_cpu):
    """Only the layer's own weights are pruned in the twin."""
    tied = Transformer(batch_size=2, context=8, width=64, depth=1, heads=2, tied=True)
    parts = tied.parts(CPU, training=False)
    before = parts.model.tokens.weight.clone()
    SemiStructured().reference(parts)
    assert torch.equal(parts.model.tokens.weight, before)
    assert int((parts.model.head.weight == 0).sum()) == parts.model.head.weight.numel() // 2


def test_weights_in_float32_are_refused(on_a_cpu):
    """torch compresses 16 bits."""
    with pytest.raises(Unsuitable, match="add half-bf16 to the stack"):
        built(SemiStructured())


def test_proof_notices_what_is_not_sparse(on_a_cpu):
    """A layer that is dense, weights with a third value of four, another kind of tensor."""
    technique = (PureHalf(), SemiStructured())
    step = built(*technique)
    step.parts.model[1].compressed.packed.fill_(1)
    with pytest.raises(NotInEffect, match="more than two of four"):
        step.proof({})
    step = built(*technique)
    step.parts.model[1].forward = nn.Identity()
    step.parts.model[1].compressed = torch.zeros(64, 192)
    with pytest.raises(NotInEffect, match="the weights are Tensor"):
        SemiStructured().proof(type("Seen", (), {"parts": step.parts}))
    plain = built(PureHalf())
    with pytest.raises(NotInEffect, match="no Linear has compressed weights"):
        SemiStructured().proof(type("Seen", (), {"parts": plain.parts}))


def test_unsuitable_says_why(monkeypatch):
    """No GPU, an old one, or no layer that fits."""
    technique = SemiStructured()
    assert "needs a CUDA GPU" in technique.unsuitable(SMALL, CPU)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 0))
    assert "this GPU has 7.0" in technique.unsuitable(SMALL, GPU)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    assert technique.unsuitable(SMALL, GPU) is None
    assert "multiples of 32 (out) and 64 (in)" in technique.unsuitable(MLP(width=8, image_size=4), GPU)


def test_stacks():
    """What compressed weights cannot go through."""
    technique = SemiStructured()
    assert "stack it with half-bf16" in technique.clash(AMP())
    assert "cannot save compressed weights" in technique.clash(Export())
    assert "no gradients" in technique.clash(GradMode("grad"))
    assert technique.clash(PureHalf()) is None
