"""What is timed: a step builds fresh state, runs once per call, and gives what its check and proof need."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from workloads.apart import OwnThread
from workloads.observation import OperatorNames, observe_activations
from workloads.workload import (
    Call,
    Inapplicable,
    NotInEffect,
    Observation,
    Optimization,
    Parts,
    Tolerance,
    Unsuitable,
    Workload,
    changed_parameters,
    clashes,
    in_order,
)


@dataclass(frozen=True)
class Outcome:
    """What a step computed, by name, for comparison with its twin."""

    kind: Literal["movement", "outputs", "identical"]
    """Movement of the parameters, outputs within a relative error, or values that must be equal."""
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A number that only the subject can tell, such as an accuracy or the share of time spent waiting for data."""

    name: str
    """With its unit in it, as ``starvation_share``."""
    unit: str
    values: tuple[float, ...]
    better: Literal["lower", "higher", "neither"] = "neither"
    """``neither`` is shown and saved, and never judged."""
    exact: bool = False
    """Whether it is the same in every run, so that any difference is a change."""
    note: str | None = None


class Step:
    """One benchmarkable piece of work: a workload with optimizations applied in their order."""

    kind: ClassVar[str] = "step"
    training: ClassVar[bool] = False

    def __init__(self, workload: Workload, optimizations: tuple[Optimization, ...] = ()) -> None:
        """Nothing is allocated before :meth:`build`."""
        self.workload = workload
        self.optimizations = tuple(in_order(optimizations))
        self._parts: Parts | None = None
        self._call: Call | None = None
        self._uncompiled_call: Call | None = None
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
        """Whether dynamo or inductor compile it."""
        return any(each.compiled for each in self.optimizations)

    @property
    def opaque(self) -> bool:
        """Whether a dispatch mode would see another program than the one that runs, or nothing."""
        return any(each.compiled or each.opaque for each in self.optimizations)

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

    def expected_against(self, plain: Step) -> str:
        """The expected direction beside ``plain``: of what only this step has, or against what only the twin has."""
        return _agreed(self._without(plain)) or _OPPOSITE[_agreed(plain._without(self)) or "any"]

    def _without(self, other: Step) -> list[Optimization]:
        return [each for each in self.optimizations if each not in other.optimizations]

    @property
    def parts(self) -> Parts:
        """The live parts.

        Raises:
            RuntimeError: before :meth:`build`.
        """
        if self._parts is None:
            raise RuntimeError(f"{self} is not built: call build(device) first")
        return self._parts

    @property
    def call(self) -> Call:
        """The whole step as it is timed.

        Raises:
            RuntimeError: before :meth:`build`.
        """
        if self._call is None:
            raise RuntimeError(f"{self} is not built: call build(device) first")
        return self._call

    def unsuitable(self, device: torch.device) -> str | None:
        """Why this step cannot run on ``device``, or ``None``."""
        unfit = (self.unfit(each) or self._refused(each) for each in self.optimizations)
        reasons = (each.unsuitable(self.workload, device) for each in self.optimizations)
        return next(filter(None, itertools.chain(unfit, reasons)), None) or clashes(self.optimizations)

    def unfit(self, optimization: Optimization) -> str | None:
        """Why this kind of step cannot take ``optimization``, or ``None``."""
        if self.kind in optimization.kinds:
            return None
        return f"{optimization} is for {' and '.join(sorted(optimization.kinds))} steps, not for {self.kind}"

    def _refused(self, optimization: Optimization) -> str | None:
        """What the workload itself says of ``optimization``."""
        names = f"{self.kind} {optimization}", str(optimization)
        reasons = (self.workload.refused.get(name) for name in names)
        return next((f"{self.workload.name} refuses {optimization}: {each}" for each in reasons if each), None)

    def build(self, device: torch.device) -> None:
        """Fresh, seeded state on ``device``; every build of equal steps starts equal."""
        self.release()
        self._parts = self.new_parts(device)
        self._initial = copied(self._parts.model)

    def new_parts(self, device: torch.device) -> Parts:
        """Seeded parts with every optimization applied."""
        parts = self.plain_parts(device)
        for each in self.optimizations:
            applied(each, parts)
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
        self._parts = self._call = self._uncompiled_call = self._last = self._outputs = None
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

    def called(self) -> Tensor:
        """What the whole step gives.

        Raises:
            Inapplicable: where a technique knows the error as a sign that this model is not for it.
        """
        try:
            return self.call()
        except RuntimeError as error:
            for each in self.optimizations:
                reason = each.explain(error)
                if reason:
                    raise Inapplicable(f"{each}: {reason}") from error
            raise

    def run_uncompiled(self) -> None:
        """The same with the eager program in place of compiled artefacts and captured graphs, to count what it does."""
        parts, call, forward = self.parts, self._call, self.parts.forward
        self._call, parts.forward = self._uncompiled_call, parts.uncompiled or forward
        try:
            self.run()
        finally:
            self._call, parts.forward = call, forward

    def wrapped(self, parts: Parts, call: Call, optimizer: torch.optim.Optimizer | None = None) -> Call:
        """``call`` with what its optimizations put around the whole step."""
        for each in self.optimizations:
            call = each.wrap(parts, call, optimizer)
        return call

    def take(self, call: Call, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Make ``call`` what is timed, in whatever its optimizations put around it."""
        self._call = self.wrapped(self.parts, call, optimizer)
        self._uncompiled_call = call
        for each in self.optimizations:
            if not (each.compiled or each.opaque):
                self._uncompiled_call = each.wrap(self.parts, self._uncompiled_call, optimizer)

    def run_apart(self) -> None:
        """Let :meth:`run` do its work in a thread of its own, until the next build."""
        thread, call = OwnThread(self.parts.device), self.call
        self._call = lambda: thread.call(call)

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

    def figures(self) -> Iterable[Figure]:
        """Numbers that only the subject can tell; asked once, after the timed rounds."""
        return ()

    def proof(self, counts: Mapping[str, int]) -> dict[str, str]:
        """One sentence of evidence per optimization, from an observed step and the instrument's ``counts``.

        Raises:
            NotInEffect: naming the first optimization that does nothing.
        """
        operators = OperatorNames()
        with observe_activations(self.parts.model) as activations, self.active(), ExitStack() as stack:
            if not self.opaque:
                stack.enter_context(operators)
            self.run()
        seen = Observation(
            parts=self.parts,
            outputs=self._outputs,
            activation_dtypes=frozenset(activations.dtypes),
            channels_last_activations=activations.channels_last,
            operators=frozenset(operators.names),
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


_OPPOSITE = {"faster": "slower", "slower": "faster", "same": "same", "any": "any"}


def _agreed(optimizations: list[Optimization]) -> str:
    """The direction that all of them are expected to have; empty where there are none, any where they disagree."""
    directions = {each.expected for each in optimizations}
    return str(directions.pop()) if len(directions) == 1 else "any" if directions else ""


def applied(optimization: Optimization, parts: Parts) -> None:
    """Apply one technique.

    Raises:
        Inapplicable: where the technique finds that this model is not for it.
    """
    try:
        optimization.apply(parts)
    except Unsuitable as error:
        raise Inapplicable(f"{optimization}: {error}") from error


def copied(module: nn.Module) -> dict[str, Tensor]:
    """The state of ``module`` in host memory, where it does not count as the device's."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in module.state_dict().items()}


def kept(outputs: Tensor) -> Tensor:
    """A float32 copy: a CUDA graph overwrites its outputs in the next run."""
    return outputs.float().clone()
