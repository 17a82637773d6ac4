"""Steps: what is timed. A step builds fresh state, runs once per call, and gives what its check and proof need."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from workloads.observation import observe_activations
from workloads.workload import (
    NotInEffect,
    Observation,
    Optimization,
    Parts,
    Tolerance,
    Workload,
    changed_parameters,
    in_order,
)

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
CHECK_LEARNING_RATE = 0.1  # of the one plain SGD step whose movement is compared
SCALER_ATTEMPTS = 20  # a GradScaler halves its scale of 65,536 until no gradient overflows, skipping the step each time
LEARNING_RATE, MOMENTUM = 0.01, 0.9  # of the timed steps: small, so that a long measurement stays finite


@dataclass(frozen=True)
class Outcome:
    """What a step computed, by name, for comparison with its twin."""

    kind: Literal["movement", "outputs", "identical"]
    """Movement of the parameters, outputs within a relative error, or values that must be equal."""
    tensors: Mapping[str, Tensor]


class Step:
    """One benchmarkable piece of work: a workload with optimizations applied in their order."""

    kind: ClassVar[str] = "step"
    training: ClassVar[bool] = False

    def __init__(self, workload: Workload, optimizations: tuple[Optimization, ...] = ()) -> None:
        """Nothing is allocated before :meth:`build`."""
        self.workload = workload
        self.optimizations = tuple(in_order(optimizations))
        self._parts: Parts | None = None
        self._last: Tensor | None = None
        self._outputs: Tensor | None = None

    def __str__(self) -> str:
        """The slug, for example ``mlp-b128/train/amp-bf16``."""
        return "/".join([str(self.workload), self.kind, "+".join(map(str, self.optimizations)) or "plain"])

    @property
    def identity(self) -> dict[str, Any]:
        """What makes this benchmark this one: names, data source, and parameters that differ from their defaults."""
        return {
            "step": self.kind,
            "workload": [self.workload.name, self.workload.data, changed_parameters(self.workload)],
            "optimizations": [[each.name, changed_parameters(each)] for each in self.optimizations],
        }

    @property
    def samples(self) -> int:
        """Samples that one call of :meth:`run` works through."""
        return self.workload.batch_size

    @property
    def compiled(self) -> bool:
        """Whether compiled code runs, so that a dispatch mode would see the eager program instead."""
        return any(each.compiled for each in self.optimizations)

    @property
    def repeatable(self) -> bool:
        """Whether its counts are the same in every run."""
        return True

    @property
    def tolerance(self) -> Tolerance:
        """The widest tolerance of its members."""
        widest = Tolerance()
        for each in self.optimizations:
            widest = widest.widest(each.tolerance)
        return widest

    @property
    def expected(self) -> str:
        """The expected direction: the members' if they agree, else any."""
        directions = {each.expected for each in self.optimizations}
        return directions.pop() if len(directions) == 1 else "any"

    @property
    def parts(self) -> Parts:
        """The live parts.

        Raises:
            RuntimeError: before :meth:`build`.
        """
        if self._parts is None:
            raise RuntimeError(f"{self} is not built: call build(device) first")
        return self._parts

    def unsuitable(self, device: torch.device) -> str | None:
        """Why this step cannot run on ``device``, or ``None``."""
        reasons = (each.unsuitable(self.workload, device) for each in self.optimizations)
        return next((reason for reason in reasons if reason), None)

    def build(self, device: torch.device) -> None:
        """Fresh, seeded state on ``device``; every build of equal steps starts equal."""
        self.release()
        self._parts = self.new_parts(device)
        self._initial = _copied(self._parts.model)

    def new_parts(self, device: torch.device) -> Parts:
        """Seeded parts with every optimization applied."""
        parts = self.plain_parts(device)
        for each in self.optimizations:
            each.apply(parts)
        return parts

    def plain_parts(self, device: torch.device) -> Parts:
        """Seeded parts as the workload has them."""
        return self.workload.parts(device, training=self.training)

    def reference_parts(self, device: torch.device, variant: Step) -> Parts:
        """This step's parts, made into what must give the same result as ``variant``."""
        parts = self.new_parts(device)
        for each in variant.optimizations:
            each.reference(parts)
        return parts

    def release(self) -> None:
        """Drop all state; compiled code is forgotten too, so that the next build compiles afresh."""
        self._parts = self._last = self._outputs = None
        if self.compiled:
            torch.compiler.reset()

    @contextmanager
    def active(self) -> Iterator[None]:
        """The global state its optimizations need while it runs."""
        with ExitStack() as stack:
            for each in self.optimizations:
                stack.enter_context(each.active())
            yield

    def run(self) -> None:
        """One step, without waiting for the device."""
        raise NotImplementedError

    def outcome(self) -> Outcome:
        """What one step from the initial state computes; the state is initial again afterwards."""
        raise NotImplementedError

    def reference_outcome(self, variant: Step) -> Outcome:
        """What ``variant`` must compute, from a fresh plain twin."""
        raise NotImplementedError

    def last_value(self) -> Tensor | None:
        """The loss or the outputs of the last call of :meth:`run`, to be found finite."""
        return self._last

    def resident_tensors(self) -> Iterable[Tensor]:
        """Tensors that stay alive between steps."""
        parts = self.parts
        yield from (parts.inputs, parts.targets)
        for tensor in [*parts.model.parameters(), *parts.model.buffers()]:
            yield tensor
            if tensor.grad is not None:
                yield tensor.grad

    def counts(self) -> dict[str, int]:
        """Counts that only the subject can give: parameters, zeros among the weights, and its members' own."""
        parts = self.parts
        weights = [module.weight for module in parts.model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
        return {
            "parameters": sum(each.numel() for each in parts.model.parameters()),
            "zeros": sum(int((weight == 0).sum()) for weight in weights),
            **{name: read() for name, read in parts.counters.items()},
        }

    def proof(self, counts: Mapping[str, int]) -> dict[str, str]:
        """One sentence of evidence per optimization, from an observed step and the instrument's ``counts``.

        Raises:
            NotInEffect: naming the first optimization that does nothing.
        """
        with observe_activations(self.parts.model) as activations, self.active():
            self.run()
        seen = Observation(
            parts=self.parts,
            outputs=self._outputs,
            activation_dtypes=frozenset(activations.dtypes),
            channels_last_activations=activations.channels_last,
            counts=counts,
            facts=self.facts(),
        )
        evidence = {}
        for each in self.optimizations:
            try:
                with each.active():
                    evidence[str(each)] = each.proof(seen)
            except NotInEffect as error:
                raise NotInEffect(f"{each} is not in effect: {error}") from error
        return evidence

    def facts(self) -> dict[str, Any]:
        """What the step itself knows for a proof."""
        return {}


@contextmanager
def _starting_from(state: Mapping[str, Tensor], module: nn.Module) -> Iterator[None]:
    """Put ``module`` into ``state`` before and after the block, without gradients."""
    module.load_state_dict(state)
    try:
        yield
    finally:
        module.load_state_dict(state)
        module.zero_grad(set_to_none=True)


def _kept(outputs: Tensor) -> Tensor:
    """A float32 copy: a CUDA graph overwrites its outputs in the next run."""
    return outputs.float().clone()


def _copied(module: nn.Module) -> dict[str, Tensor]:
    """The state of ``module`` in host memory, where it does not count as the device's."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in module.state_dict().items()}


@contextmanager
def _running_statistics(model: nn.Module, *, wanted: bool) -> Iterator[None]:
    """Batch norms in evaluation mode: batch statistics amplify rounding, running statistics do not."""
    norms = [m for m in model.modules() if isinstance(m, BATCH_NORMS) and m.training and wanted]
    for norm in norms:
        norm.eval()
    try:
        yield
    finally:
        for norm in norms:
            norm.train()


class TrainStep(Step):
    """Forward, loss, backward, update of one batch that already lies on the device."""

    kind = "train"
    training = True

    def build(self, device: torch.device) -> None:
        """Parts and an SGD optimizer with momentum."""
        super().build(device)
        self._optimizer = self._new_optimizer(self.parts, lr=LEARNING_RATE, momentum=MOMENTUM)

    @staticmethod
    def _new_optimizer(parts: Parts, **arguments: float) -> torch.optim.Optimizer:
        return torch.optim.SGD(parts.model.parameters(), **{**arguments, **parts.optimizer_arguments})

    def run(self) -> None:
        """One training step."""
        self._last = self._step(self.parts, self._optimizer)

    def _step(self, parts: Parts, optimizer: torch.optim.Optimizer) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        self._outputs = parts.forward(parts.inputs)
        loss = parts.loss(self._outputs, parts.targets)
        parts.backward(loss)
        parts.update(optimizer)
        return loss.detach()

    def resident_tensors(self) -> Iterable[Tensor]:
        """Parameters, buffers, gradients, batch and the optimizer's state."""
        yield from super().resident_tensors()
        for state in self._optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, Tensor))

    def outcome(self) -> Outcome:
        """The parameters' movement in one SGD step, or the outputs after it where shapes change."""
        return self._outcome_of(self.parts, self._initial, self)

    def reference_outcome(self, variant: Step) -> Outcome:
        """The same of a fresh plain twin."""
        parts = self.reference_parts(self.parts.device, variant)
        return self._outcome_of(parts, _copied(parts.model), variant)

    def _outcome_of(self, parts: Parts, initial: Mapping[str, Tensor], variant: Step) -> Outcome:
        # a compiled step is compared in the mode it was compiled for, so that the check does not compile again
        statistics = _running_statistics(parts.model, wanted=not variant.compiled)
        with self.active(), _starting_from(initial, parts.model), statistics:
            before = {name: each.detach().clone() for name, each in parts.model.named_parameters()}
            optimizer = self._new_optimizer(parts, lr=CHECK_LEARNING_RATE)
            for _ in range(SCALER_ATTEMPTS):
                self._step(parts, optimizer)
                moved = {name: each.detach() - before[name] for name, each in parts.model.named_parameters()}
                if any(bool(each.any()) for each in moved.values()):
                    break
            if all(each.keeps_shapes for each in variant.optimizations):
                return Outcome("movement", {name.removesuffix("_orig"): each for name, each in moved.items()})
            with torch.no_grad():
                return Outcome("outputs", {"outputs": _kept(parts.forward(parts.inputs))})


class InferenceStep(Step):
    """One forward pass in evaluation mode without gradients."""

    kind = "inference"

    def run(self) -> None:
        """One forward pass."""
        parts = self.parts
        with torch.no_grad():
            self._last = self._outputs = parts.forward(parts.inputs)

    def outcome(self) -> Outcome:
        """The outputs."""
        return self._outcome_of(self.parts)

    def reference_outcome(self, variant: Step) -> Outcome:
        """The outputs of a fresh plain twin."""
        return self._outcome_of(self.reference_parts(self.parts.device, variant))

    def _outcome_of(self, parts: Parts) -> Outcome:
        with self.active(), torch.no_grad():
            return Outcome("outputs", {"outputs": _kept(parts.forward(parts.inputs))})
