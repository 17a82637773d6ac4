"""FLOPs of operators that torch runs in inference in place of those it has formulas for.

``FlopCounterMode`` gives them nothing: torchvision's ViT-B/16 in inference was 22.5 GFLOP per image for 35.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import flop_registry, register_flop_formula, sdpa_backward_flop, sdpa_flop

FIRST_LINEAR_WEIGHT = (
    13  # of aten::_transformer_encoder_layer_fwd's arguments after the source; a test fails if it moves
)


class AttentionLayer:
    """``nn.MultiheadAttention`` as one operator: projections to q, k, v and back, and the two products between."""

    _get_raw = True  # torch's mark of a formula that takes tensors and not their shapes, which nested tensors lack

    def __call__(self, query: Tensor, *_: Any, **__: Any) -> int:
        """Of (batch, tokens, width); 0 for nested tensors, whose sizes are not told."""
        if query.is_nested:
            return 0
        batch, tokens, width = query.shape
        return 2 * batch * tokens * width * 4 * width + 2 * 2 * batch * tokens * tokens * width


class EncoderLayer:
    """``nn.TransformerEncoderLayer`` as one operator: its attention and its two linear layers."""

    _get_raw = True

    def __call__(self, source: Tensor, *arguments: Any, **_: Any) -> int:
        """Of (batch, tokens, width); 0 for nested tensors."""
        if source.is_nested:
            return 0
        linear = 2 * source.numel() * int(arguments[FIRST_LINEAR_WEIGHT].shape[0])
        return AttentionLayer()(source) + 2 * linear


FUSED: Mapping[Any, Any] = {
    torch.ops.aten._native_multi_head_attention: AttentionLayer(),  # noqa: SLF001 - an operator's name
    torch.ops.aten._transformer_encoder_layer_fwd: EncoderLayer(),  # noqa: SLF001
}
"""Formulas by operator, as ``FlopCounterMode(custom_mapping=...)`` takes them."""

_ATTENTION_ON_A_CPU = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu  # noqa: SLF001
_ITS_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward  # noqa: SLF001
if _ATTENTION_ON_A_CPU not in flop_registry:  # torch 2.11
    register_flop_formula(_ATTENTION_ON_A_CPU, get_raw=True)(sdpa_flop)
    register_flop_formula(_ITS_BACKWARD, get_raw=True)(sdpa_backward_flop)
