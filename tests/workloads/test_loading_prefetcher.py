"""The prefetcher's order of copies, waits and steps, with streams that only write down what is asked of them."""

from contextlib import contextmanager

import pytest
import torch

from workloads import MLP, NotInEffect, Unsuitable
from workloads.optimizations import PinMemory, Prefetcher, Workers
from workloads.workload import Observation

CPU = torch.device("cpu")


@pytest.fixture
def log(monkeypatch):
    """What streams are asked for, in order."""
    said = []

    class Stream:
        def __init__(self, name):
            self.name = name

        def wait_stream(self, other):
            said.append(f"{self.name} waits for {other.name}")

    @contextmanager
    def on(stream):
        said.append(f"on {stream.name}")
        yield
        said.append("off")

    main = Stream("main")
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream("side"))
    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: main)
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda tensor, stream: said.append(f"{int(tensor)} used on {stream.name}")
    )
    return said


def prepared():
    """Parts with pinned batches and the prefetcher."""
    parts = MLP().parts(CPU, training=True)
    parts.loader_arguments["pin_memory"] = True
    Prefetcher().apply(parts)
    return parts


def test_the_next_copy_is_queued_before_the_step(log):
    """And after the step's stream waits for its own batch, which must outlive the step."""
    parts = prepared()

    def bring(number):
        log.append(f"copy {number}")
        return (torch.tensor(number),)

    for (number,) in parts.delivery([1, 2], bring):
        log.append(f"step {int(number)}")
    assert log == [
        *("on side", "copy 1", "off"),
        *("main waits for side", "1 used on main"),
        *("on side", "copy 2", "off", "step 1"),
        *("main waits for side", "2 used on main", "step 2"),
    ]


def test_one_stream_for_all_epochs(log, monkeypatch):
    """The allocator keeps memory per stream."""
    parts = prepared()
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: pytest.fail("another stream"))
    for _ in range(2):
        assert len(list(parts.delivery([1], lambda number: (torch.tensor(number),)))) == 1


def test_nothing_to_deliver(log):
    """No batch, no wait."""
    assert list(prepared().delivery([], lambda batch: pytest.fail("nothing to copy"))) == []
    assert log == []


def test_copies_do_not_wait(log):
    """The host goes on."""
    assert prepared().non_blocking


def test_it_needs_pinned_batches():
    """Other copies would make the host wait."""
    with pytest.raises(Unsuitable, match="add pin-memory"):
        Prefetcher().apply(MLP().parts(CPU, training=True))


def test_it_needs_a_gpu():
    """There are no streams on a CPU."""
    reason = MLP().epoch_step(Workers(1), PinMemory(), Prefetcher()).unsuitable(CPU)
    assert "need" in reason
    assert "CUDA GPU" in Prefetcher().unsuitable(MLP(), CPU)


def observed(**facts):
    """An observation of a loader."""
    return Observation(
        parts=None,
        outputs=None,
        activation_dtypes=frozenset(),
        channels_last_activations=0,
        operators=frozenset(),
        counts={},
        facts=facts,
    )


def test_its_proof():
    """Every copy on another stream than the step, from pinned memory."""
    assert "stream of their own" in Prefetcher().proof(observed(streams={7}, this_stream=0, pinned=True))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"streams": set(), "this_stream": 0, "pinned": True}, r"brought on streams \[\]"),
        ({"streams": {0, 7}, "this_stream": 0, "pinned": True}, r"streams \[0, 7\], the step runs on 0"),
        ({"streams": {7}, "this_stream": 0, "pinned": False}, "not pinned"),
    ],
)
def test_what_its_proof_notices(facts, said):
    """No copy, one on the step's stream, one from pageable memory."""
    with pytest.raises(NotInEffect, match=said):
        Prefetcher().proof(observed(**facts))
