"""``python -m workloads``: train, analyse and experiment for real, with the same parts that are benchmarked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console

from workloads.commands import analyse, experiments, ladder, techniques, train
from workloads.workload import Unsuitable

USAGE_ERROR = 2
INTERRUPTED = 130  # as a shell says of a command ended by Ctrl-C
COMMANDS = {"train": train, "experiments": experiments, "ladder": ladder, "analyse": analyse, "techniques": techniques}


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m workloads", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=command.__doc__))
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parsed = make_parser().parse_args(arguments)
    try:
        COMMANDS[parsed.command].run(parsed, Console(highlight=False))
    except Unsuitable as error:
        print(f"workloads: {error}", file=sys.stderr)
        return USAGE_ERROR
    except OSError as error:
        print(f"workloads: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("workloads: interrupted", file=sys.stderr)
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
