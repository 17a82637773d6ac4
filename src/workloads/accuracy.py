"""The accuracy step: a model that was really trained, with a technique applied, on its test set."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from workloads.steps import Figure, InferenceStep
from workloads.steps.step import copied
from workloads.training import Epoch, fit, prepare
from workloads.workload import Optimization, Parts, Workload

TRAINED_EPOCHS, TRAINED_RATE = 3, 0.05  # enough for 94 % of the digits at 16x16 with ResNet-18
TUNED_EPOCHS, TUNED_RATE = 1, 0.01  # a third of the training at a fifth of its rate


class AccuracyStep(InferenceStep):
    """One forward pass over the whole test set, with the accuracy before, after, and after fine-tuning."""

    kind = "accuracy"

    @property
    def samples(self) -> int:
        """All test samples."""
        return len(self.workload.samples(train=False))  # type: ignore[arg-type]

    def plain_parts(self, device: torch.device) -> Parts:
        """The trained model and the test set."""
        parts = self.workload.parts(device, training=False)
        parts.model.load_state_dict(trained(self.workload, str(device)))
        inputs, targets = _test_set(self.workload)
        parts.inputs, parts.targets = inputs.to(device), targets.to(device)
        return parts

    def figures(self) -> Iterable[Figure]:
        """Accuracies as shares of the test samples."""
        device = self.parts.device
        yield _share("accuracy_before", self._accuracy(self.plain_parts(device)))
        yield _share("accuracy_after", self._accuracy(self.parts))
        if self.optimizations:
            tuned = tune(self.workload, self.optimizations, device)
            yield Figure(name="accuracy_finetuned", unit="1", values=(tuned,), better="higher")

    @torch.no_grad()
    def _accuracy(self, parts: Parts) -> float:
        return self.workload.correct(parts.forward(parts.inputs), parts.targets) / len(parts.targets)


def _share(name: str, value: float) -> Figure:
    return Figure(name=name, unit="1", values=(value,))


@functools.cache
def trained(workload: Workload, device: str) -> Mapping[str, Tensor]:
    """The weights after a short training in float32, the same for all who ask in this process."""
    parts = prepare(workload, (), device=torch.device(device))
    _fitted(workload, parts, TRAINED_EPOCHS, TRAINED_RATE)
    return copied(parts.model)


def tune(workload: Workload, optimizations: tuple[Optimization, ...], device: torch.device) -> float:
    """Accuracy after the technique was applied to the trained model and the rest was trained again for a while."""
    parts = prepare(workload, optimizations, device=device, weights=trained(workload, str(device)))
    return _fitted(workload, parts, TUNED_EPOCHS, TUNED_RATE).accuracy


def _fitted(workload: Workload, parts: Parts, epochs: int, learning_rate: float) -> Epoch:
    """Train ``parts`` in place; the last epoch."""
    return list(fit(workload, parts, epochs=epochs, learning_rate=learning_rate, progress=_quietly))[-1]


def _quietly(items: Iterable[Any], *_: object) -> Iterable[Any]:
    """Progress that nobody watches."""
    return items


def _test_set(workload: Workload) -> tuple[Tensor, Tensor]:
    """All test samples, stacked."""
    samples = workload.samples(train=False)
    inputs, targets = next(iter(DataLoader(samples, batch_size=len(samples))))  # type: ignore[arg-type]
    return inputs, targets
