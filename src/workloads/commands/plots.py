"""Pictures of what the commands measured, where matplotlib is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workloads.sweep import Point, best_batch, knee_or_not
from workloads.workload import Unsuitable

INCHES, DOTS_PER_INCH = (7.0, 4.2), 150  # fills the width of a page or a slide, sharp when printed
HEADROOM = 1.2  # for the legend
BLUE, ORANGE = "#0072b2", "#d55e00"  # of Okabe and Ito's palette, told apart by the colour-blind, too


def missing() -> str | None:
    """Why nothing can be drawn, with the remedy; ``None`` where matplotlib is installed."""
    if importlib.util.find_spec("matplotlib"):
        return None
    return "matplotlib is not installed: pip install 'perfgate[plots]'"


def plot_sweep(points: Sequence[Point], file: Path, title: str) -> None:
    """Throughput over batch size with the knee marked, as a PNG.

    Raises:
        Unsuitable: where matplotlib is not installed.
    """
    reason = missing()
    if reason:
        raise Unsuitable(reason)
    from matplotlib.figure import Figure  # without pyplot: no window system is looked for

    figure = Figure(figsize=INCHES, layout="constrained")
    axes = figure.subplots()
    sizes = [each.batch_size for each in points]
    axes.plot(sizes, [each.samples_per_second for each in points], marker="o", color=BLUE)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, labels=[str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_ylim(0, HEADROOM * max(each.samples_per_second for each in points))
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(visible=True, alpha=0.3)
    axes.set(xlabel="batch size (samples)", ylabel="throughput (samples/s)", title=title)
    _mark(axes, best_batch(points), knee_or_not(points))
    figure.savefig(file, dpi=DOTS_PER_INCH)


def _mark(axes: Any, chosen: Point, said: str) -> None:
    """A line down to the axis at the best batch, and what it is."""
    rate = chosen.samples_per_second
    axes.vlines(chosen.batch_size, 0, rate, colors=ORANGE, linestyles="dashed")
    label = f"{said}: {rate:,.0f} samples/s"
    axes.plot(chosen.batch_size, rate, marker="o", color=ORANGE, label=label, linestyle="none")
    axes.legend(loc="upper left")
