"""The training step: forward, loss, backward, update of one batch that already lies on the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from workloads.steps.step import Outcome, Step, copied, kept
from workloads.workload import Call, Parts

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
SCALER_ATTEMPTS = 20  # a GradScaler halves its scale of 65,536 until no gradient overflows, skipping the step each time
TIMED: dict[str, dict[str, Any]] = {"SGD": {"lr": 0.01, "momentum": 0.9}, "AdamW": {"lr": 1e-4}}
"""Arguments of the timed steps' optimizer: small steps, so that a long measurement stays finite."""
CHECKED: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "AdamW": {
        "lr": 1.0,
        "eps": 10.0,
        "weight_decay": 0.0,
    },  # so large an epsilon that it does not divide the scale away
}
"""Arguments of the step, or two, whose movement is compared."""


class TrainStep(Step):
    """Forward, loss, backward, update."""

    kind = "train"
    training = True

    def build(self, device: torch.device) -> None:
        """Parts, and an optimizer: SGD with momentum where no technique chose another."""
        super().build(device)
        self._optimizer = new_optimizer(self.parts, TIMED)
        self.take(lambda: self._step(self.parts, self._optimizer), self._optimizer)

    def run(self) -> None:
        """One training step."""
        self._last = self.called()

    def release(self) -> None:
        """Drop the optimizer's state, too."""
        super().release()
        self._optimizer = None  # type: ignore[assignment]

    def _step(self, parts: Parts, optimizer: torch.optim.Optimizer) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss, self._outputs = parts.gradients(parts)
        parts.update(optimizer)
        return loss

    def resident_tensors(self) -> Iterable[Tensor]:
        """Parameters, buffers, gradients, batch and the optimizer's state."""
        yield from super().resident_tensors()
        for state in self._optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, Tensor))

    def outcome(self) -> Outcome:
        """The parameters' movement in one step, or the outputs after it where shapes change.

        Two steps where a technique has a hand in the optimizer's state.
        """
        return self._outcome_of(self.parts, self._initial, self)

    def reference_outcome(self, variant: Step) -> Outcome:
        """The same of a fresh plain twin."""
        parts = self.reference_parts(self.parts.device, variant)
        return self._outcome_of(parts, copied(parts.model), variant)

    def _outcome_of(self, parts: Parts, initial: Mapping[str, Tensor], variant: Step) -> Outcome:
        # a compiled step is compared in the mode it was compiled for, so that the check does not compile again
        in_pieces = any(each.splits_batch for each in variant.optimizations)
        statistics = running_statistics(parts.model, wanted=in_pieces or not variant.compiled)
        with self.active():
            random = draws_random(parts, compiled=variant.compiled)
        calm = in_evaluation(parts.model, wanted=random)
        with self.active(), starting_from(initial, parts.model), statistics, calm:
            before = {name: each.detach().clone() for name, each in parts.model.named_parameters()}
            optimizer = new_optimizer(parts, CHECKED)
            call = self.wrapped(parts, lambda: self._step(parts, optimizer), optimizer)
            moved = _first_movement(call, parts.model, before)
            if any(each.keeps_state for each in variant.optimizations):
                call()
                moved = _movement(parts.model, before)
            if all(each.keeps_shapes for each in variant.optimizations):
                return Outcome("movement", {name.removesuffix("_orig"): each for name, each in moved.items()})
            with torch.no_grad():
                return Outcome("outputs", {"outputs": kept(parts.forward(parts.inputs))})


def _first_movement(call: Call, model: nn.Module, before: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What the first step moves that is not skipped for its overflowing gradients."""
    for _ in range(SCALER_ATTEMPTS):
        call()
        moved = _movement(model, before)
        if any(bool(each.any()) for each in moved.values()):
            break
    return moved


def _movement(model: nn.Module, before: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: each.detach() - before[name] for name, each in model.named_parameters()}


def new_optimizer(parts: Parts, arguments: Mapping[str, Mapping[str, Any]]) -> torch.optim.Optimizer:
    """The optimizer of ``parts``, with the suite's ``arguments`` for its class below the techniques' own."""
    chosen = arguments.get(parts.optimizer.__name__, {})
    return parts.optimizer(parts.model.parameters(), **{**chosen, **parts.optimizer_arguments})


@contextmanager
def starting_from(state: Mapping[str, Tensor], module: nn.Module) -> Iterator[None]:
    """Put ``module`` into ``state`` before and after the block, without gradients."""
    module.load_state_dict(state)
    try:
        yield
    finally:
        module.load_state_dict(state)
        module.zero_grad(set_to_none=True)


@contextmanager
def running_statistics(model: nn.Module, *, wanted: bool) -> Iterator[None]:
    """Batch norms in evaluation mode: batch statistics amplify rounding, running statistics do not."""
    norms = [m for m in model.modules() if isinstance(m, BATCH_NORMS) and m.training and wanted]
    for norm in norms:
        norm.eval()
    try:
        yield
    finally:
        for norm in norms:
            norm.train()


def draws_random(parts: Parts, *, compiled: bool) -> bool:
    """Whether a forward pass takes random numbers, as dropout does: twins would drop different values."""
    on_gpu = parts.device.type == "cuda"
    eagerly = torch.compiler.set_stance("force_eager") if compiled else nullcontext()
    with torch.random.fork_rng([parts.device] if on_gpu else []), torch.no_grad(), eagerly:
        state = partial(torch.cuda.get_rng_state, parts.device) if on_gpu else torch.get_rng_state
        before = state()
        parts.forward(parts.inputs)
        return not torch.equal(before, state())


@contextmanager
def in_evaluation(model: nn.Module, *, wanted: bool) -> Iterator[None]:
    """Every module in evaluation mode, except recurrent ones: cuDNN gives their gradients in training mode only."""
    modules = [each for each in model.modules() if wanted and each.training and not isinstance(each, nn.RNNBase)]
    for each in modules:
        each.training = False
    try:
        yield
    finally:
        for each in modules:
            each.training = True
