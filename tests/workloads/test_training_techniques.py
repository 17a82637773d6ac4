"""Techniques of the training step: updates, splitting the batch, checkpointing, threads, habits, CUDA graphs."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from tests.workloads.contract import Tiny, composed
from workloads import MLP, NotInEffect, Transformer, Unsuitable
from workloads.optimizations import (
    AMP,
    Checkpointing,
    Compile,
    CopyEachStep,
    CudaGraph,
    EmptyCache,
    GradientAccumulation,
    PerSample,
    ReadLoss,
    Threads,
    Update,
)
from workloads.workload import clashes

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
TINY = MLP(batch_size=4, width=8, image_size=4)


def built(step, device=CPU):
    """The step, ready to run."""
    step.build(device)
    return step


def movement(step):
    """All parameters' movement in one checked step, in one vector."""
    return torch.cat([each.flatten() for each in step.outcome().tensors.values()])


@pytest.mark.parametrize("algorithm", ["sgd", "adamw"])
def test_an_update_that_is_another_than_asked_for_is_noticed(algorithm):
    """By the operators that it dispatches."""
    step = TINY.train_step(Update("fused", algorithm))
    built(step)
    step._optimizer = torch.optim.SGD(step.parts.model.parameters(), lr=0.1, foreach=False)
    step._call = lambda: step._step(step.parts, step._optimizer)
    with pytest.raises(NotInEffect, match="dispatched for-loop operators"):
        step.proof({})


def test_the_algorithm_reaches_the_timed_and_the_checked_step():
    """AdamW with a large epsilon moves in proportion to the gradient, so that a wrong scale shows."""
    step = built(TINY.train_step(Update("foreach", "adamw")))
    assert type(step._optimizer) is torch.optim.AdamW
    plain = movement(step)
    step.parts.backward = lambda loss: (1.5 * loss).backward()
    assert float(movement(step).norm() / plain.norm()) == pytest.approx(1.5, rel=0.05)


@pytest.mark.parametrize("arguments", [("vectorised",), ("fused", "lion")])
def test_unknown_updates_are_refused(arguments):
    """With those there are."""
    with pytest.raises(Unsuitable, match="expected one of"):
        Update(*arguments)


def test_accumulated_gradients_are_those_of_the_batch():
    """And so is the loss; the model sees parts."""
    plain, parts = built(TINY.train_step()), built(TINY.train_step(GradientAccumulation(2)))
    plain.run()
    parts.run()
    assert torch.allclose(plain.last_value(), parts.last_value())
    assert torch.allclose(movement(plain), movement(parts), atol=1e-6)
    assert len(parts._outputs) == 2


def test_a_loss_that_sums_is_noticed():
    """Accumulation averages the parts, which is right only for losses that are means."""

    class Summing(MLP):
        def loss(self, outputs, targets):
            return torch.nn.functional.cross_entropy(outputs, targets, reduction="sum")

    from perfgate.errors import WrongResult

    with pytest.raises(WrongResult, match=r"0\.5"):
        composed(Summing(batch_size=4, width=8, image_size=4), "train", (GradientAccumulation(2),), CPU)


def test_a_batch_that_cannot_be_divided_says_so():
    """Unequal parts would weigh samples unequally."""
    assert "not divisible into 4" in MLP(batch_size=6).train_step(GradientAccumulation(4)).unsuitable(CPU)
    with pytest.raises(Unsuitable, match="at least 2"):
        GradientAccumulation(1)


def test_two_ways_of_splitting_the_batch_exclude_each_other():
    """Either would undo the other."""
    reason = TINY.train_step(GradientAccumulation(2), PerSample()).unsuitable(CPU)
    assert reason == "accumulate-2 and per-sample both decide the splitting of the batch: choose one"


@pytest.mark.parametrize("technique", [GradientAccumulation(2), PerSample()], ids=str)
def test_a_batch_that_is_not_split_is_noticed(technique):
    """By the size of the outputs."""
    step = built(TINY.train_step(technique))
    step.parts.gradients = built(TINY.train_step()).parts.gradients
    with pytest.raises(NotInEffect, match="of 4 samples"):
        step.proof({})


def test_checkpointing_saves_bytes_and_needs_blocks():
    """It says how many; a model without blocks says what to do."""
    proof = built(Tiny().train_step(Checkpointing())).proof({})["checkpoint"]
    saved, plain = (int(word.replace(",", "")) for word in proof.split() if word[0].isdigit())
    assert 0 < saved < plain
    assert "override blocks()" in TINY.train_step(Checkpointing()).unsuitable(CPU)


def test_checkpointing_is_proven_by_the_peak_where_that_is_known():
    """Fewer saved bytes that save no memory are no effect."""
    step = built(Tiny().train_step(Checkpointing()))
    with pytest.raises(NotInEffect, match="the peak is 10 bytes"):
        step.proof({"peak_bytes": 10, "plain_peak_bytes": 10})
    assert step.proof({"peak_bytes": 9, "plain_peak_bytes": 10})


def test_checkpoints_that_are_none_are_noticed(monkeypatch):
    """All activations are saved as before."""
    monkeypatch.setattr("workloads.optimizations.checkpointing.checkpoint", lambda forward, x, **_: forward(x))
    with pytest.raises(NotInEffect, match="bytes are saved"):
        built(Tiny().train_step(Checkpointing())).proof({})


def test_threads_hold_while_the_step_runs():
    """And are put back."""
    before = torch.get_num_threads()
    with Threads(2).active():
        assert torch.get_num_threads() == 2
        assert "read back as 2" in Threads(2).proof(None)
    assert torch.get_num_threads() == before
    with pytest.raises(NotInEffect):
        Threads(before + 1).proof(None)
    assert "change nothing on a GPU" in Threads(1).unsuitable(TINY, CUDA)


def test_reading_the_loss_is_seen():
    """Its number is kept; a step that does not read it is noticed."""
    step = built(TINY.train_step(ReadLoss()))
    assert step.proof({})
    step._call = built(TINY.train_step()).call
    step.parts.notes.clear()
    with pytest.raises(NotInEffect, match="was not read"):
        step.proof({})


def test_the_cache_is_emptied_in_every_step(monkeypatch):
    """On a GPU; here the call is counted."""
    calls = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append(1))
    step = built(TINY.train_step(EmptyCache()))
    with pytest.raises(NotInEffect, match="not called"):
        EmptyCache().proof(SimpleNamespace(parts=step.parts))
    step.run()
    step.run()
    assert len(calls) == 2
    assert step.proof({})


def test_the_batch_is_copied_in_every_step():
    """To a new place each time; where copies are counted, there must be two."""
    step = built(TINY.train_step(CopyEachStep()))
    step.run()
    first = step.parts.inputs
    assert step.proof({"copies_to_device": 2})
    assert torch.equal(first, step.parts.inputs)
    with pytest.raises(NotInEffect, match="0 copies"):
        step.proof({"copies_to_device": 0})


class FakeGraph:
    """Replays by calling again what was called while it captured."""

    calls: list = []  # noqa: RUF012

    def replay(self):
        for call in self.calls:
            call()


@pytest.fixture
def graphs(monkeypatch):
    """torch.cuda with graphs that only remember: what happens inside a capture is undone, as nothing runs there."""
    stream = SimpleNamespace(wait_stream=lambda other: None)
    captured = []

    @contextmanager
    def capture(graph):
        captured.append(graph)
        yield

    monkeypatch.setattr(torch.cuda, "Stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: capture(None))
    monkeypatch.setattr(torch.cuda, "CUDAGraph", FakeGraph)
    monkeypatch.setattr(torch.cuda, "graph", capture)
    return captured


@pytest.mark.parametrize("stack", [(), (Update("foreach", "adamw"),)], ids=["sgd", "adamw"])
def test_a_graph_is_captured_once_from_the_state_before(graphs, stack):
    """Warm-up steps leave no trace in the model nor in the optimizer's state."""
    step = built(Tiny().train_step(*stack))
    before = {name: each.clone() for name, each in step.parts.model.state_dict().items()}
    seen = []
    parts, optimizer = step.parts, step._optimizer
    inner = lambda: step._step(parts, optimizer)  # noqa: E731
    calls = []

    def call():
        if calls.count(1) == 3:  # the capture itself, which runs nothing
            seen.append({name: each.clone() for name, each in parts.model.state_dict().items()})
            seen.append([v for s in optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)])
            return torch.zeros(())
        calls.append(1)
        return inner()

    wrapped = CudaGraph().wrap(parts, call, optimizer)
    wrapped()
    wrapped()
    assert all(torch.equal(seen[0][name], each) for name, each in before.items())
    assert seen[1]
    assert not any(bool(value.any()) for value in seen[1])
    assert sum(graph is not None for graph in graphs) == 1


def test_a_captured_step_is_counted_on_the_eager_one(graphs):
    """A replay dispatches no operator; habits around the step stay."""
    from torch.utils.flop_counter import FlopCounterMode

    step = built(TINY.train_step(CudaGraph(), ReadLoss()))
    step._call = lambda: torch.zeros(())  # a replay
    with FlopCounterMode(display=False) as counter:
        step.run()
    assert counter.get_total_flops() == 0
    with FlopCounterMode(display=False) as counter:
        step.run_uncompiled()
    assert counter.get_total_flops() > 0
    assert "item" in step.parts.notes
    assert float(step.call()) == 0


def test_an_optimizer_in_a_graph_counts_its_steps_on_the_device():
    """AdamW must be asked to; SGD counts none."""
    parts = built(TINY.train_step(Update("fused", "adamw"))).parts
    CudaGraph().apply(parts)
    assert parts.optimizer_arguments == {"fused": True, "capturable": True}


def test_launches_beside_the_graph_are_noticed(graphs):
    """A graph that was captured but holds only a part of the step is not the whole step."""
    step = built(TINY.train_step(CudaGraph()))
    seen = SimpleNamespace(parts=step.parts, counts={"graph_launches": 1, "kernel_launches": 1})
    with pytest.raises(NotInEffect, match="no graph was captured"):
        CudaGraph().proof(seen)
    step.parts.notes["cuda-graph"] = True
    assert CudaGraph().proof(seen) == "one graph launch per step"
    seen.counts["kernel_launches"] = 7
    with pytest.raises(NotInEffect, match="6 launches of kernels beside"):
        CudaGraph().proof(seen)


@pytest.mark.parametrize("other", [AMP("float16"), Compile("reduce-overhead"), Compile("max-autotune"), CopyEachStep()])
def test_what_cannot_be_captured_says_so(other):
    """Whichever is named first."""
    from workloads.workload import clashes

    assert clashes([CudaGraph(), other])
    assert clashes([other, CudaGraph()])
    assert not clashes([CudaGraph(), AMP()])


def test_blocks_are_the_outermost_composite_members_of_lists():
    """Two residual blocks, four of the transformer; none in a flat network."""
    assert len(Tiny().blocks(Tiny().model())) == 2
    assert len(Transformer().blocks(Transformer().model())) == 4
    assert TINY.blocks(TINY.model()) == []


def test_float16_without_a_scaler_is_noticed(monkeypatch):
    """Its small gradients would vanish without a word."""
    monkeypatch.setattr(AMP, "_scale", lambda self, parts: None)
    step = built(TINY.train_step(AMP("float16")))
    with pytest.raises(NotInEffect, match="no GradScaler scaled the loss"):
        step.proof({})


def test_the_scale_is_told():
    """As the scaler has it."""
    assert "the loss was scaled by 65536" in built(TINY.train_step(AMP("float16"))).proof({})["amp-fp16"]


def test_an_update_without_momentum_is_noticed():
    """The first step cannot tell, the second one does."""
    from perfgate.errors import WrongResult

    class Forgetful(Update):
        def apply(self, parts):
            super().apply(parts)
            parts.optimizer_arguments["momentum"] = 0.0

    with pytest.raises(WrongResult):
        composed(TINY, "train", (Forgetful("foreach"),), CPU)


def test_a_loss_that_nobody_read_is_noticed():
    """A number alone proves nothing."""

    class Pretending(ReadLoss):
        def wrap(self, parts, call, optimizer):
            parts.notes[self.name] = 0.5
            return call

    with pytest.raises(NotInEffect, match="was not read"):
        built(TINY.train_step(Pretending())).proof({})


@pytest.mark.parametrize("splitting", [GradientAccumulation(2), PerSample()], ids=str)
@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune"])
def test_graphs_of_the_compiler_cannot_take_a_batch_in_parts(splitting, mode):
    """The second part would overwrite what the first one's gradients need."""
    assert "use compile" in Compile(mode).clash(splitting)
    assert Compile().clash(splitting) is None


def test_a_weight_that_two_layers_share_is_not_pruned():
    """The two would part; of a tied transformer the head stays whole."""
    from workloads.optimizations import L1Pruning

    tied, free = (Transformer(depth=1, tied=each).skeleton() for each in (True, False))
    chosen = L1Pruning(0.5, layers="linear").chosen
    assert len(chosen(tied)) == len(chosen(free)) - 1


class Attending(MLP):
    """torch's own transformer layer, whose attention reads its last weight without calling the layer."""

    def model(self):
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        return torch.nn.Sequential(
            torch.nn.Flatten(2), torch.nn.Linear(16, 16), layer, torch.nn.Flatten(), torch.nn.Linear(48, 10)
        )


@pytest.mark.parametrize("scope", ["layer", "global"])
def test_the_last_layer_of_torchs_own_attention_is_not_pruned(scope):
    """A mask would not reach it in training."""
    from workloads.optimizations import L1Pruning

    workload = Attending(batch_size=4, image_size=4)
    assert isinstance(composed(workload, "train", (L1Pruning(0.5, scope, "all"),), CPU), dict)


def test_an_activation_that_may_not_be_in_place_is_skipped_with_its_reason():
    """Autograd's own error, told as what it means."""
    from workloads.optimizations import InPlace
    from workloads.workload import Inapplicable

    class Needed(MLP):
        def model(self):
            return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 10), torch.nn.Sigmoid(), torch.nn.ReLU())

    step = built(Needed(batch_size=4, image_size=4).train_step(InPlace()))
    with pytest.raises(Inapplicable, match="overwrites what the gradient"):
        step.run()


def test_samples_that_are_drawn_are_the_same_every_time():
    """In training and test sets of their own, and without touching the generator."""

    class Drawing(MLP):
        def dataset(self, *, train):
            return torch.rand(3)

    drawing, before = Drawing(), torch.get_rng_state()
    assert torch.equal(drawing.samples(train=True), drawing.samples(train=True))
    assert not torch.equal(drawing.samples(train=True), drawing.samples(train=False))
    assert torch.equal(before, torch.get_rng_state())


def test_fused_sgd_and_a_grad_scaler_exclude_each_other():
    """Where the scaler skips the first step, torch goes on with momentum that nobody wrote (seen in 2.11)."""
    fused, foreach = Update("fused"), Update("foreach")
    for first, second in ((fused, AMP("float16")), (AMP("float16"), fused)):
        assert "use amp-bf16, or sgd-foreach" in clashes((first, second))
    assert clashes((foreach, AMP("float16"))) is None
    assert clashes((fused, AMP())) is None
    assert clashes((Update("fused", "adamw"), AMP("float16"))) is None
