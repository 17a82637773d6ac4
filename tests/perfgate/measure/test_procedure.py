"""What one measurement of a step holds beyond its times: figures, titles, compile costs, proofs of the twin."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

from perfgate.errors import CannotCompile, NotInEffect
from perfgate.measure.clock import Timing
from perfgate.measure.compilation import break_even, compile_times
from perfgate.measure.counters import compiler_complaint
from perfgate.measure.measurements import figure, speedup
from perfgate.measure.procedure import Plan, Subject, measure_step
from tests.perfgate.measure.fakes import FakeBenchmark
from workloads import MLP
from workloads.optimizations import AMP, Compile, PerSample, ReadLoss
from workloads.steps import Figure, TrainStep

TINY = MLP(batch_size=4, width=8, image_size=4)
SMOKE = Plan(device=torch.device("cpu"), gpu=None, smoke=True, warmup_seconds=0.01, timed_seconds=0.01)
REAL = Plan(device=torch.device("cpu"), gpu=None, smoke=False, warmup_seconds=0.01, timed_seconds=0.01)


def measured(step, against=None, plan=SMOKE):
    """The record."""
    subject = Subject(name="benches/test_a.py::test_b", group="a", step=step, against=against)
    return measure_step(FakeBenchmark(), subject, plan)


def timings(*seconds):
    """Rounds without a GPU."""
    return [Timing(each, None) for each in seconds]


class Told(TrainStep):
    """Knows something of its own."""

    def figures(self):
        yield Figure(name="starvation_share", unit="1", values=(0.25, 0.75), better="lower")
        yield Figure(name="largest_batch", unit="count", values=(512,), better="higher", exact=True)
        yield Figure(name="unknown_share", unit="1", values=(), note="no loader")


def test_what_only_the_subject_knows_is_saved():
    """Noisy figures as samples, exact ones as counts, unknown ones with their reason."""
    record = measured(Told(TINY))
    share, batch = record.measurement("starvation_share"), record.measurement("largest_batch")
    assert (share.kind, share.values, share.better) == ("sampled", (0.25, 0.75), "lower")
    assert (batch.kind, batch.values, batch.better) == ("counted", (512,), "higher")
    assert record.measurement("unknown_share") is None
    assert figure(Figure(name="a", unit="1", values=(), note="no loader")).note == "no loader"


def test_several_exact_values_are_not_one_count():
    """A count has one value."""
    assert figure(Figure(name="a", unit="count", values=(1, 2), exact=True)).kind == "sampled"


def test_the_record_names_a_twin_that_is_not_plain():
    """Plain against a bad habit would otherwise be called plain."""
    assert (
        measured(TINY.train_step(), TINY.train_step(ReadLoss())).step == "mlp-b4-imagesize4-width8/train/plain vs item"
    )
    assert measured(TINY.train_step(AMP()), TINY.train_step()).step == "mlp-b4-imagesize4-width8/train/amp-bf16"


def test_the_twin_must_prove_its_techniques_too():
    """A habit that is not there costs nothing."""

    @dataclass(frozen=True)
    class Absent(PerSample):
        def apply(self, parts):
            pass

    evidence = measured(TINY.train_step(), TINY.train_step(PerSample())).evidence
    assert evidence["plain: per-sample"] == "one forward pass per sample"
    with pytest.raises(NotInEffect, match="per-sample is not in effect"):
        measured(TINY.train_step(), TINY.train_step(Absent()))


def test_the_habit_is_expected_to_be_the_slower_one():
    """So the step without it is expected to be faster."""
    assert measured(TINY.train_step(), TINY.train_step(PerSample())).expected == "faster"
    assert measured(TINY.train_step()).expected == "any"


def test_proofs_may_ask_for_the_peaks_of_both():
    """Techniques that save memory are proven by it."""
    seen = {}

    class Asking(TrainStep):
        def proof(self, counts):
            seen.update(counts)
            return {}

    record = measured(Asking(TINY), TINY.train_step())
    assert seen["peak_bytes"] == record.measurement("peak_bytes").values[0]
    assert seen["plain_peak_bytes"] == record.measurement("plain_peak_bytes").values[0]


def test_speedup_is_per_sample_where_the_batches_differ():
    """Twice the samples in the same time are twice as fast."""
    assert speedup(timings(1.0, 1.0), timings(1.0, 1.0), samples_ratio=2.0).values == (2.0,)
    double = MLP(batch_size=8, width=8, image_size=4)

    class Alike(TrainStep):
        def outcome(self):
            return SimpleNamespace(kind="identical", tensors={"a": torch.ones(1)})

        def reference_outcome(self, variant):
            return self.outcome()

    record = measured(Alike(double), Alike(TINY), REAL)
    plain, ours = record.measurement("plain_wall_seconds").values, record.measurement("wall_seconds").values
    pairs = [
        (2 * a / b) * (2 * c / d) for a, b, c, d in zip(plain[::2], ours[::2], plain[1::2], ours[1::2], strict=True)
    ]
    assert record.measurement("speedup").values == pytest.approx([pair**0.5 for pair in pairs], rel=1e-5)


def test_compile_times_are_what_the_first_calls_took_beyond_a_steady_round():
    """With an empty cache and with a filled one; a warm start cannot take less than nothing."""
    cold, warm = compile_times(10.5, 2.5, timings(0.5, 0.5, 0.5))
    assert (cold.values, warm.values) == ((10.0,), (2.0,))
    assert compile_times(10.5, 0.4, timings(0.5))[1].values == (0.0,)
    assert "smoke" in compile_times(10.5, None, timings(0.5))[1].note


def test_steps_until_compiling_has_paid():
    """None where a step is not faster."""
    assert break_even(10.25, timings(0.25, 0.25), timings(0.5, 0.5)).values == (40,)
    never = break_even(10.0, timings(0.5), timings(0.5))
    assert (never.values, never.note) == ((), "never: a compiled step is not faster here")


@pytest.mark.compile
def test_a_compiled_step_is_measured_cold_and_warm():
    """And its warm start is not counted as a recompilation."""
    record = measured(TINY.inference_step(Compile()), TINY.inference_step(), REAL)
    assert record.measurement("compile_seconds").values[0] > 0
    assert record.measurement("warm_compile_seconds").values
    assert record.measurement("recompilations").values == (0,)
    assert record.measurement("compiled_graphs").values == (1,)


def broken(self, x):
    """Breaks the graph where none may be broken."""
    torch._dynamo.graph_break()
    return torch.nn.Sequential.forward(self, x)


def test_a_model_that_cannot_be_compiled_says_so():
    """In a sentence with the compiler's own reason."""

    class Breaking(MLP):
        def model(self):
            made = super().model()
            made.__class__ = type("Broken", (torch.nn.Sequential,), {"forward": broken})
            return made

    workload = Breaking(batch_size=4, width=8, image_size=4)
    with pytest.raises(CannotCompile, match=r"compile-fullgraph cannot be compiled: .*(?i:graph)"):
        measured(workload.inference_step(Compile(fullgraph=True)), workload.inference_step())
    assert compiler_complaint(ValueError("no")) is None


def test_an_error_of_the_first_call_names_the_step():
    """Whatever it is."""

    class Narrow(MLP):
        def model(self):
            return torch.nn.Linear(7, 10)

    with pytest.raises(RuntimeError, match="shapes") as caught:
        measured(Narrow(batch_size=4, width=8, image_size=4).train_step())
    assert caught.value.__notes__ == ["in the first call of mlp-b4-imagesize4-width8/train/plain"]
