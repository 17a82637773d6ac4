"""``python -m workloads``: train, analyse and experiment for real, with the same parts that are benchmarked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

USAGE_ERROR = 2
INTERRUPTED = 130  # as a shell says of a command ended by Ctrl-C
COMMANDS = {
    "train": "train and show throughput, memory and accuracy per epoch",
    "experiments": "the classic course experiment: CPU threads, GPU, AMP, batch sizes",
    "ladder": "add one technique at a time and keep what pays",
    "analyse": "show parameters, FLOPs, memory, time, roofline and scaling of a training step",
    "techniques": "list every technique: what it does, which way it is expected to go, and whether it can be used here",
}
"""One file each in ``workloads.commands``; that of the command asked for is loaded, and torch when it runs."""


def make_parser(command: str) -> argparse.ArgumentParser:
    """The command line, with the options of ``command``."""
    parser = argparse.ArgumentParser(prog="python -m workloads", description=__doc__.replace("``", ""))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        options = commands.add_parser(name, help=purpose)
        if name == command:
            module = import_module(f"workloads.commands.{name}")
            options.description = module.__doc__ and module.__doc__.replace("``", "")
            module.add_arguments(options)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    command = next((word for word in given if not word.startswith("-")), "")
    parsed = make_parser(command).parse_args(given)
    try:
        return run(parsed)
    except OSError as error:
        print(f"workloads: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("workloads: interrupted", file=sys.stderr)
        return INTERRUPTED


def run(parsed: argparse.Namespace) -> int:
    """Run the command that was parsed; the exit code."""
    from rich.console import Console

    from workloads.commands.choices import in_options
    from workloads.workload import Unsuitable

    try:
        import_module(f"workloads.commands.{parsed.command}").run(parsed, Console(highlight=False))
    except Unsuitable as error:
        print(f"workloads: {in_options(str(error))}", file=sys.stderr)
        return USAGE_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())
