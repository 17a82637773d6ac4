"""Steps and workloads: seeded, restartable, and identified by what they are."""

import pytest
import torch

from workloads import MLP, ResNet18, ResNet18Cifar, Transformer
from workloads.observation import observe_activations
from workloads.optimizations import AMP, Workers
from workloads.workload import Tolerance

CPU = torch.device("cpu")
TINY = MLP(batch_size=4, width=8, image_size=4)


@pytest.mark.parametrize("workload", [TINY, ResNet18(batch_size=2), Transformer(batch_size=2)], ids=str)
def test_every_build_starts_equal(workload):
    """Weights and batch come from the seed, not from what ran before."""
    first, second = workload.train_step(), workload.train_step()
    first.build(CPU)
    torch.rand(7)
    second.build(CPU)
    assert torch.equal(first.parts.inputs, second.parts.inputs)
    for a, b in zip(first.parts.model.parameters(), second.parts.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_training_step_trains():
    """The loss falls."""
    step = TINY.train_step()
    step.build(CPU)
    step.run()
    first = float(step.last_value())
    for _ in range(50):
        step.run()
    assert float(step.last_value()) < first


def test_an_inference_step_keeps_no_gradients():
    """And runs in evaluation mode."""
    step = ResNet18(batch_size=2).inference_step()
    step.build(CPU)
    step.run()
    assert not step.last_value().requires_grad
    assert not step.parts.model.training


def test_the_outcome_starts_from_the_initial_state_and_returns_to_it():
    """However many steps ran before."""
    step = TINY.train_step()
    step.build(CPU)
    before = step.outcome()
    for _ in range(3):
        step.run()
    after = step.outcome()
    assert all(torch.equal(before.tensors[name], after.tensors[name]) for name in before.tensors)
    assert all(each.grad is None for each in step.parts.model.parameters())


def test_a_step_must_be_built_before_it_runs():
    """And can be built again after its release."""
    step = TINY.train_step()
    with pytest.raises(RuntimeError, match="is not built"):
        step.run()
    step.build(CPU)
    step.release()
    with pytest.raises(RuntimeError, match="is not built"):
        step.run()


def test_resident_tensors_hold_gradients_and_optimizer_state():
    """Three times the parameters after a step with momentum, and the batch."""
    step = TINY.train_step()
    step.build(CPU)
    step.run()
    parameters = sum(each.numel() for each in step.parts.model.parameters())
    assert sum(each.numel() for each in step.resident_tensors()) == 3 * parameters + 4 * 48 + 4


def test_identity_holds_what_differs_from_the_defaults():
    """And always the data source: a new field with a default renames nothing."""
    identity = MLP(batch_size=4).train_step(AMP()).identity
    assert identity == {
        "step": "train",
        "workload": ["mlp", "synthetic", {"batch_size": 4}],
        "optimizations": [["amp", {}]],
    }
    assert MLP(data="digits").train_step().identity["workload"] == ["mlp", "digits", {"data": "digits"}]


@pytest.mark.parametrize(
    ("workload", "slug"),
    [
        (MLP(), "mlp-b128"),
        (ResNet18(), "resnet18-cifar-tv-b32"),
        (ResNet18Cifar(batch_size=128), "resnet18-cifar-b128"),
        (Transformer(data="digits", width=64), "transformer-b8-digits-width64"),
    ],
)
def test_slugs(workload, slug):
    """Stable and readable."""
    assert str(workload) == slug


def test_the_slug_of_a_step_names_its_stack_in_order_of_application():
    """Whichever order it was written in."""
    assert str(TINY.train_step(AMP(), Workers(2))).endswith("/train/workers-2+amp-bf16")


def test_tolerances_widen():
    """A stack may differ as much as its loosest member."""
    tight, loose = Tolerance(), Tolerance(norm_ratio=0.5, cosine=0.5, relative_error=0.5)
    assert tight.widest(loose) == loose == loose.widest(tight)


def test_the_expected_direction_of_a_stack():
    """Its members', if they agree."""
    plain = TINY.train_step()
    assert TINY.train_step(AMP()).expected_against(plain) == "faster"
    assert plain.expected_against(TINY.train_step(AMP())) == "slower"
    assert plain.expected_against(plain) == "any"


@pytest.mark.parametrize(
    ("workload", "parameters"), [(ResNet18(batch_size=2), 11_181_642), (ResNet18Cifar(batch_size=2), 11_173_962)]
)
def test_sizes_of_the_models(workload, parameters):
    """As published, with ten classes."""
    step = workload.inference_step()
    step.build(CPU)
    assert step.counts()["parameters"] == parameters


def test_activations_are_seen_by_dtype_and_order():
    """Through hooks that are removed afterwards."""
    layer = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    images = torch.ones(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    with observe_activations(layer) as seen:
        layer(images)
    assert (seen.dtypes, seen.channels_last) == ({torch.float32}, 1)
    layer(images)
    assert seen.channels_last == 1
