"""Attention: what do the fused kernels of scaled_dot_product_attention save against the product written out?"""

import pytest

from workloads import GPT2, Transformer
from workloads.optimizations import AMP, Attention

pytestmark = pytest.mark.benchmark(group="attention")

LONG = Transformer(batch_size=4, context=256)
SMALL_GPT2 = GPT2(batch_size=4)
FUSED = [Attention("flash"), Attention("memory-efficient"), Attention("cudnn")]
MATH = Attention("math")


def test_train_step(measure):
    """One step with flash attention, against math."""
    measure(LONG.train_step(Attention("flash")), against=LONG.train_step(MATH))


def test_inference(measure):
    """Forward with flash attention, against math."""
    measure(LONG.inference_step(Attention("flash")), against=LONG.inference_step(MATH))


@pytest.mark.gpu
@pytest.mark.parametrize("backend", FUSED, ids=str)
def test_train_step_in_half_precision(measure, backend):
    """One step of GPT-2 under AMP with each fused backend, against math."""
    measure(SMALL_GPT2.train_step(AMP(), backend), against=SMALL_GPT2.train_step(AMP(), MATH))


@pytest.mark.gpu
@pytest.mark.parametrize("backend", FUSED, ids=str)
def test_inference_in_half_precision(measure, backend):
    """Forward of GPT-2 under AMP with each fused backend, against math."""
    measure(SMALL_GPT2.inference_step(AMP(), backend), against=SMALL_GPT2.inference_step(AMP(), MATH))
