"""The epoch step: it trains on every batch of its loader, and tells how long it waited for them."""

import pytest
import torch

from perfgate.errors import WrongResult
from perfgate.measure.check import check_same_result
from workloads import MLP, Optimization, ResNet18, Unsuitable
from workloads.optimizations import AMP, ChannelPruning, ChannelsLast, PersistentWorkers, Workers
from workloads.steps.epoch import ON_CPU, ON_CUDA
from workloads.steps.train import TIMED

CPU = torch.device("cpu")
TINY = MLP(batch_size=64, width=8, image_size=4)


def built(step):
    """The step, ready to run."""
    assert step.unsuitable(CPU) is None
    step.build(CPU)
    return step


def compared(workload, *stack, batches=2):
    """The check of an epoch with a stack against a plain one, and the stack's proof."""
    variant, plain = (built(workload.epoch_step(*each, batches=batches)) for each in (stack, ()))
    try:
        check_same_result(variant.outcome(), plain.reference_outcome(variant), variant.tolerance)
        return variant.proof({})
    finally:
        variant.release()
        plain.release()


def test_an_epoch_is_a_step_per_batch():
    """The same parameters as from a loop by hand."""
    step = built(TINY.epoch_step())
    step.run()
    parts, samples = TINY.parts(CPU, training=True), TINY.dataset(train=True)
    optimizer = torch.optim.SGD(parts.model.parameters(), **TIMED["SGD"])
    for inputs, targets in zip(*(each.split(64) for each in samples.tensors), strict=True):
        optimizer.zero_grad()
        loss = parts.loss(parts.model(inputs), targets)
        loss.backward()
        optimizer.step()
    for ours, theirs in zip(step.parts.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)
    assert float(step.last_value()) == pytest.approx(loss.item(), rel=1e-5)


def test_its_samples_are_those_of_whole_batches():
    """Of all, or of as many as are asked for."""
    assert TINY.epoch_step().samples == 512
    assert TINY.epoch_step(batches=3).samples == 192


def test_the_number_of_batches_is_part_of_the_name_and_identity():
    """A full epoch says nothing of it."""
    full, short = TINY.epoch_step(), TINY.epoch_step(batches=3)
    assert str(full).endswith("/epoch/plain")
    assert str(short).endswith("/epoch-of-3/plain")
    assert short.identity == {**full.identity, "batches": 3}


def test_more_batches_than_there_are():
    """Said before anything runs; and less than one is no epoch."""
    assert TINY.epoch_step(batches=9).unsuitable(CPU).endswith("has 8 batches, not 9")
    with pytest.raises(Unsuitable, match="at least 1 batch"):
        TINY.epoch_step(batches=0)


@pytest.mark.parametrize(
    "stack", [(AMP(),), (Workers(1), PersistentWorkers()), (AMP(), Workers(1))], ids=["train", "load", "both"]
)
def test_techniques_of_training_and_of_loading(stack):
    """Together, too: the same movement, and in effect."""
    assert set(compared(TINY, *stack)) == set(map(str, stack))


@pytest.mark.parametrize("technique", [ChannelsLast(), ChannelPruning(0.5)], ids=str)
def test_techniques_that_change_layout_or_shapes(technique):
    """Batches are converted on arrival; where shapes change, outputs are compared."""
    assert set(compared(ResNet18(batch_size=2, image_size=16), technique)) == {str(technique)}


class Wrapping(Optimization):
    """Replaces the whole step."""

    name = "wrapping"

    def wrap(self, parts, call, optimizer):
        """As a graph does."""
        return call


class Cutting(Optimization):
    """Changes the shape of the batch."""

    name = "cutting"

    def apply(self, parts):
        """Half of it."""
        parts.inputs = parts.inputs[:32]


class InInference(Optimization):
    """Has no meaning in training."""

    name = "in-inference"
    kinds = frozenset({"inference"})


def test_what_replaces_the_whole_step_is_refused():
    """It has taken in a batch."""
    assert "replaces the whole training step" in TINY.epoch_step(Wrapping()).unsuitable(CPU)


def test_what_changes_the_shape_of_the_batch_is_refused():
    """The loader's batches have the old one."""
    with pytest.raises(Unsuitable, match="cutting changes the shape"):
        TINY.epoch_step(Cutting()).build(CPU)


def test_what_is_for_inference_is_refused():
    """As in a training step."""
    said = TINY.epoch_step(InInference()).unsuitable(CPU)
    assert said == "in-inference is for inference steps, not for epoch"


class Doubling(Optimization):
    """Moves the parameters twice as far."""

    name = "doubling"

    def apply(self, parts):
        """Through the loss."""
        loss = parts.loss
        parts.loss = lambda outputs, targets: 2 * loss(outputs, targets)


class Skipping(Optimization):
    """Delivers the third batch twice and the fourth never."""

    name = "skipping"
    kinds = frozenset({"epoch"})

    def apply(self, parts):
        """On the way."""

        def twice(batches, bring):
            all_of_them = list(batches)
            all_of_them[3] = all_of_them[2]
            return map(bring, all_of_them)

        parts.delivery = twice


@pytest.mark.parametrize("technique", [Doubling(), Skipping()], ids=str)
def test_a_wrong_epoch_is_noticed(technique):
    """By the movement of the first batches, and by the order of all samples."""
    with pytest.raises(WrongResult, match="parameters move"):
        compared(TINY, technique, batches=4)


def test_state_is_initial_again_after_the_check():
    """And the example batch is in its place."""
    step = built(TINY.epoch_step())
    before = [each.clone() for each in step.parts.model.parameters()]
    example = step.parts.inputs
    step.outcome()
    assert all(torch.equal(*each) for each in zip(before, step.parts.model.parameters(), strict=True))
    step.run()
    assert step.parts.inputs is example


def test_starvation_is_told_of_every_round_but_the_first():
    """As a share of each, never judged."""
    step = built(TINY.epoch_step(batches=2))
    assert next(iter(step.figures())).values == ()
    for _ in range(4):
        step.run()
    (found,) = step.figures()
    assert (found.name, found.unit, found.better, found.note) == ("starvation_share", "1", "neither", ON_CPU)
    assert len(found.values) == 3
    assert all(0 < each < 1 for each in found.values)


def test_starvation_on_a_gpu_says_what_it_means():
    """The host runs ahead of it."""
    step = built(TINY.epoch_step(batches=2))
    step.parts.device = torch.device("cuda", 0)
    assert next(iter(step.figures())).note == ON_CUDA


def test_a_new_build_forgets_earlier_rounds():
    """They were of another loader."""
    step = built(TINY.epoch_step(batches=2))
    for _ in range(3):
        step.run()
    step.build(CPU)
    assert next(iter(step.figures())).values == ()


def test_counts_with_workers_are_not_repeatable():
    """How many batches wait in memory is a matter of timing."""
    assert TINY.epoch_step().repeatable
    assert not TINY.epoch_step(Workers(1)).repeatable


def test_the_optimizer_and_the_batch_are_resident():
    """As in a training step: parameters, gradients, momentum, batch."""
    step = built(TINY.epoch_step(batches=1))
    step.run()
    parameters = sum(each.numel() for each in step.parts.model.parameters())
    assert sum(each.numel() for each in step.resident_tensors()) == 3 * parameters + 64 * 48 + 64
