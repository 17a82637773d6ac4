"""``perfgate ab``: two commits or two environments, in pairs of fresh processes."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import SettingsError
from perfgate.report.numbers import duration

if TYPE_CHECKING:
    from perfgate.pairs.ab import Result
    from perfgate.pairs.plan import Wanted

DESCRIPTION = """\
Measure BASE and HEAD (the working tree unless given) in pairs of fresh processes whose rounds alternate, and judge
every benchmark. Everything is measured first; what may have changed is measured again, and only that decides.

  perfgate ab main                         this working tree against main
  perfgate ab main HEAD -- -k amp          two commits, some benchmarks
  perfgate ab HEAD HEAD                    a self-check: must find nothing
  perfgate ab --head-python ../new/bin/python      should we upgrade torch?
  perfgate ab main --suite tests/bench     another project's pytest-benchmark suite
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    from perfgate.commands.output import add_output_options

    parser = commands.add_parser(
        "ab",
        help="compare two commits or two environments",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit code: 0 no regression, 1 regression or failure, 2 usage, 3 something could not be judged",
    )
    parser.add_argument("base", metavar="BASE", nargs="?", help="commit, branch or tag to compare with")
    parser.add_argument("head", metavar="HEAD", nargs="?", help="commit, branch or tag; default: the working tree")
    parser.add_argument("--base-python", metavar="PYTHON", default=sys.executable, help="interpreter of base")
    parser.add_argument("--head-python", metavar="PYTHON", default=sys.executable, help="interpreter of head")
    parser.add_argument("--suite", metavar="PATH", default="", help="a suite with the plain benchmark fixture")
    parser.add_argument("--prepare", metavar="COMMAND", default="", help="shell command to run in each checkout first")
    parser.add_argument(
        "--instrument",
        choices=["head", "base"],
        default="head",
        help="whose perfgate and benchmarks measure both sides; base, so that a change cannot loosen its own gate",
    )
    add_size_options(parser)
    add_wait_option(parser)
    add_output_options(parser)
    parser.set_defaults(run=run)


def add_wait_option(parser: argparse.ArgumentParser) -> None:
    """``--wait``."""
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long to wait where another suite measures on the device (default: not at all)",
    )


def add_size_options(parser: argparse.ArgumentParser) -> None:
    """``--pairs``, ``--fresh``, ``--limit`` and ``--one-after-the-other``."""
    from perfgate.pairs.plan import FIRST_PAIRS, FRESH_PAIRS, LIMIT_SECONDS

    parser.add_argument(
        "--pairs", type=int, default=FIRST_PAIRS, metavar="N", help=f"pairs of everything, even (default {FIRST_PAIRS})"
    )
    parser.add_argument(
        "--fresh", type=int, default=FRESH_PAIRS, metavar="N", help=f"of candidates, even (default {FRESH_PAIRS})"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT_SECONDS,
        metavar="SECONDS",
        help=f"longest work of a process between two turns, after which it hangs (default {LIMIT_SECONDS:.0f})",
    )
    parser.add_argument(
        "--one-after-the-other",
        action="store_true",
        help="do not keep both processes alive together; several times noisier, for want of memory only",
    )


def run(options: argparse.Namespace) -> int:
    """Compare, print, and give the exit code."""
    from perfgate.commands.output import publish
    from perfgate.commands.progress import Lines
    from perfgate.pairs.ab import compare_commits
    from perfgate.report.advice import advice
    from perfgate.report.comparison import Comparison

    wanted = wanted_of(options)
    result = compare_commits(wanted, Lines())
    comparison = Comparison(
        title=_title(result),
        verdicts=result.verdicts,
        strict=options.strict,
        notes=result.notes,
        advice=list(advice(result.verdicts, sides_of(options))),
        identical=result.identical,
    )
    about = {
        "command": "ab",
        "base": result.base,
        "head": result.head,
        "notes": result.notes,
        "pairs": len(result.first),
        "fresh_pairs": len(result.fresh),
        "seconds": round(result.seconds, 1),
        "overhead_seconds": round(result.seconds - result.working_seconds, 1),
    }
    return publish(comparison, options, about)


def wanted_of(options: argparse.Namespace) -> Wanted:
    """What the options ask for.

    Raises:
        SettingsError: where they make no sense together.
    """
    from perfgate.pairs.plan import Wanted

    if options.base is None and options.base_python == options.head_python:
        raise SettingsError("ab needs a BASE to compare with, for example: perfgate ab main")
    check_sizes(options)
    return Wanted(
        project=find_project(Path.cwd()),
        base=options.base,
        head=options.head,
        base_python=options.base_python,
        head_python=options.head_python,
        suite=options.suite,
        prepare=options.prepare,
        instrument=options.instrument,
        first=options.pairs,
        fresh=options.fresh,
        limit_seconds=options.limit,
        wait_seconds=options.wait,
        alternating=not options.one_after_the_other,
        arguments=options.rest,
    )


def check_sizes(options: argparse.Namespace) -> None:
    """Refuse sizes that make no sense, and files that could not be written after an hour of measuring.

    Raises:
        SettingsError: naming the option and what it takes.
    """
    for name, fewest in (("pairs", 2), ("fresh", 0)):
        if getattr(options, name) < fewest or getattr(options, name) % 2:
            raise SettingsError(f"--{name} {getattr(options, name)}: an even number from {fewest} on is expected")
    if not 0 < options.limit < math.inf:
        raise SettingsError(f"--limit {options.limit}: seconds are expected")
    if not 0 <= options.wait < math.inf:
        raise SettingsError(f"--wait {options.wait}: seconds are expected")
    for name in ("json", "junit"):
        file = getattr(options, name)
        if file and file != "-" and not (Path(file).absolute().parent.is_dir() and not Path(file).is_dir()):
            raise SettingsError(f"--{name} {file}: cannot write a file there: is the folder there?")


def find_project(folder: Path) -> Path:
    """The nearest folder upwards that has a pyproject.toml; else ``folder``."""
    return next((each for each in (folder, *folder.parents) if (each / "pyproject.toml").is_file()), folder)


def _title(result: Result) -> str:
    """What was compared, and what that took."""
    sides = f"{result.base} -> {result.head}"
    if result.identical:
        return sides
    fresh = f", {len(result.fresh)} fresh ones of candidates" if result.fresh else ""
    return f"{sides}: {len(result.first)} pairs of processes{fresh}, {duration(result.seconds)}"


def sides_of(options: argparse.Namespace) -> str:
    """The options that say what is compared, as they were given."""
    words = [options.base, options.head]
    for name in ("base_python", "head_python", "suite"):
        value = getattr(options, name)
        words.append(f"--{name.replace('_', '-')} {value}" if value and value != sys.executable else None)
    return " ".join(filter(None, words))
