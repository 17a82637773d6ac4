"""cuDNN's flags: set while the step runs, put back, and read by the proof."""

import threading
from contextlib import nullcontext

import pytest
import torch

from perfgate.measure.counters import count_eager, count_uncompiled
from workloads import MLP, NotInEffect
from workloads.apart import OwnThread
from workloads.comparison import Comparison
from workloads.optimizations import AMP, CudnnBenchmark, CudnnDeterministic, OwnPlans

FLAGS = [CudnnBenchmark(), CudnnDeterministic()]


@pytest.mark.parametrize("technique", FLAGS, ids=str)
def test_flag_holds_while_the_step_runs(technique):
    """And only then."""
    before = torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic
    with technique.active():
        assert getattr(torch.backends.cudnn, technique.flag)
    assert (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic) == before


@pytest.mark.parametrize("technique", FLAGS, ids=str)
def test_proof_reads_the_flag(technique, monkeypatch):
    """On a machine that has cuDNN."""
    monkeypatch.setattr(torch.backends.cudnn, "is_available", lambda: True)
    with technique.active():
        assert technique.proof(None) == f"cudnn.{technique.flag} read back as on"
    with pytest.raises(NotInEffect, match=f"{technique.flag} reads back as off"):
        technique.proof(None)


def test_both_can_be_stacked():
    """cuDNN then tries deterministic algorithms only; alone, determinism is expected to cost."""
    assert CudnnBenchmark().clash(CudnnDeterministic()) is None
    assert CudnnDeterministic().clash(CudnnBenchmark()) is None
    assert MLP().train_step(CudnnDeterministic()).expected_against(MLP().train_step()) == "slower"


CPU = torch.device("cpu")


@pytest.fixture
def no_device(monkeypatch):
    """A thread that does not choose its GPU, since there is none."""
    monkeypatch.setattr(torch.cuda, "device", nullcontext)


def built(step):
    """On the CPU, whatever it says of it."""
    step.build(CPU)
    return step


def test_steps_with_plans_of_their_own_run_in_one_thread_each(no_device, monkeypatch):
    """All of a step's calls in the same one, no two steps in the same, and backward there too."""
    seen = {}
    real = torch.autograd.set_multithreading_enabled

    def noted(*, mode):
        seen.setdefault(current, set()).add((threading.get_ident(), mode))
        return real(mode)

    monkeypatch.setattr(torch.autograd, "set_multithreading_enabled", noted)
    steps = [built(MLP().train_step(OwnPlans())) for _ in range(2)]
    for current, step in enumerate(steps * 2):
        current %= 2  # noqa: PLW2901
        step.run()
    threads = [{ident for ident, _ in each} for each in seen.values()]
    assert [len(each) for each in threads] == [1, 1]
    assert not threads[0] & threads[1]
    assert threading.get_ident() not in threads[0] | threads[1]
    assert {mode for each in seen.values() for _, mode in each} == {False}


@pytest.mark.parametrize("method", ["train_step", "inference_step"])
def test_the_result_is_the_plain_steps(no_device, method):
    """In training, and without gradients in inference."""
    step, plain = (built(getattr(MLP(), method)(*stack)) for stack in ((OwnPlans(),), ()))
    ours, theirs = step.outcome().tensors, plain.outcome().tensors
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    with pytest.raises(NotInEffect, match="no step ran"):
        OwnPlans().proof(type("", (), {"parts": built(MLP().train_step()).parts}))
    assert step.proof({}) == {"own-plans": "each step ran in a thread of its own"}


def test_gradients_are_on_where_the_caller_has_them_on(no_device):
    """Grad mode is kept per thread."""
    thread = OwnThread(CPU)
    with torch.no_grad():
        assert thread.call(torch.is_grad_enabled) is False
    assert thread.call(torch.is_grad_enabled) is True


def test_the_thread_is_on_its_device(monkeypatch):
    """Or all would run on the first GPU."""
    chosen = []
    monkeypatch.setattr(torch.cuda, "device", lambda device: chosen.append(device) or nullcontext())
    OwnThread(torch.device("cuda", 3)).call(lambda: None)
    assert chosen == [torch.device("cuda", 3)]


def test_its_operators_are_counted(no_device):
    """Torch's profiler does not see those of other threads; the same step in this one has as many."""
    step = built(MLP().train_step(OwnPlans()))
    step.run()
    counts = count_uncompiled(step.run_uncompiled)
    plain = built(MLP().train_step())
    plain.run()
    assert counts.operators == count_eager(plain.run).operators


def test_an_error_comes_back_from_the_thread(no_device):
    """As it was raised."""
    step = built(MLP().train_step(OwnPlans()))
    step.parts.forward = lambda inputs: 1 / 0
    with pytest.raises(ZeroDivisionError):
        step.run()


def test_trying_is_measured_with_plans_of_its_own_on_both_sides():
    """Or the first of the two would decide for both."""
    found = Comparison(workload=MLP(), kind="train", technique=CudnnBenchmark())
    assert str(found.step).endswith("/cudnn-benchmark+own-plans")
    assert str(found.against).endswith("/own-plans")
    assert found.step.expected_against(found.against) == CudnnBenchmark.expected


def test_plans_of_its_own_stand_beside_cudnns_switches_only():
    """Other techniques have state per thread; and there is no cuDNN on a CPU."""
    assert OwnPlans().clash(CudnnDeterministic()) is None
    assert "not to be stacked with amp-bf16" in OwnPlans().clash(AMP())
    assert "cuDNN is not used on a CPU" in OwnPlans().unsuitable(MLP(), CPU)
