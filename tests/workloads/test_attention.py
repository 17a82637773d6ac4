"""Attention backends: the operator that was asked for is dispatched, and another one is noticed."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from workloads import GPT2, MLP, NotInEffect, ResNet18, Transformer, Unsuitable, ViTB16
from workloads.optimizations import Attention
from workloads.optimizations.attention import _allowed, attends
from workloads.workload import Observation

CPU, GPU = torch.device("cpu"), torch.device("cuda")
TINY = Transformer(batch_size=2, context=8, width=16, depth=1, heads=2)
BACKENDS = ["math", "flash", "memory-efficient", "cudnn"]
OPERATORS = {
    "flash": "aten::_scaled_dot_product_flash_attention",
    "memory-efficient": "aten::_scaled_dot_product_efficient_attention",
    "cudnn": "aten::_scaled_dot_product_cudnn_attention",
    "math": "aten::_softmax",
}
"""What a GPU dispatches."""


def seen(*operators):
    """An observation of these operators."""
    return Observation(
        parts=None,
        outputs=None,
        activation_dtypes=frozenset(),
        channels_last_activations=0,
        operators=frozenset(operators),
        counts={},
        facts={},
    )


@pytest.mark.parametrize("kind", ["train_step", "inference_step"])
@pytest.mark.parametrize(("backend", "said"), [("math", "no fused operator"), ("flash", "flash_attention_for_cpu")])
def test_a_cpu_dispatches_what_was_asked_for(kind, backend, said):
    """The proof names it."""
    step = getattr(TINY, kind)(Attention(backend))
    step.build(CPU)
    assert said in step.proof({})[f"attention-{backend}"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_proof_tells_the_operators_of_a_gpu_apart(backend):
    """Each backend accepts its own and no other."""
    for other, operator in OPERATORS.items():
        with Attention(backend).active():
            if other == backend:
                assert Attention(backend).proof(seen("aten::bmm", operator))
            else:
                with pytest.raises(NotInEffect, match="dispatched"):
                    Attention(backend).proof(seen("aten::bmm", operator))


def test_flags_that_are_off_are_noticed():
    """Outside of the technique's state torch allows several."""
    with pytest.raises(NotInEffect, match="allowed backends are math, flash"):
        Attention("flash").proof(seen(OPERATORS["flash"]))


def test_attention_that_is_not_there_is_noticed():
    """Neither fused nor written out."""
    for backend in BACKENDS:
        with Attention(backend).active(), pytest.raises(NotInEffect, match="dispatched"):
            Attention(backend).proof(seen("aten::addmm"))


@pytest.mark.parametrize("backend", BACKENDS)
def test_only_this_backend_is_allowed(backend):
    """While the step runs; also the evidence of compiled code and inference mode, where nobody sees the operator."""
    before, shortcut = _allowed(), torch.backends.mha.get_fastpath_enabled()
    with Attention(backend).active():
        assert _allowed() == [backend]
        assert not torch.backends.mha.get_fastpath_enabled()
        for hidden in (seen(), seen("aten::scaled_dot_product_attention")):
            assert Attention(backend).proof(hidden) == f"the only backend that is allowed: {backend}"
    assert (_allowed(), torch.backends.mha.get_fastpath_enabled()) == (before, shortcut)


def test_the_shortcut_of_multi_head_attention_is_closed():
    """In inference it would go around all backends."""
    vit = ViTB16(batch_size=1, image_size=16, classes=10)
    step = vit.inference_step(Attention("flash"))
    step.build(CPU)
    assert "flash_attention_for_cpu" in step.proof({})["attention-flash"]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [(TINY, True), (GPT2(batch_size=1), True), (ViTB16(batch_size=1), True), (MLP(), False), (ResNet18(), False)],
    ids=str,
)
def test_which_workloads_attend(workload, expected):
    """Found out without weights."""
    assert attends(workload) is expected


def test_unsuitable_says_why():
    """The device has no such backend, or the workload no attention."""
    assert "a CPU has math and flash" in Attention("cudnn").unsuitable(TINY, CPU)
    assert Attention("cudnn").unsuitable(TINY, GPU) is None
    assert "does not call scaled_dot_product_attention" in Attention("math").unsuitable(MLP(), CPU)
    with pytest.raises(Unsuitable, match="got 'ring'"):
        Attention("ring")


def test_tensors_that_the_backend_cannot_take(monkeypatch):
    """torch's own message lacks the remedy."""
    step = TINY.inference_step(Attention("flash"))
    step.build(CPU)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION), pytest.raises(Unsuitable, match="add amp-bf16 on a GPU"):
        step.run()


def test_other_errors_stay_what_they_are():
    """Only the lack of a kernel is explained."""

    def fail():
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        Attention("flash").wrap(None, fail, None)()


def test_two_backends_exclude_each_other():
    """And math is what the others are held against."""
    assert "choose one" in Attention("flash").clash(Attention("math"))
    assert Attention("cudnn").baseline() == (Attention("math"),)
