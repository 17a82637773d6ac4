"""The memory split: known allocations give known shares, and the shares add up to the measured peak."""

import pytest
import torch
from torch import nn

from workloads import MLP, ResNet18, Transformer
from workloads.analysis.counting import prepare
from workloads.analysis.ledger import Ledger
from workloads.analysis.memory import Memory, MemoryShare, cuda_peak_bytes, memory_of, resident_bytes
from workloads.analysis.profiling import MARK, highest_level, profile_of
from workloads.optimizations import AMP

CPU = torch.device("cpu")
WORKLOADS = [
    MLP(batch_size=16, width=64),
    ResNet18(batch_size=4),
    Transformer(batch_size=2, context=16, width=32, depth=2),
]


def measured(workload, *optimizations):
    """The split beside the profiler's peak."""
    step = workload.train_step(*optimizations)
    prepare(step, CPU)
    with step.active():
        peak = resident_bytes(step) + profile_of(step.run, CPU, rounds=1).transient_bytes
        return memory_of(step, peak)


@pytest.mark.parametrize("optimizations", [(), (AMP(),)], ids=["plain", "amp"])
@pytest.mark.parametrize("workload", WORKLOADS, ids=str)
def test_the_shares_add_up_to_the_measured_peak(workload, optimizations):
    """Within 3 %: what operators take inside themselves is not seen, and nothing is counted twice."""
    found = measured(workload, *optimizations)
    assert found.agreement == pytest.approx(1.0, abs=0.03)


def test_what_stays_between_steps_is_as_large_as_the_model():
    """Gradients, and one momentum per parameter; the batch."""
    found = measured(WORKLOADS[0])
    parameters = 4 * (3072 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10)
    assert found["parameters"].whole_bytes == parameters
    assert found["gradients"].whole_bytes == parameters
    assert found["optimizer state"].whole_bytes == parameters
    assert found["batch"].whole_bytes == 16 * 3072 * 4 + 16 * 8


def test_activations_are_what_autograd_keeps():
    """Of a linear layer between two ReLUs: both ReLUs' outputs and the loss's own."""
    found = measured(WORKLOADS[0])
    relus, log_probabilities, total_weight = 2 * 16 * 64 * 4, 16 * 10 * 4, 4
    assert found["activations"].whole_bytes == relus + log_probabilities + total_weight


def test_activations_grow_with_the_batch_and_parameters_do_not():
    """Twice and once."""
    small, large = measured(MLP(batch_size=16, width=64)), measured(MLP(batch_size=32, width=64))
    assert large["activations"].whole_bytes > 1.9 * small["activations"].whole_bytes
    assert large["parameters"].whole_bytes == small["parameters"].whole_bytes


def test_a_storage_is_followed_to_its_end():
    """The peak is of what lived at the same time; a view is its base."""
    ledger = Ledger(CPU)
    with ledger:
        for _ in range(3):
            first = torch.zeros(1000)
            view = first.view(10, 100)
            del first, view
        kept = torch.zeros(500)
        other = torch.zeros(700)
    assert ledger.peak_bytes == 4 * (500 + 700)
    assert sum(each.size_bytes for each in ledger.at_peak) == 4 * (500 + 700)
    assert len(kept) + len(other) == 1200


def test_saved_tensors_and_gradients_are_told_from_temporary_ones():
    """By autograd's own hooks, which are gone afterwards."""
    layer, inputs = nn.Linear(10, 20), torch.ones(5, 10)
    ledger = Ledger(CPU)
    ledger.enter_all(layer.parameters(), "parameters")
    ledger.enter_all([inputs], "batch")
    with ledger.following(layer):
        layer(inputs).exp().sum().backward()
    assert [each.size_bytes for each in ledger.saved] == [5 * 20 * 4]
    assert {ledger.enter(each.grad).purpose for each in layer.parameters()} == {"gradients"}
    assert not layer.weight._post_accumulate_grad_hooks


def memory_event(moment, size, device=0):
    """One allocation of an exported trace."""
    return {"name": "[memory]", "ts": moment, "args": {"Device Type": device, "Bytes": size}}


def test_the_highest_level_of_the_last_mark():
    """Allocations outside of it, and a GPU's, do not count."""
    trace = [
        {"name": MARK, "ts": 0, "dur": 5},
        memory_event(2, 9_000),
        {"name": MARK, "ts": 10, "dur": 10},
        memory_event(11, -400),
        memory_event(12, 1_000),
        memory_event(13, 5_000, device=1),
        memory_event(14, -200),
        memory_event(15, 300),
        memory_event(30, 8_000),
    ]
    assert highest_level(trace) == 1_000 - 400 - 200 + 300
    with pytest.raises(LookupError, match=MARK):
        highest_level([memory_event(1, 2)])


def test_the_exported_trace_still_tells_allocations():
    """The canary of the trace's format: known allocations give the known peak."""

    def step():
        first = torch.empty(1000, dtype=torch.uint8)
        second = torch.empty(5000, dtype=torch.uint8)
        del first, second

    found = profile_of(step, CPU, rounds=2)
    assert found.transient_bytes == 6000
    assert len(found.seconds) == 2


def test_the_profilers_chatter_does_not_reach_the_user(capfd):
    """Its libraries write to the standard error themselves."""
    profile_of(lambda: torch.ones(10), CPU, rounds=1)
    assert not capfd.readouterr().err


def test_a_gpus_peak_is_the_allocators_own(monkeypatch):
    """What others hold in the process does not count."""
    step = MLP(batch_size=4, width=8, image_size=4).train_step()
    prepare(step, CPU)
    step.parts.device = torch.device("cuda", 0)
    asked = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: asked.append("wait"))
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda _: asked.append("reset"))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 5_000)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 5_600)
    assert cuda_peak_bytes(step) == 600  # the fake GPU holds none of the step's tensors
    assert asked == ["wait", "reset", "wait"]


def test_workspace_is_the_measured_peak_less_the_shares():
    """And the agreement their ratio."""
    shares = (MemoryShare(purpose="parameters", whole_bytes=60, at_peak_bytes=60),)
    found = Memory(shares=shares, measured_peak_bytes=80)
    assert (found.seen_peak_bytes, found.workspace_bytes, found.agreement) == (60, 20, 0.75)
