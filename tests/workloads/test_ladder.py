"""The ladder keeps what pays, says of the rest why not, and ends for nothing."""

import math
import re
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch

from workloads import MLP, NotInEffect, Optimization, Unsuitable, ladder, timing
from workloads.__main__ import main
from workloads.commands.ladder import KINDS, beside, describe
from workloads.ladder import Rung
from workloads.optimizations import AMP, CATALOGUE, Compile, CudnnBenchmark
from workloads.steps import Step
from workloads.timing import Interval, median_interval

CPU = torch.device("cpu")
SMALL = MLP(batch_size=4, width=8, image_size=4)
GAINS = {"quick": 2.0, "slow": 0.5, "even": 1.0, "other": 1.5}


@dataclass(frozen=True)
class Named(Optimization):
    """Does nothing, and says that it does."""

    name: ClassVar[str] = "named"
    label: str = "quick"

    def __str__(self):
        """Its label."""
        return self.label

    def clash(self, other):
        """With nothing."""

    def proof(self, seen):
        """Always."""
        return f"{self.label} is there"


class Broken(Named):
    """Raises when it is applied."""

    def apply(self, parts):
        """Raise."""
        raise ValueError("cannot apply\nmore lines")


class Wrong(Named):
    """Computes something else."""

    def apply(self, parts):
        """Scale the gradients."""
        backward = parts.backward
        parts.backward = lambda loss: backward(loss * 1.5)


class Idle(Named):
    """Is not in effect."""

    def proof(self, seen):
        """Never."""
        raise NotInEffect("nothing was seen")


class Greedy(Named):
    """Wants more memory than there is."""

    def apply(self, parts):
        """Run out."""
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80 GiB")


@pytest.fixture
def speeds(monkeypatch):
    """Speedups by label, in place of measured ones; the pairs that were measured."""
    pairs = []

    def pretended(variant, plain, device, budget_seconds):
        pairs.append((str(variant).rpartition("/")[2], str(plain).rpartition("/")[2]))
        (added,) = set(map(str, variant.optimizations)) - set(map(str, plain.optimizations)) or {"even"}
        gain = GAINS.get(added, 1.0)
        return Interval(low=gain * 0.99, median=gain, high=gain * 1.01)

    monkeypatch.setattr(ladder, "side_by_side", pretended)
    return pairs


def climbed(*candidates, kind="train"):
    """All rungs on a small workload."""
    return list(ladder.climb(SMALL, kind, candidates, CPU, budget_seconds=0.01))


class TestClimb:
    """One technique at a time."""

    def test_what_pays_is_kept_and_multiplied(self, speeds):
        """Each is measured beside the stack so far."""
        rungs = climbed(Named("quick"), Named("slow"), Named("even"), Named("other"))
        assert [rung.kept for rung in rungs] == [True, False, False, True]
        assert [rung.total for rung in rungs] == [2.0, 1.0, 2.0, 3.0]
        assert speeds == [
            ("quick", "plain"),
            ("quick+slow", "quick"),
            ("quick+even", "quick"),
            ("quick+other", "quick"),
        ]

    def test_reasons(self, speeds):
        """The evidence of what is kept; of the rest, whether it is slower or only not faster."""
        rungs = climbed(Named("quick"), Named("slow"), Named("even"))
        assert [rung.reason for rung in rungs] == ["quick is there", "slower", "does not pay"]

    @pytest.mark.parametrize(
        ("candidate", "said"),
        [
            (Broken("broken"), "raised ValueError: cannot apply"),
            (Wrong("wrong"), "wrong result: parameters move 1.500 times as far"),
            (Idle("idle"), "idle is not in effect: nothing was seen"),
            (Greedy("greedy"), "out of memory"),
            (CudnnBenchmark(), "cudnn.benchmark needs a CUDA GPU"),
            (CATALOGUE["workers-2"], "not for train"),
        ],
        ids=lambda each: str(each) if isinstance(each, Optimization) else "",
    )
    def test_a_candidate_that_fails_does_not_end_the_ladder(self, speeds, candidate, said):
        """It says why, and the next is tried."""
        first, second = climbed(candidate, Named("quick"))
        assert said in first.reason
        assert "\n" not in first.reason
        assert first.gain is None
        assert not first.kept
        assert second.kept

    def test_a_clash_with_what_was_kept(self, speeds, monkeypatch):
        """Is said by the techniques."""
        monkeypatch.setitem(GAINS, "sgd-fused", 3.0)
        monkeypatch.setattr(AMP, "unsuitable", lambda self, workload, device: None)
        first, second = climbed(CATALOGUE["sgd-fused"], AMP("float16"))
        assert first.kept
        assert "uninitialised momentum" in second.reason

    @pytest.mark.parametrize(("gain", "kept"), [(1.2, True), (0.9, False)])
    def test_what_decides_the_same_is_tried_in_its_place(self, speeds, monkeypatch, gain, kept):
        """And stays only where it is faster than what was there."""
        monkeypatch.setitem(GAINS, "sgd-foreach", 2.0)
        monkeypatch.setitem(GAINS, "sgd-fused", gain)
        foreach, fused = CATALOGUE["sgd-foreach"], CATALOGUE["sgd-fused"]
        _, second, third = climbed(foreach, fused, Named("other"))
        assert (second.kept, second.instead_of, second.total) == (kept, (foreach,), 2.0 * gain)
        assert speeds[1:] == [
            ("sgd-fused", "sgd-foreach"),
            ("sgd-fused+other", "sgd-fused") if kept else ("sgd-foreach+other", "sgd-foreach"),
        ]
        assert third.total == 1.5 * 2.0 * (gain if kept else 1)
        said = "kept, 2.40x over plain, in place of sgd-foreach" if kept else "slower, in place of sgd-foreach"
        assert describe(second).endswith(said)

    def test_a_gain_must_be_certain(self, monkeypatch):
        """An interval that reaches below 1 % is not kept, however high its middle."""
        unsure = Interval(low=1.005, median=1.8, high=3.0)
        monkeypatch.setattr(ladder, "side_by_side", lambda *arguments: unsure)
        (rung,) = climbed(Named("quick"))
        assert not rung.kept

    def test_inference(self, speeds):
        """Climbs with forward passes."""
        (rung,) = climbed(Named("quick"), kind="inference")
        assert rung.kept

    def test_another_kind(self):
        """Is refused."""
        with pytest.raises(Unsuitable, match="train or inference, not for 'load'"):
            climbed(Named("quick"), kind="load")


class TestLines:
    """What the command prints."""

    REASON = "is not in effect: no convolution produced a channels-last activation"

    @pytest.mark.parametrize(("width", "indent"), [(80, 15), (55, 15), (54, 2), (30, 2)])
    def test_no_line_is_wider_than_the_terminal(self, width, indent):
        """A reason stays in its column, or lies below its name."""
        first, *rest = beside("channels-last", self.REASON, 13, width).splitlines()
        assert max(map(len, [first, *rest])) <= width
        assert all(each.startswith(" " * indent) and each[indent] != " " for each in rest)
        assert " ".join(" ".join([first, *rest]).split()) == f"channels-last {self.REASON}"
        assert (first == "channels-last") is (indent == 2)

    def test_only_what_was_measured_has_a_gain(self, speeds):
        """Anything else its reason alone."""
        failed, kept = climbed(Idle("idle"), Named("quick"))
        assert describe(failed) == "idle is not in effect: nothing was seen"
        assert describe(kept).endswith("  kept, 2.00x over plain")


class TestCandidates:
    """What is tried where nobody chose."""

    @pytest.mark.parametrize("kind", ladder.KINDS)
    def test_of_the_kind_and_in_order(self, kind):
        """Precision first, since layouts pay in one and not in another; then structure first, compilation last."""
        chosen = ladder.default_candidates(kind)
        assert {AMP("bfloat16"), Compile()} <= set(chosen)
        assert all(kind in each.kinds for each in chosen)
        orders = [each.order for each in chosen if str(each) not in ladder.PRECISIONS]
        assert orders == sorted(orders)
        assert {str(each) for each in chosen[: -len(orders)]} <= set(ladder.PRECISIONS)

    def test_none_that_changes_the_model(self):
        """Pruning is faster for another reason."""
        names = {str(each) for kind in ladder.KINDS for each in ladder.default_candidates(kind)}
        assert not [name for name in names if "pruning" in name or "unstructured" in name or "adamw" in name]


class TestTimer:
    """Rounds of two steps, and what is made of them."""

    def test_rounds_alternate(self, monkeypatch):
        """A B B A, after a warm-up of each."""
        order = []
        monkeypatch.setattr(timing, "one_round", lambda step, device: order.append(step) or {"a": 1.0, "b": 2.0}[step])
        gain = timing.side_by_side("a", "b", CPU, 0.0)
        assert "".join(order[-16:]) == "baab" * 4
        assert gain == Interval(low=2.0, median=2.0, high=2.0)

    def test_the_interval_is_that_of_the_sign_test(self):
        """Of 20 values the 6th and the 15th bound the median with 95 % (a table's value)."""
        found = median_interval([math.exp(number) for number in range(1, 21)])
        assert [round(math.log(value), 6) for value in (found.low, found.median, found.high)] == [6.0, 10.5, 15.0]

    def test_a_stray_round_does_not_move_the_median(self):
        """One of many."""
        found = median_interval([1.5] * 19 + [100.0])
        assert (round(found.low, 9), round(found.high, 9)) == (1.5, 1.5)

    def test_a_gpu_is_waited_for(self, monkeypatch):
        """Before the round, and at its end."""
        order = []
        monkeypatch.setattr(torch.cuda, "synchronize", lambda device: order.append("wait"))
        step = SMALL.inference_step()
        monkeypatch.setattr(step, "run", lambda: order.append("run"))
        timing.one_round(step, torch.device("cuda"))
        assert order == ["wait", "run", "wait"]

    def test_dynamos_counter(self):
        """The private counter that a proof of compilation rests on is still there."""
        before = ladder.compiled_graphs()
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        assert ladder.compiled_graphs() == before + 1


class TestCommand:
    """``python -m workloads ladder``."""

    ARGUMENTS = ("ladder", "--workload", "mlp", "--batch-size", "4", "--device", "cpu", "--seconds", "0.01")

    def test_a_line_per_candidate_and_the_stack(self, capsys, monkeypatch):
        """With its speedup over plain and its throughput."""
        gain = Interval(low=1.9, median=2.0, high=2.1)
        monkeypatch.setattr(ladder, "side_by_side", lambda *arguments: gain)
        assert main([*self.ARGUMENTS, "--candidates", "cudnn-benchmark,amp-bf16"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "mlp-b4 train on cpu, 2 candidates"
        assert lines[2].startswith("cudnn-benchmark ")
        assert "needs a CUDA GPU" in lines[2]
        assert lines[3].split() == ["amp-bf16", "2.00x", "(1.90-2.10)", "kept,", "2.00x", "over", "plain"]
        assert lines[4] == "best stack: amp-bf16"
        assert lines[5].startswith("2.00x (1.90-2.10) over plain, ")
        assert re.fullmatch(r"\S+ TFLOP/s of the model", lines[6])
        assert re.fullmatch(r"\S+% of the fastest bfloat16 matrix product here, \S+ TFLOP/s \(MFU\)", lines[7])

    def test_utilization_is_the_models_flops_over_the_measured_peak(self, monkeypatch):
        """Per second: 2 steps of 3 products of 4 x 48 x 10 and so on, over a peak that was made up."""
        peaks = SimpleNamespace(flops_per_second={"float32": 1e6})
        monkeypatch.setattr(ladder, "measured_peaks", lambda device, precisions: peaks)
        monkeypatch.setattr(ladder, "median_seconds", lambda *arguments: 0.5)
        monkeypatch.setattr(ladder, "side_by_side", lambda *arguments: Interval(low=1, median=1, high=1))
        best = ladder.summit(SMALL, "inference", [Named("quick")], CPU, 0.01)
        layers = self.layers()
        flops = sum(2 * 4 * each.in_features * each.out_features for each in layers)
        assert best.flops_per_second == 2 * flops
        assert best.utilization == 2 * flops / 1e6
        assert (best.samples_per_second, best.precision) == (8.0, "float32")

    def layers(self):
        """Of the small workload."""
        return [each for each in SMALL.model().modules() if isinstance(each, torch.nn.Linear)]

    def test_utilization_in_training(self, monkeypatch):
        """Two products more per layer, but the first, whose input needs no gradient; in the stack's precision."""
        asked = []
        peaks = SimpleNamespace(flops_per_second={"bfloat16": 1e6})
        monkeypatch.setattr(ladder, "measured_peaks", lambda device, precisions: asked.extend(precisions) or peaks)
        monkeypatch.setattr(ladder, "median_seconds", lambda *arguments: 1.0)
        monkeypatch.setattr(ladder, "side_by_side", lambda *arguments: Interval(low=1, median=1, high=1))
        best = ladder.summit(SMALL, "train", [AMP()], CPU, 0.01)
        flops = [2 * 4 * each.in_features * each.out_features for each in self.layers()]
        assert best.flops_per_second == 3 * sum(flops) - flops[0]
        assert asked == ["bfloat16"]

    def test_what_left_the_stack_is_not_in_the_best(self, capsys, monkeypatch):
        """Neither in the line nor in what is measured."""
        rungs = [
            Rung(technique=CATALOGUE["sgd-foreach"], kept=True, reason=""),
            Rung(
                technique=CATALOGUE["sgd-fused"],
                kept=True,
                reason="",
                instead_of=(CATALOGUE["sgd-foreach"],),
            ),
        ]
        measured = []
        monkeypatch.setattr(ladder, "climb", lambda *arguments, **named: iter(rungs))
        monkeypatch.setattr(ladder, "summit", lambda workload, kind, stack, *rest: measured.extend(stack))
        monkeypatch.setattr("workloads.commands.ladder.conclusion", lambda best: "")
        assert main([*self.ARGUMENTS, "--candidates", "sgd-foreach,sgd-fused"]) == 0
        assert "best stack: sgd-fused\n" in capsys.readouterr().out
        assert list(map(str, measured)) == ["sgd-fused"]

    def test_trying_algorithms_is_measured_in_threads_of_their_own(self, speeds, monkeypatch):
        """Both steps, or the first to run would decide for both; other candidates stay in this thread."""
        apart = []
        monkeypatch.setattr(CudnnBenchmark, "unsuitable", lambda self, workload, device: None)
        monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device", nullcontext)
        real = Step.run_apart
        monkeypatch.setattr(Step, "run_apart", lambda self: apart.append(str(self).rpartition("/")[2]) or real(self))
        monkeypatch.setitem(GAINS, "cudnn-benchmark", 2.0)
        _, second = climbed(Named("slow"), CudnnBenchmark())
        assert second.kept, second.reason
        assert apart == ["plain", "cudnn-benchmark"]

    def test_the_command_has_the_ladders_kinds(self):
        """Which it names without loading torch."""
        assert KINDS == ladder.KINDS

    def test_nothing_pays(self, capsys):
        """Then plain is the best."""
        assert main([*self.ARGUMENTS, "--candidates", "cudnn-benchmark"]) == 0
        assert "nothing pays" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [(["--candidates", "turbo"], "no optimization is called turbo"), (["--seconds", "0"], "--seconds must be")],
    )
    def test_wrong_arguments(self, capsys, arguments, said):
        """Exit 2 and a sentence."""
        assert main([*self.ARGUMENTS, *arguments]) == 2
        assert said in capsys.readouterr().err
