"""A decoder-only language model in the manner of GPT-2 (Radford et al. 2019): one for a CPU, and the 124 M one."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from workloads.data import digits, synthetic
from workloads.workload import Workload


class Block(nn.Module):
    """Pre-norm attention and feed-forward, each with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        """``width`` features split over ``heads`` attention heads."""
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, tokens, width) -> (batch, tokens, width)."""
        batch, tokens, width = x.shape
        qkv = self.qkv(self.attention_norm(x))  # (batch, tokens, 3 * width)
        q, k, v = qkv.view(batch, tokens, 3 * self.heads, -1).transpose(1, 2).chunk(3, dim=1)  # (batch, heads, ...)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, tokens, width))
        fed_forward: Tensor = self.mlp(self.mlp_norm(x))
        return x + fed_forward


class Decoder(nn.Module):
    """Embedding, blocks, and a linear head onto the vocabulary."""

    def __init__(self, sizes: "Transformer") -> None:
        """Learned positions for ``context`` tokens; ``depth`` blocks of ``width`` features."""
        super().__init__()
        width = sizes.width
        self.tokens = nn.Embedding(sizes.vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(sizes.context, width))
        self.blocks = nn.Sequential(*(Block(width, sizes.heads) for _ in range(sizes.depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, sizes.vocabulary, bias=False)
        if sizes.tied:
            nn.init.normal_(self.tokens.weight, std=0.02)  # as in GPT-2: these rows are the head's, too
            self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, tokens) integers -> (batch, tokens, vocabulary) logits."""
        x = self.tokens(tokens) + self.positions[: tokens.shape[1]]
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


@dataclass(frozen=True, kw_only=True)
class Transformer(Workload):
    """Next-token prediction. On ``digits`` an image is its 64 pixels as tokens, followed by its label."""

    name: ClassVar[str] = "transformer"
    sources: ClassVar[tuple[str, ...]] = ("synthetic", "digits")
    batch_size: int = 8
    vocabulary: int = 256
    context: int = 64
    width: int = 128
    depth: int = 4
    heads: int = 4
    tied: bool = False
    """Whether the head's weights are the embedding's."""

    def model(self) -> nn.Module:
        """A new decoder."""
        return Decoder(self)

    def dataset(self, *, train: bool) -> Dataset[Any]:
        """Sequences of ``context`` tokens, each with the same sequence one step ahead as its target."""
        if self.data == "digits":
            sequences = digits.tokens(train=train)
        else:
            sequences = synthetic.tokens(self.vocabulary, self.context + 1, train=train)
        return TensorDataset(sequences[:, :-1], sequences[:, 1:])

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy over all positions."""
        return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())

    def correct(self, outputs: Tensor, targets: Tensor) -> int:
        """How many sequences have their last token (on digits: the label) right."""
        return super().correct(outputs[:, -1], targets[:, -1])


@dataclass(frozen=True, kw_only=True)
class GPT2(Transformer):
    """The size of GPT-2 small: 124 M parameters, 1,024 tokens of a vocabulary padded to a multiple of 128."""

    name: ClassVar[str] = "gpt2"
    sources: ClassVar[tuple[str, ...]] = ("synthetic",)
    vocabulary: int = 50_304
    context: int = 1024
    width: int = 768
    depth: int = 12
    heads: int = 12
    tied: bool = True
