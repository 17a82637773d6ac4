"""What every technique must do, alone and in company, on whichever device: shared by the CPU's tests and the GPU's."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn
from torch.utils.data import Subset

from perfgate.measure.check import check_same_result
from perfgate.measure.state import SETTINGS
from workloads import Transformer, Unsuitable
from workloads.models.images import ImageClassifier

METHODS = {"train": "train_step", "inference": "inference_step", "load": "loading_step", "epoch": "epoch_step"}


class Residual(nn.Module):
    """Two convolutions around which the input flows."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.first_norm, self.second_norm = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.activation = nn.ReLU()

    def forward(self, x):
        y = self.activation(self.first_norm(self.first(x)))
        return self.activation(self.second_norm(self.second(y)) + x)


@dataclass(frozen=True, kw_only=True)
class Tiny(ImageClassifier):
    """Something of everything: convolutions, batch norms, blocks, activations, linear layers."""

    name: ClassVar[str] = "tiny"
    batch_size: int = 8
    image_size: int = 8

    def dataset(self, *, train):
        """Four batches: enough for an epoch."""
        return Subset(super().dataset(train=train), range(32))

    def model(self):
        return nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Sequential(Residual(16), Residual(16)),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(256, 32),
            nn.ReLU(),
            nn.Linear(32, self.classes),
        )


WORKLOADS = (Tiny(), Transformer(batch_size=8, context=16, width=32, depth=2, heads=2, vocabulary=32, tied=True))


def settings():
    """The global state of torch that benchmarks depend on."""
    return {name: read() for name, (read, _) in SETTINGS.items()}


def composed(workload, kind, stack, device, counts=None):
    """The proofs of a stack that gave the same result as plain and left no state behind; a reason where it cannot be.

    Raises:
        AssertionError, or whatever the technique raised: where it neither works nor says why not.
    """
    make = getattr(workload, METHODS[kind])
    variant, plain = make(*stack), make()
    reason = variant.unsuitable(device)
    if reason:
        return reason
    before = settings()
    try:
        variant.build(device)
        plain.build(device)
        with variant.active():
            variant.run()  # what a technique knows as a sign that it does not fit is told here
        check_same_result(variant.outcome(), plain.reference_outcome(variant), variant.tolerance)
        with variant.active():
            variant.run()
        proof = variant.proof(counts or {})
    except Unsuitable as error:
        return str(error)
    finally:
        variant.release()
        plain.release()
        left = settings()
        assert left == before, f"left behind: {left.items() - before.items()}"
    assert set(proof) == {str(each) for each in stack}
    assert all(proof.values())
    return proof


def ways(stack, device, counts=None, *, workloads=WORKLOADS, kinds=tuple(METHODS)):
    """How a stack went, by workload and kind of step; failures raise with a note of where."""
    found = {}
    for workload in workloads:
        for kind in kinds:
            loads = any(kind in each.kinds for each in stack)
            if not loads if kind == "epoch" else not all(kind in each.kinds for each in stack):
                continue  # an epoch takes techniques of training, too, and says so itself
            try:
                found[workload.name, kind] = composed(workload, kind, stack, device, counts)
            except Exception as error:
                error.add_note(f"{workload}/{kind}/{'+'.join(map(str, stack))}")
                raise
    return found
