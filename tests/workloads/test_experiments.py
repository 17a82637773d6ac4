"""The classic course experiment: five rows, two files and a picture, with and without a GPU."""

import csv

import pytest
import torch

from workloads import MLP, Unsuitable, experiments, sweep, training
from workloads.__main__ import main
from workloads.commands import experiments as command
from workloads.commands import plots
from workloads.experiments import Result, cpu_experiments, gpu_experiments, with_speedups
from workloads.sweep import Point
from workloads.training import Epoch

WORKLOAD = MLP(data="digits", image_size=8, width=16)
EPOCH = Epoch(number=3, loss=0.5, accuracy=0.97, seconds=2.0, samples_per_second=700.0, peak_bytes=2**20)
POINTS = [Point(batch_size=size, step_seconds=size / rate, peak_bytes=size) for size, rate in ((16, 10), (32, 20))]


class Trainer:
    """Trains nothing, and remembers what it was asked for."""

    def __init__(self, error=None):
        self.asked = []
        self.error = error

    def __call__(self, workload, optimizations, device, text):
        self.asked.append((device.type, workload.batch_size, [str(each) for each in optimizations]))
        if self.error:
            raise self.error
        return EPOCH


@pytest.fixture(autouse=True)
def four_cores(monkeypatch):
    """Whatever machine this is."""
    monkeypatch.setattr(experiments, "usable_cores", lambda: 4)


@pytest.fixture
def no_gpu(monkeypatch):
    """As torch says it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def run(tmp_path, *arguments):
    """The command on a small workload, with its exit code."""
    small = ["--workload", "mlp", "--epochs", "1", "--batch-size", "256", "--batch-sizes", "2,8"]
    return main(["experiments", *small, "--output", str(tmp_path / "out"), *arguments])


class TestRows:
    """The experiments themselves."""

    def test_on_the_cpu(self):
        """One thread without workers, then all of both."""
        trainer = Trainer()
        first, second = cpu_experiments(WORKLOAD, trainer)
        assert trainer.asked == [
            ("cpu", 128, ["threads-1"]),
            ("cpu", 128, ["threads-4", "workers-4", "persistent-workers"]),
        ]
        assert (first.setup, second.setup) == ("CPU, 1 thread", "CPU, 4 threads, 4 workers")
        assert (first.epoch_seconds, first.samples_per_second, first.accuracy) == (2.0, 700.0, 0.97)

    def test_on_the_gpu(self):
        """float32, the sweep with AMP, and AMP at the knee; only the precision and the batch differ."""
        trainer, swept = Trainer(), []
        rows, points = gpu_experiments(WORKLOAD, trainer, lambda stack: swept.append(stack) or POINTS)
        loaders = ["workers-4", "persistent-workers", "pin-memory", "non-blocking"]
        assert trainer.asked == [("cuda", 128, loaders), ("cuda", 32, [*loaders, "amp-fp16"])]
        assert [str(each) for stack in swept for each in stack] == ["amp-fp16"]
        assert points == POINTS
        assert [(row.experiment, row.batch_size) for row in rows] == [(3, 128), (4, 32), (5, 32)]
        assert rows[1].note == "still rising at 32, of 16 to 32; steps without loader"

    def test_a_sweep_that_fails(self):
        """Leaves the other rows, and says why there is no best batch."""

        def fail(stack):
            raise Unsuitable("no batch of 16 samples fits")

        rows, points = gpu_experiments(WORKLOAD, Trainer(), fail)
        assert [row.note for row in rows] == ["", "no batch of 16 samples fits", "no batch of 16 samples fits"]
        assert not points

    @pytest.mark.parametrize(
        ("error", "note"),
        [(Unsuitable("the loss is nan"), "the loss is nan"), (MemoryError(), "out of memory")],
        ids=["unsuitable", "memory"],
    )
    def test_a_training_that_fails_is_a_row_that_says_so(self, error, note):
        """The other experiments go on."""
        first, second = cpu_experiments(WORKLOAD, Trainer(error))
        assert first.note == second.note == note
        assert first.samples_per_second is None

    def test_speedups_are_over_the_first(self):
        """Where there is a throughput."""
        rows = [
            Result(experiment=1, setup="a", samples_per_second=100.0),
            Result(experiment=2, setup="b", samples_per_second=250.0),
            Result(experiment=3, setup="c"),
        ]
        assert [row.speedup for row in with_speedups(rows)] == [1.0, 2.5, None]


class TestCommand:
    """``python -m workloads experiments``."""

    def test_without_a_gpu(self, no_gpu, monkeypatch, capsys, tmp_path):
        """Two trainings, three rows that say why not, and a sweep of the CPU all the same, as a table, too."""
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(experiments, "usable_cores", lambda: 1)
        monkeypatch.setattr(command, "SWEEP_SECONDS", 0.01)
        threads = torch.get_num_threads()
        assert run(tmp_path) == 0
        said = capsys.readouterr()
        lines = [line.strip() for line in said.out.splitlines() if line.strip()]
        assert lines[0] == "mlp-b256-digits, 1 epoch each, batch sizes 2, 8"
        assert lines[1] == "Experiments"
        assert " ".join(lines[2].split()) == "experiment batch epoch s samples/s accuracy peak MiB speedup"
        assert [line[0] for line in lines[4:9]] == list("12345")
        assert lines[4].endswith("1.00x")
        assert lines[9] == "3, 4, 5: no GPU"
        assert " ".join(lines[11].split()) == "batch size step ms samples/s peak MiB"
        assert [line.split()[0] for line in lines[13:15]] == ["2", "8"]
        assert "torch included" in said.out
        assert "\x1b" not in said.out
        assert said.err == ""
        assert torch.get_num_threads() == threads

    @pytest.mark.parametrize("columns", [30, 50, 80])
    def test_no_word_is_broken(self, no_gpu, monkeypatch, capsys, tmp_path, columns):
        """However narrow the terminal."""
        monkeypatch.setattr(training, "train", lambda *_, **__: iter([EPOCH]))
        monkeypatch.setattr(sweep, "sweep", lambda *_, **__: POINTS)
        said = {}
        for width in (columns, 200):
            monkeypatch.setenv("COLUMNS", str(width))
            assert run(tmp_path) == 0
            said[width] = capsys.readouterr().out.partition("written to")[0]
        assert max(map(len, said[columns].splitlines())) <= columns
        assert set(said[columns].replace("─", "").split()) <= set(said[200].split())

    def test_the_knee_is_marked(self):
        """In its row, and in words; what did not fit is said."""
        points = [
            Point(batch_size=n, step_seconds=n / rate, peak_bytes=n) for n, rate in ((16, 10), (32, 20), (64, 20))
        ]
        assert [row[0] for row in command.sweep_table(points).rows] == ["16", "32 (knee)", "64"]
        assert (
            command.conclusion(points, [16, 32, 64]) == "knee at 32: the smallest batch with 95% of the best throughput"
        )
        assert command.conclusion(points[:2], [16, 32, 64]) == "still rising at 32; 64 does not fit into memory"

    def test_files(self, no_gpu, monkeypatch, tmp_path):
        """A line per experiment and a line per batch size."""
        monkeypatch.setattr(training, "train", lambda *_, **__: iter([EPOCH]))
        monkeypatch.setattr(sweep, "sweep", lambda *_, **__: POINTS)
        assert run(tmp_path) == 0
        rows = list(csv.DictReader((tmp_path / "out" / "experiments.csv").read_text().splitlines()))
        assert [row["samples_per_second"] for row in rows] == ["700", "700", "", "", ""]
        assert rows[0]["accuracy"] == "0.97"
        assert (tmp_path / "out" / "batch_sizes.csv").read_text().count("\n") == 1 + len(POINTS)

    def test_with_a_gpu(self, monkeypatch, capsys, tmp_path):
        """All five rows, from a pretended one."""
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Pretended")
        monkeypatch.setattr(training, "train", lambda *_, **__: iter([EPOCH]))
        monkeypatch.setattr(sweep, "sweep", lambda *_, **__: POINTS)
        assert run(tmp_path) == 0
        said = capsys.readouterr().out
        assert [line[1] for line in said.splitlines() if line[1:2].isdecimal() and "PU" in line] == list("12345")
        assert "no GPU" not in said
        assert "4: still rising at 32, of 16 to 32; steps without loader" in said

    def test_without_matplotlib(self, no_gpu, monkeypatch, capsys, tmp_path):
        """The CSV is written, and what to install for the picture is said."""
        monkeypatch.setattr(plots.importlib.util, "find_spec", lambda name: None)
        monkeypatch.setattr(training, "train", lambda *_, **__: iter([EPOCH]))
        monkeypatch.setattr(sweep, "sweep", lambda *_, **__: POINTS)
        assert run(tmp_path) == 0
        assert "pip install 'perfgate[plots]'" in capsys.readouterr().out
        assert {each.name for each in (tmp_path / "out").iterdir()} == {"experiments.csv", "batch_sizes.csv"}

    def test_picture(self, no_gpu, monkeypatch, tmp_path):
        """Where matplotlib is installed."""
        pytest.importorskip("matplotlib")
        monkeypatch.setattr(training, "train", lambda *_, **__: iter([EPOCH]))
        monkeypatch.setattr(sweep, "sweep", lambda *_, **__: POINTS)
        assert run(tmp_path) == 0
        assert (tmp_path / "out" / "batch_sizes.png").read_bytes().startswith(b"\x89PNG")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--epochs", "0"], "--epochs must be at least 1"),
            (["--batch-sizes", "16,many"], "positive whole numbers"),
            (["--batch-sizes", "0,16"], "positive whole numbers"),
            (["--batch-sizes", ""], "positive whole numbers"),
        ],
    )
    def test_wrong_arguments(self, no_gpu, capsys, tmp_path, arguments, said):
        """Exit 2 and a sentence, before anything is trained."""
        assert run(tmp_path, *arguments) == 2
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize(("device", "last"), [("cpu", 128), ("cuda", 512)])
    def test_default_sizes(self, device, last):
        """A GPU is swept further."""
        assert command.batch_sizes(None, torch.device(device))[-1] == last
