"""``perfgate prune``: fewer raw samples of old runs."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perfgate.errors import ResultsError, SettingsError, UnsavableRun

if TYPE_CHECKING:
    from perfgate.report.runs import Pruning
    from perfgate.results.store import Store

KEPT = 100  # runs of each machine: five times as far as a comparison looks back
MOST = 21  # samples; the interval of a median is then twice as wide as of 80
SILENT_SECONDS = 2.0
DESCRIPTION = """\
Thin the raw samples of old runs to values spread evenly over their order. Medians, minima, maxima, counts and all else
stay exactly as they are, so runs are judged as before; intervals of speedups get wider, and pytest-benchmark's mean,
deviation and quartiles become those of the samples kept (the old ones are in extra_info). Says what it would do, and
does it with --yes. A file that would not get smaller, ledgers, journals and accepted.toml are not touched; a file has
its old content or the new at any moment.

  perfgate prune                           what would be done
  perfgate prune --keep 200 --yes          do it; the newest 200 runs of each machine stay
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The command's options."""
    from perfgate.commands.runs import add_machine_option, add_results_option

    parser = commands.add_parser(
        "prune",
        help="thin the raw samples of old runs",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="exit code: 0 done, or nothing to do; 2 usage, or a file could not be written",
    )
    parser.add_argument(
        "--keep", type=int, default=KEPT, metavar="N", help=f"newest runs of each machine to leave (default {KEPT})"
    )
    parser.add_argument(
        "--samples", type=int, default=MOST, metavar="N", help=f"samples of a list to keep, odd (default {MOST})"
    )
    add_machine_option(parser)
    parser.add_argument("--yes", action="store_true", help="do it")
    add_results_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Say what there is to do, do it where asked, and give the exit code."""
    from perfgate.commands.runs import chosen_machines, results_of, terminal_columns
    from perfgate.report.runs import pruning
    from perfgate.results.store import Store

    _check(options)
    store = Store(results_of(options))
    plan = make_plan(store, chosen_machines(store, options.machine), options.keep, options.samples)
    for line in pruning(plan, options.samples, columns=terminal_columns()):
        print(line)
    if not plan.files:
        return 0
    if not options.yes:
        print("nothing was changed; add --yes")
        return 0
    print(f"{prune(plan.files, options.samples)} thinned")
    return 0


def _check(options: argparse.Namespace) -> None:
    from perfgate.results.thinning import FEWEST

    if options.keep < 0:
        raise SettingsError(f"--keep {options.keep}: a number from 0 on is expected")
    if options.samples < FEWEST or options.samples % 2 == 0:
        raise SettingsError(f"--samples {options.samples}: an odd number from {FEWEST} on is expected")


def make_plan(store: Store, machines: Sequence[str], keep: int, most: int) -> Pruning:
    """What thinning would do, found by doing it in memory, one file after the other."""
    from perfgate.commands.runs import reading
    from perfgate.report.runs import Pruning

    kept, unchanged, before_bytes, after_bytes = 0, 0, 0, 0
    old: list[Path] = []
    for machine in machines:
        with reading(store.root / machine):
            files = list(store.files(machine))
        kept += len(files[:keep])
        old += files[keep:]
    chosen: list[Path] = []
    problems: list[str] = []
    for file in watched(old, "looking at"):
        try:
            text, content = thinned(file, most)
        except ResultsError as error:
            problems.append(str(error))
            continue
        if content is None:
            unchanged += 1
            continue
        chosen.append(file)
        before_bytes += len(text.encode())
        after_bytes += len(content)
    return Pruning(
        kept=kept,
        files=chosen,
        unchanged=unchanged,
        before_bytes=before_bytes,
        after_bytes=after_bytes,
        problems=problems,
    )


def prune(files: Sequence[Path], most: int) -> int:
    """Thin the files; how many were.

    Raises:
        UnsavableRun: where one could not be written, with the number of those that were.
    """
    from perfgate.results.writer import replace_file

    done = 0
    for file in watched(files, "thinning"):
        try:
            _, content = thinned(file, most)
        except ResultsError as error:  # it changed since it was looked at
            print(f"passed over: {error}", file=sys.stderr)
            continue
        if content is None:
            continue
        try:
            replace_file(file, content)
        except UnsavableRun as error:
            raise UnsavableRun(
                f"{error}; {done} of {len(files)} files were thinned, the others are as before"
            ) from error
        done += 1
    return done


def thinned(file: Path, most: int) -> tuple[str, bytes | None]:
    """A file's text, and its new content; ``None`` where it needs none.

    Raises:
        ResultsError: where the file cannot be read, or not be rewritten.
    """
    from perfgate.results.reader import read_text
    from perfgate.results.thinning import thin_text

    text = read_text(file)
    return text, thin_text(text, str(file), most)


def watched(files: Sequence[Path], what: str) -> Iterator[Path]:
    """The files, with a line of progress on a terminal from the third second on."""
    from perfgate.commands.progress import CLEAR

    started, shown = time.monotonic(), False
    for number, file in zip(itertools.count(1), files, strict=False):
        yield file
        if sys.stderr.isatty() and time.monotonic() - started > SILENT_SECONDS:
            shown = True
            print(f"{CLEAR}perfgate: {what} {number} of {len(files)} files", end="", file=sys.stderr, flush=True)
    if shown:
        print(CLEAR, end="", file=sys.stderr, flush=True)
