"""What every judging command prints and writes."""

from __future__ import annotations

import argparse
import io
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfgate.errors import SettingsError
from perfgate.report.comparison import Comparison, render
from perfgate.report.machine import as_json, as_junit


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """``--json``, ``--junit`` and ``--strict``."""
    parser.add_argument("--json", metavar="FILE", help="write the verdicts to FILE for machines; - is standard output")
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts to FILE as JUnit XML")
    parser.add_argument("--strict", action="store_true", help="fail also where a benchmark is gone or skipped")


def publish(comparison: Comparison, options: argparse.Namespace, about: Mapping[str, Any]) -> int:
    """Print the report, write the files asked for, and give the exit code."""
    code = comparison.exit_code
    document = as_json(comparison.verdicts, exit_code=code, about=about)
    if options.json == "-":
        print(document, end="")
    else:
        show(comparison)
        write(options.json, document)
    write(options.junit, as_junit(comparison.verdicts, strict=comparison.strict))
    return code


def show(comparison: Comparison) -> None:
    """Print the report."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a name may have what this terminal cannot show
    print(render(comparison, columns=shutil.get_terminal_size().columns, colour=colour), end="")


def write(name: str | None, content: str) -> None:
    """Write ``content`` to the file, if one is named.

    Raises:
        SettingsError: where it cannot be written.
    """
    if not name or name == "-":
        return
    try:
        Path(name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot write {name}: {error.strerror}") from error
