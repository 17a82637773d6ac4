"""Export: is a captured, saved and loaded artefact faster than the model it was made of?

TorchScript is deprecated upstream: torch warns at every use and names ``torch.compile`` and ``torch.export`` instead.
It is measured because it is still deployed. ``export`` runs the graph with eager operators; AOTInductor compiles it
ahead of time, and ``compile_seconds`` says what that costs.
"""

import pytest

from workloads import GPT2, MLP, ResNet18, ResNet50, Transformer, ViTB16
from workloads.optimizations import AOTInductor, Export, TorchScript

pytestmark = pytest.mark.benchmark(group="export")

LARGE = [pytest.param(each, marks=pytest.mark.gpu) for each in (ResNet50(), ViTB16(), GPT2(batch_size=4))]


@pytest.mark.parametrize("workload", [ResNet18(), *LARGE], ids=str)
def test_torchscript_trace(measure, workload):
    """Traced, frozen, saved and loaded, against eager."""
    measure(workload.inference_step(TorchScript("trace")), against=workload.inference_step())


@pytest.mark.parametrize("workload", [MLP(), pytest.param(ResNet50(), marks=pytest.mark.gpu)], ids=str)
def test_torchscript_script(measure, workload):
    """Compiled from its source, frozen, saved and loaded, against eager."""
    measure(workload.inference_step(TorchScript("script")), against=workload.inference_step())


@pytest.mark.parametrize("workload", [Transformer(), *LARGE], ids=str)
def test_exported_program(measure, workload):
    """The exported graph, saved, loaded and run by eager operators, against the model."""
    measure(workload.inference_step(Export()), against=workload.inference_step())


@pytest.mark.compile
@pytest.mark.parametrize("workload", [MLP(), pytest.param(ResNet18(), marks=pytest.mark.slow), *LARGE], ids=str)
def test_aot_inductor(measure, workload):
    """The exported graph compiled ahead of time into a library, against eager."""
    measure(workload.inference_step(AOTInductor()), against=workload.inference_step())
