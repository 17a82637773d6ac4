"""The analysis as a whole: what a user sees at the command line, what a benchmark saves, and what is refused."""

import dataclasses
import gc
import importlib
import io
import weakref

import pytest
import torch
from rich.console import Console
from torch import nn

from workloads import MLP, ResNet18, Transformer, Unsuitable
from workloads.__main__ import main
from workloads.analysis import analyse, operators, peaks
from workloads.analysis.clock import rounds_beside
from workloads.analysis.figures import figures_of
from workloads.analysis.operators import Sizes
from workloads.commands.analysis_tables import tables
from workloads.optimizations import AMP, CudnnBenchmark, Workers
from workloads.workload import Optimization

analysis = importlib.import_module("workloads.analysis.analysis")
CPU = torch.device("cpu")
TINY = MLP(batch_size=4, width=8, image_size=4)


@pytest.fixture(autouse=True)
def small_peaks(monkeypatch):
    """The machine's peaks from products and copies that take no time."""
    monkeypatch.setattr(peaks, "MATMUL_SIDES", {"cpu": (32,)})
    monkeypatch.setattr(peaks, "COPY_BYTES", {"cpu": 2**14})
    monkeypatch.setattr(peaks, "BUDGET_SECONDS", 0.0)
    monkeypatch.setattr(operators, "COPY_BYTES", {"cpu": 2**14})
    monkeypatch.setattr(operators, "SIZES", {"cpu": Sizes(matmul_side=16, row=64, attention=(1, 1, 4, 4))})
    for cached in (peaks.matmul_rates, peaks.copy_peak, operators.operator_efficiencies):
        cached.cache_clear()
    yield
    for cached in (peaks.matmul_rates, peaks.copy_peak, operators.operator_efficiencies):
        cached.cache_clear()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Odd(MLP):
    """A small workload whose model is given by each test."""

    class Broken(nn.Linear):
        """Its forward raises."""

        def forward(self, inputs):
            raise ValueError("shapes do not match")

    class Endless(nn.Linear):
        """Its outputs are infinite."""

        def forward(self, inputs):
            return super().forward(inputs.flatten(1)) * float("inf")

    kind: str = "broken"

    def model(self):
        return self.Broken(48, 10) if self.kind == "broken" else self.Endless(48, 10)


def figures_by_name(workload, *optimizations):
    """The figures of a built and run analysis step."""
    step = workload.analysis_step(*optimizations)
    step.build(CPU)
    step.run()
    return {each.name: each for each in step.figures()}


def test_every_number_is_saved_as_a_figure():
    """Sizes, memory, times, roofline, operators, scaling, and the cost of profiling."""
    found = figures_by_name(TINY)
    assert found["parameter_bytes"].values == (4 * (48 * 8 + 8 + 8 * 8 + 8 + 8 * 10 + 10),)
    assert found["forward_flops"].values == (2 * 4 * (48 * 8 + 8 * 8 + 8 * 10),)
    assert found["optimizer_state_bytes"].values == found["gradient_bytes"].values == found["parameter_bytes"].values
    for name in (
        *("forward_seconds", "backward_seconds", "optimizer_seconds", "data_seconds", "profiling_cost"),
        *("achieved_flops_per_second", "achieved_bytes_per_second", "arithmetic_intensity", "ridge_point"),
        *("peak_float32_flops_per_second", "peak_bytes_per_second", "compute_share_of_peak", "memory_share_of_peak"),
        *("matmul_efficiency", "elementwise_efficiency", "reduction_efficiency", "attention_efficiency"),
        *("seconds_at_batch_size_8", "seconds_at_width_16"),
    ):
        assert all(value > 0 for value in found[name].values), name
        assert found[name].values, name
    assert found["compute_share_of_peak"].note.endswith("-bound")


def test_counts_are_exact_and_nothing_sampled_is_judged():
    """A FLOP more is a finding; a millisecond is the step's own time's business."""
    found = figures_by_name(TINY)
    exact = {name for name, each in found.items() if each.exact}
    assert {"forward_flops", "traffic_bytes", "activation_bytes", "train_flops_of_1"} <= exact
    again = figures_by_name(TINY)
    assert {name: found[name].values for name in exact} == {name: again[name].values for name in exact}
    assert {each.better for each in found.values()} == {"neither"}


def test_figures_leave_the_measured_step_as_it_was():
    """Weights, gradients, momentum and random numbers."""
    step = TINY.analysis_step()
    step.build(CPU)
    step.run()
    before = [each.clone() for each in step.resident_tensors()]
    state = torch.get_rng_state()
    list(step.figures())
    assert all(torch.equal(a, b) for a, b in zip(before, step.resident_tensors(), strict=True))
    assert torch.equal(state, torch.get_rng_state())


def test_an_analysis_is_another_benchmark_than_its_training_step():
    """Its record has other metrics."""
    step, plain = TINY.analysis_step(), TINY.train_step()
    assert step.identity != plain.identity
    assert str(step) == str(plain).replace("/train/", "/analysis/")


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (Odd(image_size=4, batch_size=4), r"its first runs fail with ValueError: shapes do not match"),
        (Odd(image_size=4, batch_size=4, kind="endless"), r"its loss is not finite"),
    ],
    ids=["forward fails", "loss is not finite"],
)
def test_a_step_that_does_not_work_is_refused(workload, said):
    """With what is wrong."""
    with pytest.raises(Unsuitable, match=said):
        analyse(workload, (), device=CPU, rounds=1)


def test_a_technique_that_cannot_be_used_is_refused():
    """With its own reason."""
    with pytest.raises(Unsuitable, match=r"cudnn\.benchmark needs a CUDA GPU"):
        analyse(TINY, (CudnnBenchmark(),), device=CPU, rounds=1)


def test_what_changes_the_loader_changes_data_time_only():
    """Workers are no part of the training step, and the step's techniques none of the loader."""
    found = analyse(TINY, (AMP(), Workers(2)), device=CPU, rounds=1, factors=())
    assert found.work.main_precision == "bfloat16"
    assert len(found.times.data_seconds) == 3


def test_a_size_that_cannot_run_is_a_row_with_its_reason():
    """Half of this width is no multiple of the heads."""
    odd = Transformer(batch_size=2, context=8, width=6, heads=2, depth=1, vocabulary=16)
    found = analyse(odd, (), device=CPU, rounds=1, factors=(0.5, 2.0))
    points = {(each.field, each.value): each for each in found.scaling}
    assert points["width", 3].samples_per_second is None
    assert "its first runs fail" in points["width", 3].reason
    assert points["width", 12].flops > points["batch_size", 1].flops


def test_time_is_split_by_phase():
    """Each ran."""
    found = analyse(TINY, (), device=CPU, rounds=2, factors=())
    assert list(found.times.phase_seconds) == ["forward", "backward", "optimizer"]
    assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in found.times.phase_seconds.values())


@dataclasses.dataclass(frozen=True)
class Replay(Optimization):
    """Runs the step once and then does nothing of it that could be seen."""

    name = "replay"

    def wrap(self, parts, call, optimizer):
        """The first loss, again and again."""
        losses = []

        def replayed():
            if not losses:
                losses.append(call())
            return losses[0] + 0

        return replayed


def test_a_replayed_step_has_no_phases():
    """Its time as a whole is known, and the saved figures say why the rest is not."""
    found = analyse(TINY, (Replay(),), device=CPU, rounds=1, factors=())
    assert found.times.phase_seconds == {}
    assert len(found.times.step_seconds) == 1
    figures = {each.name: each for each in figures_of(found)}
    assert figures["forward_seconds"].values == ()
    assert "replayed" in figures["forward_seconds"].note


def test_a_step_gives_its_memory_back(monkeypatch):
    """No model is alive after its analysis, without waiting for the garbage collector: larger sizes need the room."""
    models = []
    make = MLP.model

    def model(workload):
        made = make(workload)
        models.append(weakref.ref(made))
        return made

    monkeypatch.setattr(MLP, "model", model)
    gc.disable()
    try:
        analyse(TINY, (), device=CPU, rounds=1, factors=(2.0,))
        alive = [each for each in models if each() is not None]
    finally:
        gc.enable()
    assert len(models) == 3
    assert not alive


@pytest.fixture
def tiny_catalogue(monkeypatch):
    """Two small workloads at the command line."""
    small = {"mlp": TINY, "resnet18-cifar-tv": ResNet18(batch_size=2)}
    monkeypatch.setattr("workloads.models.CATALOGUE", small)


@pytest.mark.usefixtures("tiny_catalogue")
@pytest.mark.parametrize("columns", [34, 50, 80, 120])
def test_the_tables_fit_the_terminal(capsys, monkeypatch, columns):
    """Every question has one, at any width."""
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(["analyse", "--workload", "mlp", "--device", "cpu", "--rounds", "1", "--data", "synthetic"]) == 0
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= columns
    assert "…" not in printed
    for title in ("Size, by module", "Memory of a step", "Time, median", "Roofline", "Operators", "Scaling"):
        assert title in printed
    assert "-bound:" in printed


@pytest.mark.usefixtures("tiny_catalogue")
def test_a_model_without_width_says_so(capsys):
    """Its batch is scaled all the same."""
    assert main(["analyse", "--device", "cpu", "--rounds", "1", "--data", "synthetic"]) == 0
    printed = capsys.readouterr().out
    assert "resnet18-cifar-tv has no width to scale" in printed
    assert "batch size" in printed


def test_no_word_and_no_number_is_broken():
    """However narrow the terminal."""
    found = analyse(TINY, (), device=CPU, rounds=1, factors=(2.0,))

    def printed(width):
        console = Console(file=io.StringIO(), width=width)
        for each in tables(TINY, found):
            console.print(each)
        return console.file.getvalue().replace("─", "")

    words = set(printed(200).split())
    for width in range(24, 120):
        assert set(printed(width).split()) <= words, width


def test_a_size_that_cannot_run_is_explained_below_its_table():
    """Not inside a cell, where its sentence would leave no room for the numbers."""
    odd = Transformer(batch_size=2, context=8, width=6, heads=2, depth=1, vocabulary=16)
    shown = list(tables(odd, analyse(odd, (), device=CPU, rounds=1, factors=(0.5,))))
    *_, scaling, reason = shown
    assert ("width", "3", "", "-", "-") in scaling.rows
    assert reason.plain.startswith("width 3: ")
    assert "its first runs fail" in reason.plain


def test_the_whole_and_its_phases_take_turns(monkeypatch):
    """A machine that becomes busy slows both."""
    ran = []
    monkeypatch.setattr(analysis, "seconds_of", lambda work, device: ran.append("whole") or work() or 1.0)
    watched = analysis.watched

    def seen(parts, around):
        ran.append("phases")
        return watched(parts, around)

    monkeypatch.setattr(analysis, "watched", seen)
    analyse(TINY, (), device=CPU, rounds=3, factors=())
    assert ran == ["whole", "phases"] * 3


def test_an_operator_takes_turns_with_the_work_it_is_a_share_of(monkeypatch):
    """On a machine that is half as fast from the third round on, the share is the same in every round."""
    clock = iter([1.0, 2.0, 1.0, 2.0, 2.0, 4.0, 2.0, 4.0])
    monkeypatch.setattr("workloads.analysis.clock.seconds_of", lambda work, device: next(clock))
    ran = []
    own, beside = rounds_beside(lambda: ran.append("own"), lambda: ran.append("roof"), CPU, 4)
    assert [b / a for a, b in zip(own, beside, strict=True)] == [0.5] * 4
    assert ran == ["roof", *["own"] * 4]  # and each as a timed round, which does nothing here


def test_wrong_arguments_are_exit_2_with_a_sentence(capsys):
    """No traceback."""
    assert main(["analyse", "--rounds", "0"]) == 2
    assert "--rounds must be at least 1, got 0" in capsys.readouterr().err
