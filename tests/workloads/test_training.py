"""``python -m workloads train``: it learns, and says what is wrong with its arguments."""

import pytest
import torch

from workloads import MLP, Unsuitable
from workloads.__main__ import main
from workloads.optimizations import AMP, ChannelsLast, CudnnBenchmark
from workloads.training import train


def trained(workload, *optimizations, epochs=3, learning_rate=0.05):
    """All epochs of a training without a progress bar."""
    return list(
        train(
            workload,
            optimizations,
            device=torch.device("cpu"),
            epochs=epochs,
            learning_rate=learning_rate,
            progress=lambda items, total, text: items,
        )
    )


@pytest.mark.parametrize("stack", [(), (AMP(), ChannelsLast())], ids=["plain", "stack"])
def test_it_learns_the_digits(stack):
    """A small network on small images gets most of the test digits right."""
    epochs = trained(MLP(data="digits", image_size=8, width=64, batch_size=32), *stack, epochs=5)
    assert [each.number for each in epochs] == [1, 2, 3, 4, 5]
    assert epochs[-1].accuracy > 0.9
    assert epochs[-1].loss < epochs[0].loss
    assert epochs[-1].samples_per_second > 0
    assert epochs[-1].peak_bytes > 2**20


def test_a_technique_that_cannot_be_used_is_named():
    """With its reason."""
    with pytest.raises(Unsuitable, match=r"cudnn-benchmark: cudnn.benchmark needs a CUDA GPU"):
        trained(MLP(data="digits"), CudnnBenchmark())


def test_a_loss_that_is_not_finite_ends_the_training():
    """It would not come back."""
    with pytest.raises(Unsuitable, match=r"the loss is .* lower --learning-rate"):
        trained(MLP(data="digits", image_size=8, width=64), learning_rate=1e20)


def test_a_line_per_epoch(capsys):
    """Throughput, memory, accuracy."""
    assert main(["train", "--workload", "mlp", "--epochs", "1", "--batch-size", "256", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mlp-b256-digits on cpu")
    assert lines[1].split() == ["epoch", "loss", "accuracy", "samples/s", "peak", "memory"]
    assert lines[2].split()[0] == "1"
    assert "%" in lines[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--optimizations", "turbo"], "no optimization is called turbo"),
        (["--epochs", "0"], "--epochs must be at least 1"),
        (["--batch-size", "-3"], "batch_size must be at least 1"),
        (["--data", "imagenet"], "it takes: synthetic, digits, photos, cifar10"),
        (["--optimizations", "persistent-workers", "--workload", "mlp"], "add workers-2"),
    ],
)
def test_wrong_arguments_are_exit_2_with_a_sentence(capsys, arguments, said):
    """No traceback."""
    assert main(["train", "--device", "cpu", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_cifar10_without_its_files(capsys, tmp_path):
    """The folder is named, and the ways out."""
    assert main(["train", "--data", "cifar10", "--data-folder", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
