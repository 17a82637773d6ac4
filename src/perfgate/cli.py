"""The command ``perfgate``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from perfgate.commands import ab, calibrate, clean, compare, prune, recover, runs
from perfgate.errors import ComparisonError, DeviceBusy, PerfgateError
from perfgate.launch import COMMAND, replace_process
from perfgate.verdict.verdicts import NOT_JUDGED, USAGE_ERROR

INTERRUPTED = 130


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="perfgate", description="Benchmarks that can block a pull request.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "exec",
        help="run a command with what makes its timings repeatable",
        description="Run COMMAND with huge pages for malloc, OpenMP threads that sleep while they wait, and one "
        f"thread fewer than cores. Variables that are already set stay as they are. Example: {COMMAND}",
    )
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program and its arguments")
    run.set_defaults(run=execute)
    for command in (ab, compare, calibrate, runs, recover, prune, clean):
        command.add_parser(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    rest: list[str] = []
    if "--" in given and given[:1] != ["exec"]:
        given, rest = given[: given.index("--")], given[given.index("--") + 1 :]
    options = make_parser().parse_args(given)
    options.rest = rest
    try:
        code: int = options.run(options)
    except (ComparisonError, DeviceBusy) as error:
        print(f"perfgate: {error}", file=sys.stderr)
        return NOT_JUDGED
    except PerfgateError as error:
        print(f"perfgate: {error}", file=sys.stderr)
        return USAGE_ERROR
    except KeyboardInterrupt:
        print("perfgate: interrupted; nothing was judged", file=sys.stderr)
        return INTERRUPTED
    return code


def execute(options: argparse.Namespace) -> int:
    """Become the command."""
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        print(f"perfgate: exec needs a command, for example: {COMMAND}", file=sys.stderr)
        return USAGE_ERROR
    try:
        replace_process(words)
    except OSError as error:
        print(f"perfgate: cannot run {words[0]}: {error.strerror}", file=sys.stderr)
    return USAGE_ERROR
