"""The loader of a step: the way of its batches, what is seen of them, and what is compared."""

import pytest
import torch
from torch.utils.data import TensorDataset

from perfgate.errors import WrongResult
from perfgate.measure.check import check_same_result
from workloads import MLP, Optimization, Unsuitable
from workloads.steps.loader import Seen, Waiting, conforming, displacement, samples_of, tensors_of

CPU = torch.device("cpu")
LOADING = MLP(batch_size=64, image_size=4)


class Inexact(Optimization):
    """A technique whose samples may differ in their last bits; what it does to them is given."""

    keeps_samples = False
    kinds = frozenset({"load"})
    change = staticmethod(lambda inputs: inputs)

    def apply(self, parts):
        """Change each batch on its way."""
        parts.arrive = lambda parts, loaded: self.change(loaded)


class Reversed(Inexact):
    """Delivers the same samples, the last first."""

    def apply(self, parts):
        """Turn the dataset round."""
        samples = parts.dataset(train=True)
        parts.dataset = lambda *, train: TensorDataset(*(each.flip(0) for each in samples.tensors))
        parts.delivery = lambda batches, bring: map(bring, list(batches)[::-1])


def compared(technique):
    """The check of a loading step with a technique against the plain one."""
    variant, plain = LOADING.loading_step(technique), LOADING.loading_step()
    variant.build(CPU)
    plain.build(CPU)
    return check_same_result(variant.outcome(), plain.reference_outcome(variant), variant.tolerance)


def changing(change):
    """An inexact technique that does this to each batch."""
    return type("Changing", (Inexact,), {"change": staticmethod(change)})()


def test_waiting_is_added_up():
    """To make the iterator, for each batch and for its end; not what the caller does in between."""
    now = [0.0]

    def batches():
        for cost in (1, 2):
            now[0] += cost
            yield cost
        now[0] += 4

    waiting = Waiting(clock=lambda: now[0])
    for _ in waiting(batches()):
        now[0] += 100
    assert waiting.seconds == 7


def test_samples_in_their_place():
    """Zero each; one that came twice is seen."""
    assert displacement([torch.tensor([0, 1]), torch.tensor([2])]).tolist() == [0, 0, 0]
    assert displacement([torch.tensor([0, 0]), torch.tensor([2])]).tolist() == [0, -1, 0]


def test_what_is_seen_of_a_batch():
    """Types and bytes of all that the loader gave, and of what arrived."""
    seen = Seen()
    pixels, indices = torch.zeros(2, 3, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)
    seen.note([pixels, indices], torch.tensor([7, 8]), torch.zeros(2, 3))
    assert (seen.workers, seen.pinned, seen.streams) == ({7, 8}, False, set())
    assert (seen.loaded_dtypes, seen.loaded_bytes) == ({torch.uint8, torch.int64}, 6 + 16)
    assert (seen.arrived_dtypes, seen.arrived_bytes) == ({torch.float32}, 24)


def test_tensors_of_a_nested_batch():
    """In order."""
    assert [int(each) for each in tensors_of([torch.tensor(1), (torch.tensor(2), torch.tensor(3))])] == [1, 2, 3]


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_a_batch_takes_the_form_of_the_example(layout):
    """Its memory order and type."""
    parts = MLP(batch_size=2, image_size=4).parts(CPU, training=True)
    parts.inputs = parts.inputs.to(torch.bfloat16, memory_format=layout)
    found = conforming(parts, torch.ones(2, 3, 4, 4))
    assert found.dtype == torch.bfloat16
    assert found.is_contiguous(memory_format=layout)


def test_parts_without_samples_are_refused():
    """With the remedy."""
    parts = LOADING.parts(CPU, training=True)
    parts.dataset = None
    with pytest.raises(Unsuitable, match=r"make them with Workload.parts"):
        samples_of(parts, train=True)


def test_samples_that_keep_every_bit_are_compared_exactly():
    """By checksums of whole batches."""
    step = LOADING.loading_step()
    step.build(CPU)
    outcome = step.outcome()
    assert (outcome.kind, set(outcome.tensors)) == ("identical", {"order", "checksums"})
    assert len(set(outcome.tensors["checksums"].tolist())) == 8


def test_samples_of_other_rounding_are_compared_within_the_tolerance():
    """A thousandth is allowed."""
    assert "outputs differ by 0.001" in compared(changing(lambda inputs: inputs * 1.001))


@pytest.mark.parametrize(
    "technique",
    [changing(lambda inputs: inputs.flip(-1)), changing(lambda inputs: inputs * 1.01), Reversed()],
    ids=["mirrored", "scaled", "reversed"],
)
def test_samples_that_differ_are_noticed(technique):
    """In what they hold and in their order."""
    with pytest.raises(WrongResult, match="outputs differ"):
        compared(technique)


def test_a_loading_step_without_build_is_refused():
    """It has no loader yet."""
    with pytest.raises(RuntimeError, match="call build"):
        LOADING.loading_step().run()
