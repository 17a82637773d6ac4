"""``python -m workloads experiments``: the classic course experiment, from one CPU thread to a GPU with AMP."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workloads.commands import choices

if TYPE_CHECKING:
    import torch
    from rich.console import Console
    from rich.progress import Progress

    from workloads.commands.grid import Grid
    from workloads.experiments import Result
    from workloads.steps import Step
    from workloads.sweep import Point
    from workloads.training import Epoch
    from workloads.workload import Optimization, Workload

SWEEP_SECONDS = 2.0  # per batch size
OF_THE_PROCESS = "peak MiB on a CPU: of this whole process, torch included, loader workers not"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    choices.add_workload(parser)
    parser.add_argument("--epochs", type=int, default=3, metavar="N", help="of each training; default: 3")
    parser.add_argument(
        "--learning-rate",
        type=float,
        default=0.05,
        metavar="LR",
        help="peak of the one-cycle schedule; default: 0.05",
    )
    parser.add_argument("--batch-sizes", metavar="A,B,...", help="of the sweep; default: 16 to 512, on a CPU 8 to 128")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("experiments"),
        metavar="DIR",
        help="for the CSV and PNG files; default: experiments",
    )
    choices.add_device(parser)


def run(arguments: argparse.Namespace, console: Console) -> None:
    """Make the five experiments, print their table and the sweep's, and write both to files."""
    from workloads import experiments
    from workloads.cores import usable_cores
    from workloads.optimizations.threads import Threads

    choices.at_least_one("--epochs", arguments.epochs)
    choices.above_zero("--learning-rate", arguments.learning_rate)
    workload, device = choices.subject(arguments)
    sizes = batch_sizes(arguments.batch_sizes, device)
    choices.make_folder("--output", arguments.output)
    epochs = f"{arguments.epochs} epoch{'s' * (arguments.epochs > 1)} each"
    console.print(f"{workload}, {epochs}, batch sizes {', '.join(map(str, sizes))}\n")
    with choices.progress_bar(console) as bar:
        runner = Runner(arguments, workload, device, sizes, bar)
        results = experiments.cpu_experiments(workload, runner.train)
        if device.type == "cuda":
            rows, points = experiments.gpu_experiments(workload, runner.train, runner.sweep)
        else:
            rows, points = experiments.without_gpu(), runner.sweep((Threads(usable_cores()),))
    results = experiments.with_speedups([*results, *rows])
    console.print(table(results))
    for note in notes(results):
        console.print(note, markup=False)
    if points:
        console.print()
        console.print(sweep_table(points))
        console.print(conclusion(points, sizes))
    console.print(f"{OF_THE_PROCESS}\n", markup=False)
    write(arguments.output, results, points, console, f"{workload.name} training, {name_of(device)}")


def batch_sizes(text: str | None, device: torch.device) -> tuple[int, ...]:
    """The sizes asked for, or the device's default.

    Raises:
        Unsuitable: for anything but positive whole numbers.
    """
    from workloads import sweep
    from workloads.workload import Unsuitable

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
        from workloads import training

        epochs = training.train(
            workload,
            optimizations,
            device=device,
            epochs=self.arguments.epochs,
            learning_rate=self.arguments.learning_rate,
            progress=lambda items, total, epoch: self.bar.track(items, total=total, description=f"{text}, {epoch}"),
        )
        return list(epochs)[-1]

    def sweep(self, optimizations: tuple[Optimization, ...]) -> Sequence[Point]:
        """Training steps of every batch size on the device."""
        from workloads import sweep

        def step_of(batch_size: int) -> Step:
            return dataclasses.replace(self.workload, batch_size=batch_size).train_step(*optimizations)

        def shown(sizes: Sequence[int]) -> Iterable[int]:
            return self.bar.track(sizes, description="batch sizes")

        return sweep.sweep(step_of, self.sizes, self.device, budget_seconds=SWEEP_SECONDS, progress=shown)


def table(results: Sequence[Result]) -> Grid:
    """A row per experiment."""
    from workloads.commands.grid import Grid

    columns = ("experiment", "batch", "epoch s", "samples/s", "accuracy", "peak MiB", "speedup")
    rows = [
        (
            f"{each.experiment} {each.setup}",
            _cell(each.batch_size, "d"),
            _cell(each.epoch_seconds, ".2f"),
            _cell(each.samples_per_second, ",.0f"),
            _cell(each.accuracy, ".1%"),
            _cell(each.peak_bytes and each.peak_bytes / 2**20, ",.0f"),
            _cell(each.speedup, ".2f", "x"),
        )
        for each in results
    ]
    return Grid(title="Experiments", columns=columns, rows=rows)


def _cell(value: float | None, form: str, unit: str = "") -> str:
    return "" if value is None else f"{value:{form}}{unit}"


def notes(results: Sequence[Result]) -> Iterator[str]:
    """Each once, after the numbers of its experiments."""
    numbers: dict[str, list[str]] = {}
    for each in results:
        if each.note:
            numbers.setdefault(each.note, []).append(str(each.experiment))
    for note, those in numbers.items():
        yield f"{', '.join(those)}: {choices.in_options(note)}"


def sweep_table(points: Sequence[Point]) -> Grid:
    """A row per batch size, the knee marked."""
    from workloads.commands.grid import Grid
    from workloads.sweep import knee

    chosen = knee(points)
    rows = [
        (
            f"{each.batch_size}{' (knee)' * (each is chosen)}",
            f"{1000 * each.step_seconds:,.3g}",
            f"{each.samples_per_second:,.0f}",
            f"{each.peak_bytes / 2**20:,.0f}",
        )
        for each in points
    ]
    columns = ("batch size", "step ms", "samples/s", "peak MiB")
    return Grid(title="Batch sizes, training steps without loader", columns=columns, rows=rows)


def conclusion(points: Sequence[Point], sizes: Sequence[int]) -> str:
    """Where throughput levels off, or that it does not, and what did not fit."""
    from workloads.sweep import ENOUGH, knee, knee_or_not

    said = knee_or_not(points)
    if knee(points):
        said += f": the smallest batch with {ENOUGH:.0%} of the best throughput"
    beyond = [size for size in sizes if size > max(each.batch_size for each in points)]
    return f"{said}; {min(beyond)} does not fit into memory" if beyond else said


def write(folder: Path, results: Sequence[Result], points: Sequence[Point], console: Console, title: str) -> None:
    """``experiments.csv``, ``batch_sizes.csv`` and, with matplotlib, ``batch_sizes.png``."""
    from workloads import experiments, sweep
    from workloads.commands import plots

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
    from workloads.cores import usable_cores

    if device.type == "cuda":
        import torch

        return str(torch.cuda.get_device_name(device))
    cores = usable_cores()
    return f"CPU, {cores} thread{'s' * (cores > 1)}"
