"""``perfgate calibrate``: this program against itself, to learn what this machine can tell apart."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import ComparisonError

if TYPE_CHECKING:
    from perfgate.pairs.ab import Result
    from perfgate.verdict.calibration import Calibrated

PAIRS = 12


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    from perfgate.commands.ab import add_wait_option
    from perfgate.commands.output import add_output_options
    from perfgate.pairs.plan import LIMIT_SECONDS

    parser = commands.add_parser(
        "calibrate",
        help="learn how much each benchmark varies on this machine",
        description="Measure the working tree against itself (A/A) in pairs of fresh processes. Writes the noise of "
        "each benchmark to results/<machine>/ledger.json, which ab and --benchmark-compare then use, and prints what a "
        "gate can see. Use the machine for nothing else meanwhile. pytest arguments after --.",
    )
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=f"even (default {PAIRS})")
    parser.add_argument("--limit", type=float, default=LIMIT_SECONDS, metavar="SECONDS", help="as in ab")
    add_wait_option(parser)
    add_output_options(parser)
    parser.set_defaults(run=run, base=None, head=None, suite="", prepare="", instrument="head", fresh=0)
    parser.set_defaults(base_python=sys.executable, head_python=sys.executable, one_after_the_other=False)


def run(options: argparse.Namespace) -> int:
    """Calibrate, print, write the ledger, and give the exit code."""
    from perfgate import settings
    from perfgate.commands.ab import check_sizes, find_project
    from perfgate.commands.output import publish
    from perfgate.commands.progress import Lines
    from perfgate.pairs.ab import compare_commits
    from perfgate.pairs.plan import FIRST_PAIRS, FRESH_PAIRS, Wanted
    from perfgate.report.calibration import table
    from perfgate.report.comparison import Comparison
    from perfgate.verdict.calibration import bias, calibrate

    check_sizes(options)
    project = find_project(Path.cwd())
    wanted = Wanted(
        project=project,
        base=None,
        head=None,
        first=options.pairs,
        fresh=0,
        limit_seconds=options.limit,
        wait_seconds=options.wait,
        arguments=options.rest,
    )
    result = compare_commits(wanted, Lines())
    chosen = settings.load(project)
    found = calibrate(result.first, chosen, first=FIRST_PAIRS, fresh=FRESH_PAIRS)
    if not found:
        raise ComparisonError("no benchmark was measured in both processes of a pair: there is nothing to calibrate")
    file = _write(project / chosen.results, result, found)
    mean, first = bias(result.first)
    if options.json != "-":
        print(table(found))
    comparison = Comparison(
        title=f"A/A of {result.head}: {len(result.first)} pairs",
        verdicts=result.verdicts,
        strict=options.strict,
        notes=[
            f"mean of all log ratios {mean:+.2%}, of the side that started first {first:+.2%} (0 in truth)",
            f"ledger: {file.relative_to(project) if file.is_relative_to(project) else file}",
        ],
    )
    return publish(comparison, options, {"command": "calibrate", "bias": mean, "bias_of_first": first})


def _write(results: Path, result: Result, found: list[Calibrated]) -> Path:
    """The ledger, with what it knew before of benchmarks that were not measured now."""
    from perfgate.results.ledger import Ledger, read_ledger, write_ledger

    slug = str(result.machine.get("slug") or "unknown")
    old = read_ledger(results / slug)
    entries = {**old.entries, **{(each.noise.id, each.noise.metric): each.noise for each in found}}
    stamp = datetime.now(UTC).isoformat(timespec="seconds")
    ledger = Ledger(stamp=stamp, soft=result.machine.get("soft", {}), entries=entries)
    return write_ledger(results / slug, ledger)
