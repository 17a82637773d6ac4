"""Does the gate keep its promises on this machine? A/A and planted slow-downs, beside pytest-benchmark's own rule.

Makes a project of ten benchmarks in a temporary git repository. In head, a busy loop of known length (on a GPU, a
spinning kernel) slows two of them by 5 % and two by 10 %, or by what ``--planted`` says; six are untouched. Compares
base with head again and again with ``perfgate ab``'s own code, and counts false alarms among the untouched ones and
detections among the others; beside them, what ``--benchmark-compare-fail=median:5%`` says of one base process and one
later head process of the same measurements.

    python tools/gate_evidence.py --runs 20 --save evidence.jsonl
    python tools/gate_evidence.py --runs 1 --save gpu.jsonl --planted 0.03 0.05

A run takes about 3 minutes on two cores, so 20 take about an hour. Every run is appended to the file at once, and
``--runs 0`` prints the table of what is there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_benchmark.utils import parse_compare_fail

from evidence_project import make_project
from perfgate.pairs.ab import Result, compare_commits
from perfgate.pairs.plan import Wanted
from perfgate.pairs.progress import Progress
from perfgate.results.record import Record
from perfgate.verdict.stock import stock_statistics

SLOWED = {"mlp/2": 0, "transformer-inference/2": 0, "mlp-inference/2": 1, "resnet/2": 1}
"""Case -> by the first or by the second of the two sizes."""
USUAL = (0.05, 0.10)
STOCK = parse_compare_fail("median:5%")


def case_of(name: str) -> str:
    """The parameter in a node id."""
    return name.partition("[")[2].rstrip("]")


def step_seconds(folder: Path) -> dict[str, float]:
    """How long each step takes, from two pairs of base with itself."""
    make_project(folder, {})
    result = compare_commits(Wanted(project=folder, base="base", head="base", first=2, fresh=0), Progress())
    return {
        case_of(name): statistics.median(value for pair in result.first for value in _walls(pair.base[name]))
        for name in result.first[0].base
    }


def _walls(record: Record) -> Sequence[float]:
    found = record.measurement("wall_seconds")
    return found.values if found else ()


def one_run(delays: dict[str, float], planted: Sequence[float]) -> dict[str, Any]:
    """Compare base with head once; the words of both gates by case."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_project(folder, delays)
        result = compare_commits(Wanted(project=folder, base="base", head="head"), Progress())
    return {
        "planted": list(planted),
        "seconds": round(time.perf_counter() - started, 1),
        "overhead": round(1 - result.working_seconds / result.seconds, 4),
        "ours": {case_of(each.id): each.word for each in result.verdicts},
        "ratios": {case_of(each.id): round(each.change.value, 4) for each in result.verdicts if each.change},
        "stock": stock_words(result),
    }


def stock_words(result: Result) -> dict[str, str]:
    """What pytest-benchmark's limit says of a base process of the first pair and a head process of the second."""
    words = {}
    for name, base in result.first[0].base.items():
        head = result.first[1].head.get(name)
        if head is not None:
            failed = STOCK.fails(stock_statistics(head), stock_statistics(base))
            words[case_of(name)] = "slower" if failed else "same"
    return words


def table(runs: Sequence[dict[str, Any]], planted: Sequence[float]) -> str:
    """Alarms and detections of both gates."""
    lines = [f"{len(runs)} runs of 10 benchmarks, {sum(each['seconds'] for each in runs) / 60:.0f} min in all"]
    lines.append(f"{'':<34}{'perfgate ab':>14}{'median:5%':>14}")
    titles = ["clean suites (6 benchmarks) red", *(f"{100 * size:g} % slower: named" for size in planted)]
    for title, number in zip(titles, (None, 0, 1), strict=True):
        cells = [count(runs, gate, number) for gate in ("ours", "stock")]
        lines.append(f"{title:<34}{cells[0]:>14}{cells[1]:>14}")
    clean = [ratio - 1 for each in runs for case, ratio in each["ratios"].items() if case not in SLOWED]
    lines.append(
        f"clean benchmarks: mean {statistics.mean(clean):+.2%}, standard deviation {statistics.stdev(clean):.2%}"
    )
    words = [word for each in runs for case, word in each["ours"].items() if case not in SLOWED]
    lines.append("clean verdicts: " + ", ".join(f"{words.count(word)} {word}" for word in sorted(set(words))))
    lines.append(
        f"overhead: {statistics.mean(each['overhead'] for each in runs):.1%} of the time was not measuring processes'"
    )
    return "\n".join(lines)


def count(runs: Sequence[dict[str, Any]], gate: str, number: int | None) -> str:
    """``3 of 20``: benchmarks named that were slowed by the size of this ``number``; ``None``: red suites."""
    if number is None:
        red = sum(any(word == "slower" for case, word in each[gate].items() if case not in SLOWED) for each in runs)
        return f"{red} of {len(runs)}"
    words = [each[gate].get(case, "") for each in runs for case, which in SLOWED.items() if which == number]
    return f"{words.count('slower')} of {len(words)}"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--save", type=Path, default=Path("evidence.jsonl"), help="file to append runs to")
    parser.add_argument("--planted", type=float, nargs=2, default=USUAL, metavar="SIZE", help="as fractions")
    arguments = parser.parse_args()
    if arguments.runs:
        with tempfile.TemporaryDirectory() as folder:
            seconds = step_seconds(Path(folder))
        print({case: f"{each * 1e3:.2f} ms" for case, each in seconds.items()}, flush=True)
        delays = {case: arguments.planted[number] * seconds[case] for case, number in SLOWED.items()}
    for number in range(arguments.runs):
        found = one_run(delays, arguments.planted)
        with arguments.save.open("a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        print(f"run {number + 1} of {arguments.runs}: {found['seconds']:.0f} s", flush=True)
    runs = [json.loads(line) for line in arguments.save.read_text(encoding="utf-8").splitlines()]
    for sizes in sorted({tuple(each.get("planted", USUAL)) for each in runs}):
        print(table([each for each in runs if tuple(each.get("planted", USUAL)) == sizes], sizes))


if __name__ == "__main__":
    main()
