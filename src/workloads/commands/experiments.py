"""``python -m workloads experiments``: the classic course experiment, from one CPU thread to a GPU with AMP."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress

from workloads import experiments, sweep
from workloads.commands import choices, plots
from workloads.cores import usable_cores
from workloads.experiments import Result
from workloads.optimizations.threads import Threads
from workloads.steps import Step
from workloads.training import Epoch, train
from workloads.workload import Optimization, Unsuitable, Workload

HELP = "the classic course experiment: CPU threads, GPU, AMP, batch sizes"
SWEEP_SECONDS = 2.0  # per batch size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser)
    parser.add_argument("--epochs", type=int, default=3, metavar="N", help="of each training; default: 3")
    parser.add_argument(
        "--learning-rate", type=float, default=0.05, metavar="LR", help="peak of the one-cycle schedule"
    )
    parser.add_argument("--batch-sizes", metavar="A,B,...", help="of the sweep; default: 16 to 512, on a CPU 8 to 128")
    parser.add_argument(
        "--output", type=Path, default=Path("experiments"), metavar="DIR", help="for the CSV and PNG files"
    )
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Make the five experiments, print their table, and write it and the sweep to files."""
    choices.at_least_one("--epochs", arguments.epochs)
    choices.above_zero("--learning-rate", arguments.learning_rate)
    workload, device = choices.subject(arguments)
    sizes = batch_sizes(arguments.batch_sizes, device)
    choices.make_folder("--output", arguments.output)
    console.print(f"{workload}, {arguments.epochs} epochs each, batch sizes {', '.join(map(str, sizes))}")
    with choices.progress_bar(console) as bar:
        runner = Runner(arguments, workload, device, sizes, bar)
        results = experiments.cpu_experiments(workload, runner.train)
        if device.type == "cuda":
            rows, points = experiments.gpu_experiments(workload, runner.train, runner.sweep)
        else:
            rows, points = experiments.without_gpu(), runner.sweep((Threads(usable_cores()),))
    results = experiments.with_speedups([*results, *rows])
    for line in table(results):
        console.print(line, soft_wrap=True, markup=False)
    write(arguments.output, results, points, console, f"{workload.name} training, {name_of(device)}")


def batch_sizes(text: str | None, device: torch.device) -> tuple[int, ...]:
    """The sizes asked for, or the device's default.

    Raises:
        Unsuitable: for anything but positive whole numbers.
    """
    if text is None:
        return sweep.GPU_SIZES if device.type == "cuda" else sweep.CPU_SIZES
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words or not all(word.isdecimal() and int(word) for word in words):
        raise Unsuitable(f"--batch-sizes are positive whole numbers with commas between, such as 16,32; got {text!r}")
    return tuple(sorted({int(word) for word in words}))


@dataclasses.dataclass(frozen=True)
class Runner:
    """What the experiments need to be made: the options, and a bar that shows how far they are."""

    arguments: argparse.Namespace
    workload: Workload
    device: torch.device
    sizes: Sequence[int]
    bar: Progress

    def train(
        self, workload: Workload, optimizations: tuple[Optimization, ...], device: torch.device, text: str
    ) -> Epoch:
        """The last epoch of a training."""
        epochs = train(
            workload,
            optimizations,
            device=device,
            epochs=self.arguments.epochs,
            learning_rate=self.arguments.learning_rate,
            progress=lambda items, total, epoch: self.bar.track(items, total=total, description=f"{text}, {epoch}"),
        )
        return list(epochs)[-1]

    def sweep(self, optimizations: tuple[Optimization, ...]) -> Sequence[sweep.Point]:
        """Training steps of every batch size on the device."""

        def step_of(batch_size: int) -> Step:
            return dataclasses.replace(self.workload, batch_size=batch_size).train_step(*optimizations)

        def shown(sizes: Sequence[int]) -> Iterable[int]:
            return self.bar.track(sizes, description="batch sizes")

        return sweep.sweep(step_of, self.sizes, self.device, budget_seconds=SWEEP_SECONDS, progress=shown)


def table(results: Sequence[Result]) -> Iterable[str]:
    """The lines of the table."""
    width = max(len(each.setup) for each in results)
    yield f"   {'setup':<{width}}  batch  epoch s  samples/s  accuracy  peak MiB  speedup"
    for each in results:
        cells = [
            _cell(each.batch_size, "5d"),
            _cell(each.epoch_seconds, "7.2f"),
            _cell(each.samples_per_second, "9,.0f"),
            _cell(each.accuracy, "8.1%"),
            _cell(each.peak_bytes and each.peak_bytes / 2**20, "8,.0f"),
            _cell(each.speedup, "6.2f", "x"),
        ]
        line = "  ".join([f"{each.experiment}  {each.setup:<{width}}", *cells, each.note])
        yield line.rstrip()


def _cell(value: float | None, form: str, unit: str = "") -> str:
    width = int(form.partition(".")[0].strip("d,")) + len(unit)
    return " " * (width - 1) + "-" if value is None else f"{value:{form}}{unit}"


def write(folder: Path, results: Sequence[Result], points: Sequence[sweep.Point], console: Console, title: str) -> None:
    """``experiments.csv``, ``batch_sizes.csv`` and, with matplotlib, ``batch_sizes.png``."""
    experiments.write_csv(results, folder / "experiments.csv")
    written = ["experiments.csv"]
    reason = plots.missing()
    if points:
        sweep.write_csv(points, folder / "batch_sizes.csv")
        written.append("batch_sizes.csv")
    if points and not reason:
        plots.plot_sweep(points, folder / "batch_sizes.png", title)
        written.append("batch_sizes.png")
    console.print(f"written to {folder}: {', '.join(written)}", soft_wrap=True, markup=False)
    if points and reason:
        console.print(f"no picture: {reason}", soft_wrap=True, markup=False)


def name_of(device: torch.device) -> str:
    """The GPU's name, or the CPU with the threads that the sweep uses."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    cores = usable_cores()
    return f"CPU, {cores} thread{'s' * (cores > 1)}"
