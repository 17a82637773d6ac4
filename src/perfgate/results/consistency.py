"""Whether the parts of a results file agree: names, processes, and statistics with the samples they are of."""

from __future__ import annotations

import math
import statistics
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from perfgate.errors import Inconsistent, RepeatedBenchmark, WrongField
from perfgate.results.shape import Above, AtLeast, Shape, check_shape

TOLERANCE = 1e-6  # relative; stock statistics are computed from the same floats
TIME = Above(float, 0)
SUMMARY: Shape = {"min": TIME, "max": TIME, "median": TIME}
ORDER = ("min", "q1", "median", "q3", "max")
REMEDY = "somebody edited one of them; restore the file from git"


def check_unique(names: Sequence[str], where: str, source: str) -> None:
    """Refuse two entries of one name; two ways of writing the same characters are one name.

    Raises:
        RepeatedBenchmark: naming both.
    """
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        other = places.setdefault(unicodedata.normalize("NFC", name), place)
        if other != place:
            written = "" if names[other] == name else f", written {names[other]!a:.200} and {name!a:.200}"
            raise RepeatedBenchmark(
                f"{source}: the benchmark {name!r:.200} appears twice, as {where}[{other}] and {where}[{place}]"
                f"{written}: nobody can tell which counts; measure again"
            )


def check_processes(block: Mapping[str, Any], source: str) -> None:
    """Refuse samples of processes that the run does not tell about.

    Raises:
        Inconsistent: naming the benchmark.
    """
    known = len(block["processes"])
    for record in block["records"]:
        for each in record["measurements"]:
            if len(each["samples"]) > known:
                raise Inconsistent(
                    f"{source}: {each['metric']} of {record['id']!r:.200} has samples of {len(each['samples'])} "
                    f"processes, and the run had {known}: {REMEDY}"
                )


def check_stock(benchmarks: Any, source: str, *, with_data: bool = True) -> None:
    """Refuse stock statistics that disagree with the raw samples beside them; without data, that are no times.

    ``with_data`` requires the raw samples, as perfgate saves them.

    Raises:
        WrongField: naming the field that is wrong.
        Inconsistent: naming the statistic, its value and what the samples give.
        RepeatedBenchmark: where a name appears twice.
    """
    if not isinstance(benchmarks, list):
        raise WrongField(f"{source}: field benchmarks: list expected, got {type(benchmarks).__name__}")
    for number, each in enumerate(benchmarks):
        where = f"benchmarks[{number}]"
        _refuse(check_shape(each, {"fullname": str, "stats": {}}, where), source)
        stats = each["stats"]
        has_data = with_data or "data" in stats
        _refuse(check_shape(stats, _shape_of(stats, has_data=has_data), f"{where}.stats"), source)
        if has_data:
            _check_recomputed(stats, f"{source}: {where}.stats")
        _check_order(stats, f"{source}: {where}.stats")
    check_unique([each["fullname"] for each in benchmarks], "benchmarks", source)


def _refuse(problem: str | None, source: str) -> None:
    if problem:
        raise WrongField(f"{source}: {problem}; restore the file from git, or measure again")


def _shape_of(stats: Mapping[str, Any], *, has_data: bool) -> Shape:
    """What must be there and what else, if it is there, must be right."""
    wanted: dict[str, Shape] = {**SUMMARY, **({"data": [TIME]} if has_data else {"q1": TIME, "q3": TIME})}
    optional = {"mean": TIME, "rounds": AtLeast(int, 1)}
    return wanted | {key: shape for key, shape in optional.items() if key in stats}


def _check_recomputed(stats: Mapping[str, Any], where: str) -> None:
    data = stats["data"]
    if not data:
        raise Inconsistent(f"{where}.data: times must be more than 0, and there must be one: measure again")
    if stats.get("rounds", len(data)) != len(data):
        raise Inconsistent(f"{where}.rounds is {stats['rounds']}, but there are {len(data)} raw samples: {REMEDY}")
    recomputed = {"min": min(data), "max": max(data), "median": statistics.median(data)}
    for name, value in recomputed.items():  # quartiles and mean stay those of the whole where samples were thinned
        if not math.isclose(stats[name], value, rel_tol=TOLERANCE):
            raise Inconsistent(f"{where}.{name} is {stats[name]}, but the raw samples give {value}: {REMEDY}")


def _check_order(stats: Mapping[str, Any], where: str) -> None:
    """``min <= q1 <= median <= q3 <= max``, and the mean between the ends, as far as they are there."""
    chains = [[key for key in ORDER if key in stats], [key for key in ("min", "mean", "max") if key in stats]]
    for low, high in (pair for chain in chains for pair in pairwise(chain)):
        both = stats[low], stats[high]
        if check_shape(list(both), [TIME], where) or both[0] > both[1] * (1 + TOLERANCE):
            raise Inconsistent(f"{where}: {low} <= {high} does not hold: {both[0]} and {both[1]}: {REMEDY}")
