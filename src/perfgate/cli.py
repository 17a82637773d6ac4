"""The command ``perfgate``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from perfgate.launch import COMMAND, replace_process

USAGE_ERROR = 2


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
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    parser = make_parser()
    parsed = parser.parse_args(arguments)
    words = parsed.words[1:] if parsed.words[:1] == ["--"] else parsed.words
    if not words:
        parser.error("exec needs a command, for example: " + COMMAND)
    try:
        replace_process(words)
    except OSError as error:
        print(f"perfgate: cannot run {words[0]}: {error.strerror}", file=sys.stderr)
    return USAGE_ERROR
