"""What a benchmark is about: a workload, the optimizations applied to it, and the parts they may change."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from workloads.blocks import blocks_of

if TYPE_CHECKING:
    from torch.utils.data import Dataset

    from workloads.accuracy import AccuracyStep
    from workloads.analysis import AnalysisStep
    from workloads.steps import EpochStep, InferenceStep, LoadingStep, TrainStep

Expectation = Literal["faster", "same", "slower", "any"]
Call = Callable[[], Tensor]
"""One whole step; returns the loss, or the outputs in inference."""


class NotInEffect(Exception):
    """An optimization was applied but does nothing; the message says what was looked for and what was found."""


class Unsuitable(Exception):
    """A workload, optimization or data source cannot be used as asked; the message says why and what to do."""


class Inapplicable(Unsuitable):
    """Only applying a technique showed that it cannot be used with this model; whoever measures skips it."""

    skip = True


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """How far a variant's result may be from its plain twin's.

    Measured for ResNet-18 in bfloat16: norm ratio 1.002-1.003, cosine 0.93-0.97. A tight bound on the relative
    error of the movement would reject every reduced precision, so direction and length are bounded instead.
    """

    norm_ratio: float = 0.01
    """Largest |ratio - 1| of the norms of the two parameter movements."""
    cosine: float = 0.999
    """Smallest cosine between the two parameter movements."""
    relative_error: float = 5e-3  # TensorFloat-32, torch's default in cuDNN's convolutions, rounds to 10 bits
    """Largest relative L2 error of outputs, where outputs are what is compared."""

    def widest(self, other: Tolerance) -> Tolerance:
        """The tolerance that both allow: the looser of each bound."""
        return Tolerance(
            norm_ratio=max(self.norm_ratio, other.norm_ratio),
            cosine=min(self.cosine, other.cosine),
            relative_error=max(self.relative_error, other.relative_error),
        )


@dataclass(kw_only=True)
class Parts:
    """Everything a step is made of; an optimization may change any of it.

    ``forward`` maps inputs to outputs, ``backward`` takes the loss, ``update`` takes the optimizer. ``gradients`` does
    the first two and the loss between them; a technique that splits the batch replaces it.
    """

    model: nn.Module
    inputs: Tensor
    targets: Tensor
    loss: Callable[[Tensor, Tensor], Tensor]
    device: torch.device
    training: bool
    forward: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor], None] = lambda loss: loss.backward()
    update: Callable[[torch.optim.Optimizer], None] = lambda optimizer: optimizer.step()
    gradients: Callable[[Parts], tuple[Tensor, Tensor]] = lambda parts: gradients_of(parts, parts.inputs, parts.targets)
    """Leaves gradients in the parameters; returns the detached loss and the outputs."""
    optimizer: type[torch.optim.Optimizer] = torch.optim.SGD
    optimizer_arguments: dict[str, Any] = field(default_factory=dict)
    grad_mode: Callable[[], AbstractContextManager[Any]] = torch.no_grad
    """Entered around every forward pass of an inference step."""
    uncompiled: Callable[[Tensor], Tensor] | None = None
    """What ``forward`` was before a compiled artefact took its place; operators and FLOPs are counted on it."""
    dataset: Callable[..., Dataset[Any]] | None = None
    """What a loader takes its samples from, by ``train=``; as the workload has them unless a technique changed it."""
    loader_arguments: dict[str, Any] = field(default_factory=dict)
    arrive: Callable[[Parts, Any], Tensor] = lambda parts, loaded: loaded.to(
        parts.device, non_blocking=parts.non_blocking
    )
    """Makes a batch of inputs, as the loader gives it, into the model's inputs on the device."""
    delivery: Callable[[Iterable[Any], Callable[[Any], Any]], Iterator[Any]] = lambda batches, bring: map(
        bring, batches
    )
    """Goes through the loader's batches; ``bring`` brings one to the device."""
    non_blocking: bool = False
    """Whether batches are copied to the device without waiting."""
    blocks: list[nn.Module] = field(default_factory=list)
    """The model's repeated parts, outermost first."""
    counters: dict[str, Callable[[], int]] = field(default_factory=dict)
    """Counts that only the optimization itself can give, by metric name."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What an optimization remembers for its proof."""


@dataclass(frozen=True)
class Observation:
    """What one step was seen to do, as material for an optimization's proof.

    ``counts`` come from whoever measures (compiled graphs, kernel launches, peak bytes of the step and its twin ...).
    """

    parts: Parts
    outputs: Tensor | None
    activation_dtypes: frozenset[torch.dtype]
    channels_last_activations: int
    operators: frozenset[str]
    """Names of the operators that were dispatched, such as ``aten::mm``; empty for compiled steps."""
    counts: Mapping[str, int]
    facts: Mapping[str, Any]
    """What the step itself knows, such as the loader's workers that really delivered samples."""


@dataclass(frozen=True)
class Optimization:
    """One technique with its parameters. Override only the hooks you need.

    Subclasses state their ``source`` (where the technique and its expected effect are documented).
    """

    name: ClassVar[str] = "optimization"
    order: ClassVar[int] = 50
    """Position in a stack: lower is applied first (structure, then layout, then precision, then compilation)."""
    expected: ClassVar[Expectation] = "faster"
    tolerance: ClassVar[Tolerance] = Tolerance()
    source: ClassVar[str] = ""
    compiled: ClassVar[bool] = False
    """Whether dynamo or inductor compile the step."""
    opaque: ClassVar[bool] = False
    """Whether its operators cannot be watched although nothing is compiled: a captured graph, TorchScript."""
    keeps_shapes: ClassVar[bool] = True
    """Whether every parameter keeps its shape; without, outputs are compared instead of movements."""
    keeps_samples: ClassVar[bool] = True
    """Whether loaded batches keep every bit; without, they are compared within the tolerance."""
    keeps_state: ClassVar[bool] = False
    """Whether it has a hand in the optimizer's state, which only a second step shows."""
    splits_batch: ClassVar[bool] = False
    """Whether the batch goes through the model in pieces, so that batch norms in training see other statistics."""
    kinds: ClassVar[frozenset[str]] = frozenset({"train", "inference"})
    """Kinds of step it can be used in: train, inference, load, epoch."""
    slot: ClassVar[str] = ""
    """What it decides alone: two techniques of one slot cannot be stacked. Empty: its own name."""

    def __str__(self) -> str:
        """The stable slug: the name and the parameters."""
        values = [str(getattr(self, each.name)) for each in dataclasses.fields(self)]
        return "-".join([self.name, *values])

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """Why this cannot be used there, with the remedy; ``None`` if it can."""
        return None

    def clash(self, other: Optimization) -> str | None:
        """Why this cannot be stacked with ``other``; ``None`` if it can. Asked both ways round."""
        if (self.slot or self.name) != (other.slot or other.name):
            return None
        return f"{self} and {other} both decide the {self.slot or self.name}: choose one"

    def baseline(self) -> tuple[Optimization, ...]:
        """What its twin is made of, where that is not the plain step.

        The technique comes on top of these, or in place of those that it excludes: ``(Workers(2),)`` says that it needs
        workers, ``(Update("for-loop"),)`` that it is measured against another setting. One that names itself is only
        ever a twin.
        """
        return ()

    def apply(self, parts: Parts) -> None:
        """Change ``parts`` so that the technique is in effect."""

    def reference(self, parts: Parts) -> None:
        """Change the *plain* parts so that they must give the same result (pruning zeroes the same weights)."""

    def wrap(self, parts: Parts, call: Call, optimizer: torch.optim.Optimizer | None) -> Call:
        """Replace the whole step, for instance by a graph of it; ``optimizer`` is ``None`` in inference."""
        return call

    def explain(self, error: RuntimeError) -> str | None:
        """Why ``error``, raised by the step, means that this model is not for it; ``None`` where it means nothing."""
        return None

    def active(self) -> AbstractContextManager[None]:
        """Global state that holds while the step runs; entered and left outside the timed part."""
        return nullcontext()

    def proof(self, seen: Observation) -> str:
        """One sentence of evidence that the technique is in effect.

        Raises:
            NotInEffect: when it is not.
        """
        raise NotImplementedError


def gradients_of(parts: Parts, inputs: Tensor, targets: Tensor, *, share: float = 1.0) -> tuple[Tensor, Tensor]:
    """Forward, loss and backward of one batch, or of the ``share`` of one that ``inputs`` are.

    Returns:
        The loss (detached, times ``share``) and the outputs.

    Raises:
        Unsuitable: where the loss is not a single number.
    """
    outputs = parts.forward(inputs)
    loss = parts.loss(outputs, targets)
    if loss.dim():
        raise Unsuitable(f"the loss has shape {tuple(loss.shape)}, expected a single number: average it")
    if share != 1.0:
        loss = loss * share
    parts.backward(loss)
    return loss.detach(), outputs


def clashes(optimizations: Iterable[Optimization]) -> str | None:
    """Why these cannot be stacked; ``None`` if they can."""
    for first, second in itertools.combinations(optimizations, 2):
        reason = first.clash(second) or second.clash(first)
        if reason:
            return reason
    return None


def changed_parameters(instance: Workload | Optimization) -> dict[str, Any]:
    """The dataclass fields of ``instance`` that differ from their defaults.

    A field added later with a default does not change the identity of existing benchmarks.
    """
    changed = {}
    for each in dataclasses.fields(instance):
        value = getattr(instance, each.name)
        if each.default is dataclasses.MISSING or value != each.default:
            changed[each.name] = value
    return changed


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A model with its data and loss, as a frozen dataclass of sizes.

    Subclasses give ``model()`` and ``dataset()``; the rest follows.
    """

    name: ClassVar[str] = "workload"
    sources: ClassVar[tuple[str, ...]] = ("synthetic",)
    """Data sources this workload can take."""
    refused: ClassVar[Mapping[str, str]] = {}
    """Why techniques cannot be used with it that only trying shows, by ``technique`` or ``kind technique``."""
    batch_size: int = 32
    data: str = "synthetic"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes and sources that cannot work."""
        if self.batch_size < 1:
            raise Unsuitable(f"{self.name}: batch_size must be at least 1, got {self.batch_size}")
        if self.data not in self.sources:
            known = ", ".join(self.sources)
            raise Unsuitable(f"{self.name} cannot take data {self.data!r}; it takes: {known}")

    def __str__(self) -> str:
        """The stable slug, for example ``resnet18-cifar-b128`` or ``mlp-b256-digits``."""
        extra = [
            str(value) if isinstance(value, str) else f"{key.replace('_', '')}{value}"
            for key, value in changed_parameters(self).items()
            if key != "batch_size"
        ]
        return "-".join([self.name, f"b{self.batch_size}", *extra])

    def model(self) -> nn.Module:
        """A new model; its weights come from torch's global generator."""
        raise NotImplementedError(f"{type(self).__name__} must define model()")

    def dataset(self, *, train: bool) -> Dataset[Any]:
        """The samples, as (input, target) pairs; a workload that gives ``batch()`` can do without."""
        raise NotImplementedError(f"{type(self).__name__} must define dataset(train), or batch()")

    def samples(self, *, train: bool) -> Dataset[Any]:
        """``dataset``, seeded, so that one that draws its samples draws the same every time."""
        with torch.random.fork_rng():
            torch.manual_seed(2 * self.seed + (not train))
            return self.dataset(train=train)

    def batch(self) -> tuple[Tensor, Tensor]:
        """The first ``batch_size`` samples, on the CPU."""
        samples = self.samples(train=True)
        pairs = [samples[index % len(samples)] for index in range(self.batch_size)]  # type: ignore[arg-type]
        return torch.stack([pair[0] for pair in pairs]), torch.stack([torch.as_tensor(pair[1]) for pair in pairs])

    def _checked_batch(self) -> tuple[Tensor, Tensor]:
        batch = self.batch()
        if len(batch) != 2 or not all(isinstance(each, Tensor) for each in batch):
            raise Unsuitable(f"{self.name}: batch() must give two tensors, inputs and targets")
        sizes = [len(each) if each.dim() else 0 for each in batch]
        if sizes != [self.batch_size] * 2:
            raise Unsuitable(
                f"{self.name}: batch() gave {sizes[0]} inputs and {sizes[1]} targets, not {self.batch_size}"
            )
        return batch

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy of ``outputs`` (batch, classes) against ``targets`` (batch)."""
        return nn.functional.cross_entropy(outputs, targets)

    def correct(self, outputs: Tensor, targets: Tensor) -> int:
        """How many of the samples are classified correctly."""
        return int((outputs.argmax(dim=-1) == targets).sum())

    def skeleton(self) -> nn.Module:
        """A model in evaluation mode to look at its layers, without memory for its weights where it can be made so."""
        try:
            with torch.device("meta"):
                return self.model().eval()
        except (RuntimeError, NotImplementedError, TypeError, ValueError):  # it computes with its weights at once
            return self.model().eval()

    def blocks(self, model: nn.Module) -> list[nn.Module]:
        """The repeated parts of ``model``: the outermost composite members of its lists of layers."""
        return list(blocks_of(model))

    def parts(self, device: torch.device, *, training: bool) -> Parts:
        """Model and batch on ``device``, seeded so that every call gives the same.

        Raises:
            Unsuitable: where the batch is not two tensors of ``batch_size`` samples.
        """
        torch.manual_seed(self.seed)
        model = self.model().to(device).train(training)
        inputs, targets = (tensor.to(device) for tensor in self._checked_batch())
        return Parts(
            model=model,
            inputs=inputs,
            targets=targets,
            loss=self.loss,
            device=device,
            training=training,
            forward=model,
            blocks=self.blocks(model),
            dataset=self.samples,
        )

    def train_step(self, *optimizations: Optimization) -> TrainStep:
        """One training step: forward, loss, backward, update."""
        from workloads.steps import TrainStep

        return TrainStep(self, optimizations)

    def inference_step(self, *optimizations: Optimization) -> InferenceStep:
        """One forward pass in evaluation mode without gradients."""
        from workloads.steps import InferenceStep

        return InferenceStep(self, optimizations)

    def accuracy_step(self, *optimizations: Optimization) -> AccuracyStep:
        """One forward pass of the trained model over the test set, with its accuracy."""
        from workloads.accuracy import AccuracyStep

        return AccuracyStep(self, optimizations)

    def analysis_step(self, *optimizations: Optimization) -> AnalysisStep:
        """One training step, with an analysis of its size, memory, time and use of the machine."""
        from workloads.analysis import AnalysisStep

        return AnalysisStep(self, optimizations)

    def loading_step(self, *optimizations: Optimization) -> LoadingStep:
        """One epoch through a DataLoader, each batch copied to the device."""
        from workloads.steps import LoadingStep

        return LoadingStep(self, optimizations)

    def epoch_step(self, *optimizations: Optimization, batches: int | None = None) -> EpochStep:
        """One epoch of training from a DataLoader, or the first ``batches`` of one."""
        from workloads.steps import EpochStep

        return EpochStep(self, optimizations, batches=batches)


def in_order(optimizations: tuple[Optimization, ...]) -> Iterator[Optimization]:
    """The optimizations in the order in which they must be applied."""
    return iter(sorted(optimizations, key=lambda each: each.order))
