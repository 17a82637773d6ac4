"""``python -m workloads train``: it learns, and says what is wrong with its arguments."""

import subprocess
import sys

import pytest
import torch

import workloads
from workloads import MLP, Optimization, Unsuitable
from workloads.__main__ import main
from workloads.commands import choices
from workloads.models import CATALOGUE as WORKLOADS
from workloads.optimizations import AMP, CATALOGUE, ChannelsLast, CudnnBenchmark
from workloads.training import accuracy, fit, prepare, train


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


@pytest.mark.parametrize(
    ("stack", "said"),
    [
        ((CATALOGUE["item"],), "item replaces the whole step on one batch"),
        ((CATALOGUE["fusion"],), "fusion is for inference steps, not for training"),
        ((AMP("bfloat16"), AMP("bfloat16")), "both decide the amp: choose one"),
    ],
    ids=["wrap", "kind", "clash"],
)
def test_what_cannot_be_trained_with_is_refused(stack, said):
    """Before the first step, with a sentence."""
    with pytest.raises(Unsuitable, match=said):
        trained(MLP(data="digits"), *stack)


def test_a_batch_larger_than_the_data_is_refused():
    """No step would be made."""
    with pytest.raises(Unsuitable, match="a batch of 2048 is more than the 1437 training samples"):
        trained(MLP(data="digits", batch_size=2048))


def test_what_a_technique_changes_is_used():
    """Another optimizer, and another way to the gradients."""
    used = set()

    class Adam(torch.optim.AdamW):
        def step(self, closure=None):
            used.add("optimizer")
            return super().step(closure)

    class Both(Optimization):
        def apply(self, parts):
            gradients, parts.optimizer = parts.gradients, Adam
            parts.gradients = lambda given: used.add("gradients") or gradients(given)

    trained(MLP(data="digits", image_size=8, width=16, batch_size=256), Both(), epochs=1, learning_rate=0.01)
    assert used == {"optimizer", "gradients"}


def test_training_goes_on_from_given_weights():
    """As fine-tuning after pruning does."""
    workload = MLP(data="digits", image_size=8, width=64, batch_size=32)
    device = torch.device("cpu")
    parts = prepare(workload, (), device=device)
    *_, last = fit(workload, parts, epochs=3, learning_rate=0.05, progress=lambda items, total, text: items)
    again = prepare(workload, (), device=device, weights=parts.model.state_dict())
    assert accuracy(workload, again) == last.accuracy > accuracy(workload, prepare(workload, (), device=device))


def test_a_loss_that_is_not_finite_ends_the_training():
    """It would not come back."""
    with pytest.raises(Unsuitable, match=r"the loss is .* lower --learning-rate"):
        trained(MLP(data="digits", image_size=8, width=64), learning_rate=1e20)


def test_a_line_per_epoch(capsys):
    """Throughput, memory, accuracy."""
    assert main(["train", "--workload", "mlp", "--epochs", "1", "--batch-size", "256", "--device", "cpu"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("mlp-b256-digits on cpu")
    assert lines[1].split() == ["epoch", "loss", "accuracy", "samples/s", "process", "peak"]
    assert lines[2].split()[0] == "1"
    assert "%" in lines[2]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--optimizations", "turbo"], "no optimization is called turbo"),
        (["--optimizations", "amp-bf16, amp-bf16"], "named twice: amp-bf16"),
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


def test_cifar10_without_its_files(capsys, tmp_path, monkeypatch):
    """The folder is named, and the ways out that this command line has."""
    monkeypatch.setenv("PERFGATE_DATA", "")  # put back afterwards: the option sets it
    assert main(["train", "--data", "cifar10", "--data-folder", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert all(words in said for words in (str(tmp_path), "--data-folder", "--download"))
    assert "PERFGATE_" not in said
    assert "download=True" not in said


@pytest.mark.parametrize(
    "words", ["--help", *(f"{name} --help" for name in ("train", "experiments", "ladder", "analyse", "techniques"))]
)
def test_help_is_shown_without_loading_torch(words):
    """Torch takes seconds."""
    program = (
        "import sys\nfrom workloads.__main__ import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n    assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *words.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: python -m workloads" in done.stdout


def test_the_help_names_the_workloads_there_are():
    """All of the catalogue, in its order."""
    assert list(choices.NAMES) == list(WORKLOADS)


def test_public_names_are_there_before_their_first_use():
    """And a name that is not public is an error as anywhere."""
    assert set(workloads.__all__) <= set(dir(workloads))
    assert all(getattr(workloads, name) is not None for name in workloads.__all__)
    assert workloads.models.MLP is workloads.MLP
    with pytest.raises(AttributeError, match="has no attribute 'Turbo'"):
        workloads.Turbo  # noqa: B018


@pytest.mark.parametrize("rate", ["-1", "0", "nan", "inf"])
@pytest.mark.parametrize("command", ["train", "experiments"])
def test_an_impossible_learning_rate_is_refused(command, rate, capsys, tmp_path):
    """Before anything is trained."""
    options = ["--output", str(tmp_path)] if command == "experiments" else []
    assert main([command, "--learning-rate", rate, *options]) == 2
    assert "--learning-rate must be a number above 0" in capsys.readouterr().err


def test_an_output_folder_that_cannot_be_made_is_refused_first(capsys, tmp_path):
    """Not after all the training."""
    (tmp_path / "file").touch()
    assert main(["experiments", "--output", str(tmp_path / "file" / "out")]) == 2
    assert "--output" in capsys.readouterr().err
