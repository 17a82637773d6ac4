"""A model of Hugging Face as a workload: a small BERT with random weights that classifies sentences.

`pytest examples/huggingface_model.py` measures every technique on it.
"""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from workloads import Workload, comparisons

CONFIG = BertConfig(
    vocab_size=1000, hidden_size=128, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, num_labels=3
)


class Logits(nn.Module):
    """A step works with one tensor in and one out; BERT gives an object."""

    def __init__(self):
        """Random weights: nothing is downloaded."""
        super().__init__()
        self.bert = BertForSequenceClassification(CONFIG)

    def forward(self, tokens):
        """Tokens (batch, length) into logits (batch, labels)."""
        return self.bert(input_ids=tokens).logits


@dataclass(frozen=True, kw_only=True)
class Bert(Workload):
    """Sentences of 32 random tokens."""

    name: ClassVar[str] = "bert-small"
    batch_size: int = 8
    refused: ClassVar = {
        "torchscript-script": "the source of transformers is more than TorchScript can read",
        "train in-place": "the value before its Dropout is needed for the gradient",
        "train attention-flash": "there is no flash attention with dropout on a CPU",
    }

    def model(self):
        """A new one; its weights are drawn after the workload's seed."""
        return Logits()

    def batch(self):
        """Tokens (batch, 32) and classes (batch)."""
        return torch.randint(1000, (self.batch_size, 32)), torch.randint(3, (self.batch_size,))


NET = Bert()


@pytest.mark.benchmark(group="hugging face")
@pytest.mark.parametrize("each", comparisons(NET), ids=str)
def test_technique(measure, each):
    """One technique against its twin."""
    measure(each.step, against=each.against)
