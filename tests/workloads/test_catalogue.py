"""The contract of every technique: same result, in effect, composable, global state restored."""

import pytest
import torch

from perfgate.measure.check import check_same_result
from tests.workloads.contract import Tiny, ways
from workloads import MLP, NotInEffect, ResNet18, ResNet50, Transformer, Unsuitable
from workloads.models import CATALOGUE as WORKLOADS
from workloads.optimizations import (
    AMP,
    CATALOGUE,
    ChannelMasks,
    ChannelPruning,
    ChannelsLast,
    Compile,
    CudnnBenchmark,
    L1Pruning,
    NonBlocking,
    PersistentWorkers,
    PinMemory,
    Prefetch,
    Workers,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.*is deprecated"),  # TorchScript says so, and is measured
    pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec"),  # inductor of torch 2.11
]
CPU = torch.device("cpu")
SMALL = ResNet18(batch_size=4)
LOADING = MLP(batch_size=64, image_size=4)
LOADERS = {"workers", "pin-memory", "persistent-workers", "prefetch", "non-blocking"}
EAGER = [each for each in CATALOGUE.values() if not (each.compiled or each.opaque) and each.name not in LOADERS]
COMPILED = [each for each in CATALOGUE.values() if each.compiled or each.opaque]
ONE_OF_EACH = {type(each): each for each in reversed(EAGER)}.values()
NOT_HERE = {
    "amp-fp16",
    "cudnn-benchmark",
    "cudnn-deterministic",
    "float32-tf32",
    "float32-ieee",
    "half-fp16",
    "semi-structured",
    "attention-memory-efficient",
    "attention-cudnn",
    "stream-prefetcher",
    "device-augmentation",
    "gpu-decode",
    "threads-4",
    "threads-8",
    "empty-cache",
    "copy",
}
"""They need a GPU, more cores or stored images: tests/gpu has them."""
GRAPHS = {"compiled_graphs": 1}
"""What only whoever measures can count."""


def checked(variant, plain, counts=None):
    """Build both, compare their results, and return the variant's proof."""
    if variant.unsuitable(CPU):
        pytest.skip(variant.unsuitable(CPU))
    try:
        variant.build(CPU)
        plain.build(CPU)
        check_same_result(variant.outcome(), plain.reference_outcome(variant), variant.tolerance)
        variant.run()
        return variant.proof(counts or {})
    finally:
        variant.release()
        plain.release()


def worked(found):
    """Whether a stack gave proofs anywhere; elsewhere it said why not."""
    return any(isinstance(each, dict) for each in found.values())


@pytest.mark.parametrize("technique", EAGER, ids=str)
def test_alone(technique):
    """Each technique gives the same result as plain, is in effect, and leaves no state behind, or says why not."""
    found = ways((technique,), CPU)
    assert found
    assert worked(found) is (str(technique) not in NOT_HERE), found


@pytest.mark.parametrize("first", range(len(EAGER)), ids=lambda index: str(EAGER[index]))
def test_pairs(first):
    """So does every pair of two techniques; most that work alone work with another, too."""
    together = [worked(ways((EAGER[first], second), CPU)) for second in EAGER[first + 1 :]]
    possible = [each for each in EAGER[first + 1 :] if str(each) not in NOT_HERE]
    assert any(together) is bool(possible and str(EAGER[first]) not in NOT_HERE)


@pytest.mark.compile
@pytest.mark.parametrize("technique", COMPILED, ids=str)
def test_compiled_alone(technique):
    """Compiled code, too: the same result, and a graph or an artefact."""
    found = ways((technique,), CPU, GRAPHS, workloads=(Tiny(),), kinds=("inference",))
    assert worked(found) or technique.unsuitable(Tiny(), CPU), found


@pytest.mark.compile
@pytest.mark.parametrize("technique", ONE_OF_EACH, ids=str)
def test_compiled_pairs(technique):
    """torch.compile with one of each kind of technique, in training where that is possible."""
    kinds = ("train",) if "train" in technique.kinds else ("inference",)
    ways((Compile(), technique), CPU, GRAPHS, workloads=(Tiny(),), kinds=kinds)


def test_compile_needs_a_graph():
    """A silent fallback to eager compiles none."""
    tiny = MLP(batch_size=4, width=8, image_size=4)
    with pytest.raises(NotInEffect, match="no graph was compiled"):
        checked(tiny.inference_step(Compile()), tiny.inference_step(), {"compiled_graphs": 0})
    with pytest.raises(NotInEffect, match="2 graph breaks"):
        checked(tiny.inference_step(Compile(fullgraph=True)), tiny.inference_step(), {**GRAPHS, "graph_breaks": 2})


@pytest.mark.parametrize("stack", [(), (PersistentWorkers(),), (Prefetch(3),)], ids=["alone", "persistent", "prefetch"])
def test_loading(stack):
    """The same samples in the same order, delivered by other processes."""
    proof = checked(LOADING.loading_step(Workers(1), *stack), LOADING.loading_step())
    assert proof["workers-1"] == "1 processes delivered samples"
    assert len(proof) == 1 + len(stack)


def test_a_loader_that_changes_the_order_is_noticed():
    """The indices and a checksum of every batch are compared."""
    step, other = LOADING.loading_step(), MLP(batch_size=32, image_size=4).loading_step()
    step.build(CPU)
    other.build(CPU)
    from perfgate.errors import WrongResult

    with pytest.raises(WrongResult):
        check_same_result(other.outcome(), step.outcome(), step.tolerance)


@pytest.mark.parametrize(
    ("technique", "removed"),
    [
        (AMP(), {"apply": lambda self, parts: None}),
        (ChannelsLast(), {"apply": lambda self, parts: None}),
        (L1Pruning(0.5), {"apply": lambda self, parts: None}),
        (ChannelMasks(0.5), {"apply": lambda self, parts: None}),
    ],
    ids=str,
)
def test_a_technique_that_does_nothing_is_noticed(technique, removed):
    """By its own proof."""
    idle = type("Idle", (type(technique),), removed)(*vars(technique).values())
    step = SMALL.inference_step(idle)
    step.build(CPU)
    with pytest.raises(NotInEffect, match=str(technique)):
        step.proof({})


@pytest.mark.parametrize(
    ("technique", "workload", "said"),
    [
        (AMP("float16"), SMALL, "needs a GPU: use amp-bf16"),
        (CudnnBenchmark(), SMALL, "needs a CUDA GPU"),
        (PinMemory(), SMALL, "needs a CUDA GPU"),
        (NonBlocking(), SMALL, "need a CUDA GPU"),
        (Compile("reduce-overhead"), SMALL, "not in effect on a CPU"),
        (Workers(4096), SMALL, "4096 usable cores"),
        (ChannelsLast(), Transformer(), "has no images"),
        (L1Pruning(0.5), MLP(), "no Conv2d"),
        (ChannelPruning(0.5), MLP(), "no Conv2d"),
    ],
)
def test_unsuitable_says_why(technique, workload, said):
    """And what to do instead."""
    assert said in technique.unsuitable(workload, CPU)


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (AMP, {"dtype": "float8"}),
        (Compile, {"mode": "fastest"}),
        (L1Pruning, {"amount": 1.5}),
        (ChannelPruning, {"amount": 0.0}),
        (ChannelMasks, {"amount": -1}),
        (Workers, {"count": 0}),
        (Prefetch, {"factor": 0}),
        (MLP, {"batch_size": 0}),
        (MLP, {"data": "imagenet"}),
        (Transformer, {"data": "photos"}),
    ],
)
def test_impossible_parameters_are_refused(make, parameters):
    """When they are given, not when they are used."""
    with pytest.raises(Unsuitable):
        make(**parameters)


@pytest.mark.parametrize("technique", [PersistentWorkers(), Prefetch(4)], ids=str)
def test_options_of_workers_need_workers(technique):
    """torch would ignore or refuse them later."""
    with pytest.raises(Unsuitable, match="add workers-2"):
        LOADING.loading_step(technique).build(CPU)


def test_every_slug_is_unique_and_names_its_catalogue_entry():
    """The command line uses them."""
    assert all(str(each) == name for name, each in CATALOGUE.items())
    assert all(str(each).startswith(name) for name, each in WORKLOADS.items())


def test_every_technique_has_a_source():
    """Where its effect is documented."""
    assert all(each.source for each in CATALOGUE.values())


def test_the_scaler_counts_the_steps_it_skips():
    """An overflowing gradient is skipped, not applied."""
    step = MLP(batch_size=4, width=8, image_size=4).train_step(AMP("float16"))
    step.build(CPU)
    backward = step.parts.backward
    step.parts.backward = lambda loss: backward(loss * float("inf"))
    step.run()
    assert step.counts()["skipped_scaler_steps"] == 1
    step.parts.backward = backward
    step.run()
    assert step.counts()["skipped_scaler_steps"] == 1


def test_pruning_without_torch_pruning_says_what_to_install(monkeypatch):
    """And fails nothing."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install torch-pruning" in ChannelPruning(0.5).unsuitable(ResNet18(), CPU)


def test_the_branches_of_resnet_50_start_small():
    """Or bfloat16 turns its first gradients away, and no compiled step could be compared."""
    scales = {each.weight[0].item() for name, each in ResNet50().model().named_modules() if name.endswith("bn3")}
    assert [round(each, 6) for each in scales] == [0.1]
