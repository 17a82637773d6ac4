"""TorchScript: the model as a graph that an interpreter without Python runs. Deprecated upstream.

torch warns at every call: torch 2.11 (DeprecationWarning) and 2.15 (FutureWarning) both say "`torch.jit.trace` is
deprecated. Please switch to `torch.compile` or `torch.export`.", and the same of ``script``, ``freeze``, ``save`` and
``load``. It is measured because much code that is deployed still uses it.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor
from torch.jit.frontend import FrontendError

from workloads.optimizations.artefact import Artefact, Captured, Whole
from workloads.workload import Inapplicable, NotInEffect, Observation, Optimization, Parts, Unsuitable

WAYS = ("trace", "script")


@dataclass(frozen=True)
class TorchScript(Captured):
    """``torch.jit.trace`` or ``torch.jit.script``, then ``freeze``, ``save`` and ``load``. Deprecated upstream."""

    name: ClassVar[str] = "torchscript"
    opaque: ClassVar[bool] = True
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/jit.html (deprecated, says so itself)"
    way: Literal["trace", "script"] = "trace"

    def __post_init__(self) -> None:
        """Refuse other ways."""
        if self.way not in WAYS:
            raise Unsuitable(f"torchscript: way must be one of {', '.join(WAYS)}, got {self.way!r}")

    def clash(self, other: Optimization) -> str | None:
        """Scripting reads the model's source and does not see what is put around it."""
        if self.way == "script" and other.name == "amp":
            return f"{self} does not see {other} around the model: use torchscript-trace or half-bf16"
        return super().clash(other)

    def make(self, whole: Whole, inputs: Tensor, parts: Parts) -> Artefact:
        """A frozen graph, through bytes and back."""
        saved = io.BytesIO()
        with one_deprecation_warning():
            graph = self._graph(whole, inputs)
            torch.jit.save(torch.jit.freeze(graph.eval()), saved)
            parts.notes["artefact_bytes"] = saved.getbuffer().nbytes
            saved.seek(0)
            loaded = torch.jit.load(saved, map_location=parts.device)
        parts.notes["artefact"] = loaded
        return cast("Artefact", loaded)

    def _graph(self, whole: Whole, inputs: Tensor) -> torch.jit.ScriptModule:
        if self.way == "trace":
            # torch's own check traces again and compares bits, which differ under autocast
            return cast("torch.jit.ScriptModule", torch.jit.trace(whole, inputs, check_trace=False))
        if whole.call is not whole.model:
            raise Inapplicable(f"{self} does not see what is put around the model: use torchscript-trace")
        try:
            return cast("torch.jit.ScriptModule", torch.jit.script(whole.model))
        except (RuntimeError, FrontendError) as error:
            raise Inapplicable(f"the model is not written in TorchScript's part of Python: {error}") from error

    def proof(self, seen: Observation) -> str:
        """It is a script module, and torch's own verdict on it."""
        if not isinstance(seen.parts.notes.get("artefact"), torch.jit.ScriptModule):
            raise NotInEffect("no script module was loaded")
        return f"{super().proof(seen)} (TorchScript is deprecated upstream: torch.export takes its place)"


@contextmanager
def one_deprecation_warning() -> Iterator[None]:
    """Pass on one deprecation warning of the block and all other warnings; torch gives one per submodule."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    deprecations = [each for each in caught if issubclass(each.category, (DeprecationWarning, FutureWarning))]
    for each in deprecations[:1]:
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno, module="torch.jit")
    for each in caught:
        if each not in deprecations:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
