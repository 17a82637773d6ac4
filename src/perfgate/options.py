"""The options that the plugin adds to pytest."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def seconds(text: str) -> float:
    """A number of seconds on the command line.

    Raises:
        ArgumentTypeError: where it is not a finite number above 0.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"a number of seconds above 0 is expected, got {text!r}")
    return value


def add_options(parser: pytest.Parser) -> None:
    """Add ``--perfgate-...``."""
    group = parser.getgroup("perfgate", "trustworthy benchmarks (perfgate)")
    group.addoption(
        "--perfgate-smoke",
        action="store_true",
        help="One round of every benchmark with all proofs and counted metrics. Nothing is saved.",
    )
    group.addoption(
        "--perfgate-strict",
        action="store_true",
        help="Fail also where a benchmark is gone or could not be judged.",
    )
    group.addoption(
        "--perfgate-accept",
        action="store_true",
        help="Compare with this run from now on, also where it is slower. This run itself is judged as usual.",
    )
    group.addoption(
        "--perfgate-no-save",
        action="store_true",
        help="Do not save this run. By default every run is saved under results/<machine>/.",
    )
    group.addoption(
        "--perfgate-resume",
        action="store_true",
        help="Go on with this machine's last run that was killed: what it had measured is not measured again.",
    )
    group.addoption(
        "--perfgate-device",
        choices=["auto", "cpu", "cuda"],
        default="auto",
        help="Where to measure: auto is the GPU where torch sees one. With -n N each worker has a GPU or a set of "
        "cores of its own.",
    )
    group.addoption(
        "--perfgate-wait",
        metavar="SECONDS",
        type=seconds,
        default=0.0,
        help="How long to wait where another suite measures on the device. Default: not at all.",
    )
    group.addoption(
        "--perfgate-limit",
        metavar="SECONDS",
        type=seconds,
        help="End a benchmark that takes longer, with its stack. Default: ten times what it took in the baseline, at "
        "least 120; 900 where there is none.",
    )
    group.addoption(
        "--perfgate-results", metavar="DIR", type=Path, help="Folder of saved runs. Default: results/ in the project."
    )
    group.addoption(
        "--perfgate-expect",
        choices=["gpu"],
        help="Fail before measuring where this is not there: a runner whose GPU went missing must not be green.",
    )
    group.addoption(
        "--perfgate-workload",
        metavar="MODULE:NAME",
        help="Your own workload, or several, separated by commas, for the benchmarks that ask for them. Default: "
        "$PERFGATE_WORKLOAD and those of installed packages.",
    )
    group.addoption(
        "--perfgate-plan",
        action="store_true",
        help="Say what would run, what would be skipped and why, and for how long. Measures and saves nothing.",
    )
    group.addoption("--perfgate-json", metavar="FILE", type=Path, help="Write the verdicts to FILE, for machines.")
    group.addoption("--perfgate-turns", metavar="FD", type=int, help=argparse.SUPPRESS)  # see perfgate.turn_hooks
    group.addoption("--perfgate-describe", action="store_true", help=argparse.SUPPRESS)  # see perfgate.recheck
    group.addoption(
        "--perfgate-data",
        metavar="DIR",
        type=Path,
        help="Folder with data such as CIFAR-10. Default: $PERFGATE_DATA, else the user's cache.",
    )
