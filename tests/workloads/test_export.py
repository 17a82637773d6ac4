"""Exported artefacts: what is loaded runs in the model's place, and what cannot be captured says so."""

import sys
import warnings
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from workloads import MLP, NotInEffect, Unsuitable
from workloads.models.images import ImageClassifier
from workloads.optimizations import AMP, AOTInductor, ChannelsLast, Compile, Export, GradMode, TorchScript, compilers

CPU = torch.device("cpu")
TINY = MLP(batch_size=4, width=8, image_size=4)
CHEAP = [TorchScript("trace"), TorchScript("script"), Export()]


class Branching(nn.Module):
    """Looks at a value, which no graph can, and is has a generator, which TorchScript does not know."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(48, 10)

    def forward(self, inputs):
        flat = inputs.flatten(1)
        sign = sum(each for each in (1, -1) if flat.sum() * each > 0)
        return self.layer(flat * sign)


@dataclass(frozen=True, kw_only=True)
class Stubborn(ImageClassifier):
    """A workload of that model."""

    name = "stubborn"
    batch_size: int = 4
    image_size: int = 4

    def model(self):
        """Without sizes."""
        return Branching()


def built(workload, *stack):
    """An inference step on the CPU, run once."""
    step = workload.inference_step(*stack)
    step.build(CPU)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step.run()
    return step


@pytest.mark.parametrize("technique", CHEAP, ids=str)
def test_the_artefact_has_weights_of_its_own(technique):
    """Changing the model's no longer changes the outputs."""
    step, plain = built(TINY, technique), built(TINY)
    for parameter in step.parts.model.parameters():
        parameter.data.zero_()
    step.run()
    torch.testing.assert_close(step.last_value(), plain.last_value())
    assert "was saved, loaded and run" in step.proof({})[str(technique)]


@pytest.mark.parametrize("technique", CHEAP, ids=str)
def test_an_artefact_that_is_not_used_is_noticed(technique):
    """The model's layers run."""
    step = built(TINY, technique)
    step.parts.forward = step.parts.model
    with pytest.raises(NotInEffect, match="layers of the eager model ran"):
        step.proof({})


@pytest.mark.parametrize("technique", [TorchScript("trace"), Export()], ids=str)
def test_autocast_is_captured(technique):
    """What was put around the model is part of the graph."""
    assert built(TINY, AMP(), technique).last_value().dtype == torch.bfloat16


def test_operators_are_counted_on_the_model():
    """An artefact hides them."""
    from workloads.observation import observe_activations

    step = built(TINY, TorchScript("trace"))
    with observe_activations(step.parts.model) as seen:
        step.run_uncompiled()
    assert seen.dtypes == {torch.float32}


@pytest.mark.parametrize("technique", [TorchScript("script"), Export()], ids=str)
def test_a_model_that_cannot_be_captured(technique):
    """Is refused with the reason."""
    with pytest.raises(Unsuitable, match=r"not written in TorchScript's|cannot take the model"):
        built(Stubborn(), technique)


@pytest.mark.parametrize("way", ["trace", "script"])
def test_one_deprecation_warning_is_left_of_many(way):
    """The reader learns of it, and also from the proof."""
    step = TINY.inference_step(TorchScript(way))
    step.build(CPU)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step.run()
    assert [f"`torch.jit.{way}` is deprecated" in str(each.message) for each in caught] == [True]
    assert "deprecated upstream" in step.proof({})[f"torchscript-{way}"]


def test_stacks():
    """What an artefact hides or loses cannot be stacked with it."""
    trace, script = TorchScript("trace"), TorchScript("script")
    for artefact in (trace, script, Export(), AOTInductor()):
        assert "cannot be watched" in artefact.clash(ChannelsLast())
        assert "choose one" in artefact.clash(Compile())
    assert "choose one" in trace.clash(Export())
    assert "without gradients" in trace.clash(GradMode("grad"))
    assert Export().clash(GradMode("grad")) is None
    assert "use torchscript-trace" in script.clash(AMP())
    with pytest.raises(Unsuitable, match="got 'both'"):
        TorchScript("both")


def test_scripting_refuses_a_wrapped_model():
    """It reads the source of the model alone, whoever wrapped it."""
    step = TINY.inference_step(TorchScript("script"))
    step.build(CPU)
    technique = TorchScript("script")
    parts = step.workload.parts(CPU, training=False)
    model = parts.forward
    parts.forward = lambda inputs: model(inputs) * 2
    technique.apply(parts)
    with pytest.raises(Unsuitable, match="put around the model"):
        parts.forward(parts.inputs)


def test_aot_inductor_needs_a_compiler(monkeypatch):
    """On a GPU, triton too."""
    monkeypatch.setattr(compilers, "missing_for_cpu", lambda: None)
    monkeypatch.setattr(compilers, "missing_for_aot_gpu", lambda: "triton is not installed")
    assert AOTInductor().unsuitable(TINY, CPU) is None
    assert AOTInductor().unsuitable(TINY, torch.device("cuda")) == "triton is not installed"
    monkeypatch.setattr(compilers, "missing_for_cpu", lambda: "no C++ compiler")
    assert AOTInductor().unsuitable(TINY, CPU) == "no C++ compiler"


def test_aot_inductor_loads_its_package_and_leaves_no_folder(monkeypatch, tmp_path):
    """The package is written by a stand-in for the compiler, which takes seconds."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []

    def compile_and_package(program, *, package_path):
        seen.append(package_path)
        assert isinstance(program, torch.export.ExportedProgram)
        torch.export.save(program, package_path)
        return package_path

    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", compile_and_package)
    monkeypatch.setattr(torch._inductor, "aoti_load_package", lambda path: torch.export.load(path).module())
    step, plain = built(TINY, AOTInductor()), built(TINY)
    torch.testing.assert_close(step.last_value(), plain.last_value())
    assert "was saved, loaded and run" in step.proof({})["aot-inductor"]
    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == []


def test_kernels_for_a_gpu_need_the_headers_of_python(tmp_path, monkeypatch):
    """Triton compiles its launchers in C; a Python without them is usual in containers."""
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setenv("CC", sys.executable)  # any program that is there
    monkeypatch.setattr(compilers.sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    assert "python3-dev" in compilers.missing_for_gpu()
    (tmp_path / "Python.h").touch()
    assert compilers.missing_for_gpu() is None


def test_a_library_for_a_gpu_needs_the_headers_of_cuda(tmp_path, monkeypatch):
    """Wheels of torch have none; a guessed CUDA_HOME may be empty."""
    monkeypatch.setattr("torch.utils.cpp_extension.CUDA_HOME", str(tmp_path))
    monkeypatch.setattr(compilers, "missing_for_gpu", lambda: None)
    assert "cuda.h" in compilers.missing_for_aot_gpu()
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda.h").touch()
    assert compilers.missing_for_aot_gpu() is None
    monkeypatch.setattr("torch.utils.cpp_extension.CUDA_HOME", None)
    assert "cuda.h" in compilers.missing_for_aot_gpu()
