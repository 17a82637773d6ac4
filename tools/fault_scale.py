"""How a session starts beside many saved runs: seconds and peak memory from its start to its end, with one benchmark.

The session is a real ``pytest --benchmark-compare`` in a project of its own. pytest-benchmark reads the same files,
under the names that it would have given them.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BENCHMARKS = 60
ROUNDS = 10  # of each, which makes about 94 KB
REPETITIONS = 3
STAMP = "STAMP"
SPARE = 2.0  # of the space that the files take
TEST = f"""
def test_sum(benchmark):
    benchmark.pedantic(sum, args=(range(1000),), rounds={ROUNDS}, iterations=1, warmup_rounds=1)
"""
SETTINGS = "[tool.perfgate]\nthreshold = 9.0\n"  # nothing is measured again
FIND = """
import sys
from pathlib import Path
from perfgate.results.baseline import find
from perfgate.results.store import Store, read
store = Store(Path(sys.argv[1]))
(machine,) = store.machines()
newest = next(iter(store.files(machine)))
print(len(find(store, read(newest).machine).runs), "runs used")
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of a process; medians."""

    seconds: float
    peak_bytes: float


def start_up(runs: int) -> tuple[dict[str, dict[int, Cost]], int]:
    """By program and number of runs, what starting costs; and the bytes of one run's file.

    Raises:
        SystemExit: where the disk has no room, or a session did not find the runs.
    """
    with tempfile.TemporaryDirectory() as name:
        project = Path(name)
        template, machine, stock_machine = _project(project)
        needed = int(len(template) * runs * SPARE)
        if shutil.disk_usage(project).free < needed:
            raise SystemExit(f"{needed:,} bytes are needed in {project}: free some, or give less --runs")
        costs: dict[str, dict[int, Cost]] = {}
        for number in (1, runs):
            _fill(project, template, machine, stock_machine, number)
            for program, words in _programs(project).items():
                costs.setdefault(program, {})[number] = _cost(program, words, project)
        return costs, len(template)


def _project(project: Path) -> tuple[str, str, str]:
    """A project, a run of it with 60 benchmarks as a template, and what both programs call this machine."""
    (project / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (project / "test_it.py").write_text(TEST, encoding="utf-8")
    _run([sys.executable, "-m", "pytest", "-q", "--benchmark-save=seed"], project)
    (file,) = (project / "results").glob("*/*Z-*.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    block = document["perfgate"]
    for entries, key in ((block["records"], "id"), (document["benchmarks"], "fullname")):
        (one,) = entries
        entries += [{**one, key: f"{one[key]}[{number}]"} for number in range(1, BENCHMARKS)]
    block["stamp"] = STAMP
    block["scope"]["full"] = True
    stock = "import pytest_benchmark.utils as utils; print(utils.get_machine_id())"
    stock_machine = _run([sys.executable, "-c", stock], project)[0].strip()
    return json.dumps(document, separators=(",", ":")), file.parent.name, stock_machine


def _fill(project: Path, template: str, machine: str, stock_machine: str, runs: int) -> None:
    """So many files for both; pytest-benchmark's are links to the same."""
    folder, stock = project / "results" / machine, project / "stock" / stock_machine
    for each in (folder, stock):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir(parents=True)
    for number in range(runs):
        stamp = f"20260101T{number:09}Z"
        file = folder / f"{stamp}-unknown-{number % 65536:04x}.json"
        file.write_text(template.replace(STAMP, stamp), encoding="ascii")
        os.link(file, stock / f"{number + 1:04}_seed.json")


def _programs(project: Path) -> dict[str, Sequence[str]]:
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--benchmark-compare"]
    storage = f"--benchmark-storage=file://{project / 'stock'}"
    return {
        "perfgate, baseline found": [sys.executable, "-c", FIND, str(project / "results")],
        "perfgate, pytest session": [*pytest, "--perfgate-no-save"],
        "stock, pytest session": [*pytest, "-p", "no:perfgate.plugin", storage],
    }


SEEN = {
    "perfgate, baseline found": "runs used",
    "perfgate, pytest session": "perfgate: baseline ",
    "stock, pytest session": "Comparing against benchmarks from",
}
"""What each prints where it found the runs."""


def _cost(program: str, words: Sequence[str], project: Path) -> Cost:
    seconds: list[float] = []
    peaks: list[int] = []
    for _ in range(REPETITIONS):
        output, taken, peak_bytes = _run(words, project)
        if SEEN[program] not in output:
            raise SystemExit(f"{program} did not find the runs:\n{output}")
        seconds.append(taken)
        peaks.append(peak_bytes)
    return Cost(seconds=statistics.median(seconds), peak_bytes=statistics.median(peaks))


def _run(words: Sequence[str], folder: Path) -> tuple[str, float, int]:
    """What a process printed, its seconds, and the most memory it or a child of it had.

    A process begins with the peak of the one that starts it, so this one must stay small. The lock of the device is one
    of its own: waiting for another suite is no part of starting.
    """
    environment = {**os.environ, "PERFGATE_LOCKS": str(folder)}
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603
            words, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode:
        raise SystemExit(f"{' '.join(words[:6])} ... ended with {process.returncode}:\n{text}")
    return text, seconds, usage.ru_maxrss * 1024
