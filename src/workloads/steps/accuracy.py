"""The accuracy step: a model that was really trained, with a technique applied, on its test set."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader

from workloads.steps.inference import InferenceStep
from workloads.steps.step import Figure, applied, copied
from workloads.workload import Parts, Workload

if TYPE_CHECKING:
    from workloads.workload import Optimization

TRAINED_EPOCHS, TRAINED_RATE = 4, 0.05  # enough for 97 % of the digits with ResNet-18
TUNED_EPOCHS, TUNED_RATE = 1, 0.01  # a quarter of the training at a fifth of its rate


class AccuracyStep(InferenceStep):
    """One forward pass over the whole test set, with the accuracy before, after, and after fine-tuning."""

    kind = "accuracy"

    @property
    def samples(self) -> int:
        """All test samples."""
        return len(self.workload.dataset(train=False))  # type: ignore[arg-type]

    def plain_parts(self, device: torch.device) -> Parts:
        """The trained model and the test set."""
        parts = self.workload.parts(device, training=False)
        parts.model.load_state_dict(trained(self.workload, str(device)))
        inputs, targets = _test_set(self.workload)
        parts.inputs, parts.targets = inputs.to(device), targets.to(device)
        return parts

    def figures(self) -> Iterable[Figure]:
        """Accuracies as shares of the test samples."""
        before = _accuracy(self.workload, self.plain_parts(self.parts.device))
        yield Figure(name="accuracy_before", unit="1", values=(before,))
        yield Figure(name="accuracy_after", unit="1", values=(_accuracy(self.workload, self.parts),))
        if self.optimizations:
            tuned = _tuned(self.workload, self.optimizations, self.parts.device)
            yield Figure(name="accuracy_finetuned", unit="1", values=(tuned,), better="higher")


@functools.cache
def trained(workload: Workload, device: str) -> Mapping[str, Tensor]:
    """The weights after a short training in float32, the same for all who ask in this process."""
    parts = workload.parts(torch.device(device), training=True)
    fit(workload, parts, epochs=TRAINED_EPOCHS, learning_rate=TRAINED_RATE)
    return copied(parts.model)


def fit(workload: Workload, parts: Parts, *, epochs: int, learning_rate: float) -> None:
    """Train ``parts`` in place with SGD, momentum and a one-cycle schedule, the samples in a seeded order."""
    loader = DataLoader(
        workload.dataset(train=True),
        batch_size=workload.batch_size,
        shuffle=True,
        drop_last=True,
        generator=torch.Generator().manual_seed(workload.seed),
    )
    optimizer = torch.optim.SGD(parts.model.parameters(), lr=learning_rate, momentum=0.9)
    schedule = OneCycleLR(optimizer, max_lr=learning_rate, total_steps=epochs * len(loader))
    for _ in range(epochs):
        for inputs, targets in loader:
            parts.inputs, parts.targets = inputs.to(parts.device), targets.to(parts.device)
            optimizer.zero_grad(set_to_none=True)
            parts.gradients(parts)
            optimizer.step()
            schedule.step()


def _tuned(workload: Workload, optimizations: tuple[Optimization, ...], device: torch.device) -> float:
    """Accuracy after the technique was applied to the trained model and the rest was trained again for a while."""
    parts = workload.parts(device, training=True)
    parts.model.load_state_dict(trained(workload, str(device)))
    for each in optimizations:
        applied(each, parts)
    fit(workload, parts, epochs=TUNED_EPOCHS, learning_rate=TUNED_RATE)
    parts.model.eval()
    inputs, targets = _test_set(workload)
    parts.inputs, parts.targets = inputs.to(device), targets.to(device)
    return _accuracy(workload, parts)


@torch.no_grad()
def _accuracy(workload: Workload, parts: Parts) -> float:
    return workload.correct(parts.forward(parts.inputs), parts.targets) / len(parts.targets)


def _test_set(workload: Workload) -> tuple[Tensor, Tensor]:
    """All test samples, stacked."""
    samples = workload.dataset(train=False)
    inputs, targets = next(iter(DataLoader(samples, batch_size=len(samples))))  # type: ignore[arg-type]
    return inputs, targets
