"""torch.export: the whole model as one graph, run as it is or compiled ahead of time into a library."""

import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from workloads.optimizations import compilers
from workloads.optimizations.artefact import Artefact, Captured, Whole
from workloads.workload import Inapplicable, Parts, Workload


@dataclass(frozen=True)
class Export(Captured):
    """``torch.export.export``, ``save``, ``load``, and the loaded program's module: a graph of eager operators."""

    name: ClassVar[str] = "export"
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/export.html"
    keeps_gradients: ClassVar[bool] = True

    def make(self, whole: Whole, inputs: Tensor, parts: Parts) -> Artefact:
        """The exported program, through bytes and back."""
        saved = io.BytesIO()
        torch.export.save(exported(whole, inputs), saved)
        parts.notes["artefact_bytes"] = saved.getbuffer().nbytes
        saved.seek(0)
        module: Artefact = torch.export.load(saved).module()
        return module


@dataclass(frozen=True)
class AOTInductor(Captured):
    """``torch.export`` and AOTInductor: a shared library in a ``.pt2`` package, which runs without Python."""

    name: ClassVar[str] = "aot-inductor"
    compiled: ClassVar[bool] = True
    source: ClassVar[str] = "https://docs.pytorch.org/docs/stable/torch.compiler_aot_inductor.html"

    def unsuitable(self, workload: Workload, device: torch.device) -> str | None:
        """The library is C++; kernels for a GPU are written in triton, too."""
        return compilers.missing_for_cpu() or (compilers.missing_for_aot_gpu() if device.type != "cpu" else None)

    def make(self, whole: Whole, inputs: Tensor, parts: Parts) -> Artefact:
        """The package in a folder that is gone afterwards: what is loaded from it stays."""
        with tempfile.TemporaryDirectory(prefix="aot-inductor-") as folder:
            package = torch._inductor.aoti_compile_and_package(  # noqa: SLF001 - its documented name
                exported(whole, inputs), package_path=str(Path(folder, "model.pt2"))
            )
            parts.notes["artefact_bytes"] = Path(package).stat().st_size
            loaded: Artefact = torch._inductor.aoti_load_package(package)  # noqa: SLF001 - its documented name
        return loaded


def exported(whole: Whole, inputs: Tensor) -> torch.export.ExportedProgram:
    """The program of one forward pass at the shape of ``inputs``.

    Raises:
        Inapplicable: where the model cannot be exported, for instance because it branches on values.
    """
    try:
        return torch.export.export(whole, (inputs,))
    except Exception as error:  # dynamo's, fx's and sympy's errors have no common base
        raise Inapplicable(f"torch.export cannot take the model: {error}") from error
