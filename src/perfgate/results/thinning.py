"""Fewer raw samples of old runs: what is kept are values that were measured, spread evenly over their order.

It works on the document as it was read, so that what this version does not know stays in it. Minimum, median and
maximum are exactly as before. pytest-benchmark's other statistics are those of the samples kept, or the file would
contradict itself; what they were is kept beside them, in ``extra_info``.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from perfgate.errors import ResultsError
from perfgate.results.document import dumps, parse, run_of
from perfgate.results.reader import loads
from perfgate.results.record import SCHEMA

FEWEST = 7
"""Of an even list one fewer is kept, and an interval of the median needs six values."""
NOISY = ("sampled", "paired")
NOTE = "samples"
"""Key of the sentence among a record's evidence: a flag would say that the measurement was disturbed, and a
measurement's note that it has no raw samples."""
BEFORE = "before_thinning"
"""Key of pytest-benchmark's statistics of all samples in ``extra_info``."""


def thin_text(text: str, source: str, most: int) -> bytes | None:
    """A results file's text with at most ``most`` samples in each list; ``None`` where that is not shorter.

    What is said of what was left out needs some room, too. The result was read back and is a valid run.

    Raises:
        UnreadableRun: where the text is not a valid run.
        ResultsError: where it has an older schema, which is never rewritten.
    """
    document = loads(text, source)
    run_of(document, source)
    block = document["perfgate"]
    if block["schema"] != SCHEMA:
        raise ResultsError(f"{source}: schema {block['schema']} is read and never rewritten; this one is {SCHEMA}")
    records = [thin_record(each, most) for each in block["records"]]
    benchmarks = [_thin_benchmark(each, most) for each in document["benchmarks"]]
    content = dumps({**document, "benchmarks": benchmarks, "perfgate": {**block, "records": records}})
    if len(content) >= len(text.encode()) or (records, benchmarks) == (block["records"], document["benchmarks"]):
        return None  # in a file written by other means, JSON without spaces may be shorter by itself
    parse(content.decode("ascii"), source)
    return content


def thin_record(record: Mapping[str, Any], most: int) -> dict[str, Any]:
    """A record of the ``perfgate`` block, with a sentence among its evidence that says what was left out."""
    measurements, sentences = [], []
    for each in record["measurements"]:
        samples = each["samples"]
        if each["kind"] in NOISY:  # counts are exact, and the first of them speaks for all
            samples = [thin(process, most) for process in samples]
        before, after = sum(map(len, each["samples"])), sum(map(len, samples))
        if after < before:
            sentences.append(f"{each['metric']} thinned from {before} to {after}")
        measurements.append({**each, "samples": samples})
    if not sentences:
        return dict(record)
    said = [record["evidence"][NOTE]] if NOTE in record["evidence"] else []
    evidence = {**record["evidence"], NOTE: "; ".join([*said, *sentences])}
    return {**record, "measurements": measurements, "evidence": evidence}


def thin(values: Sequence[float], most: int) -> list[float]:
    """At most ``most`` (odd) of the values, in their old order: minimum, median, maximum and evenly spaced ranks.

    Of an even number of values an even number is kept, one less than ``most``: both in the middle are needed, or the
    median would be a value that was never measured, and the median of the logarithms another one.
    """
    count = len(values)
    if count <= most:
        return list(values)
    kept_half = (most + count % 2) // 2
    last = (count - 1) // 2
    gaps = kept_half - 1
    lower = [(2 * number * last + gaps) // (2 * gaps) for number in range(kept_half)]  # rounded, without floats
    ranks = {*lower, *(count - 1 - rank for rank in lower)}
    by_rank = sorted(range(count), key=values.__getitem__)
    return [values[place] for place in sorted(by_rank[rank] for rank in ranks)]


def _thin_benchmark(benchmark: Mapping[str, Any], most: int) -> dict[str, Any]:
    """pytest-benchmark's part."""
    stats = benchmark["stats"]
    data = thin(stats["data"], most)
    if len(data) == len(stats["data"]):
        return dict(benchmark)
    new = {key: value for key, value in stock_statistics(data).items() if key in stats}
    old = {key: stats[key] for key in new}
    result = {**benchmark, "stats": {**stats, **new, "data": data}}
    extra = benchmark.get("extra_info")
    if isinstance(extra, dict):
        result["extra_info"] = {BEFORE: old, **extra}  # thinned again, it still tells of all samples
    return result


def stock_statistics(data: Sequence[float]) -> dict[str, Any]:
    """pytest-benchmark's statistics as its ``stats.py`` defines them, but for minimum, median and maximum."""
    ordered = sorted(data)
    mean, total = statistics.fmean(data), sum(data)
    stddev = math.sqrt(math.fsum((value - mean) ** 2 for value in data) / (len(data) - 1))
    q1, q3 = quartiles(ordered)
    low, high = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)  # Tukey's fences
    stddev_outliers = sum(not mean - stddev <= value <= mean + stddev for value in data)
    iqr_outliers = sum(not low <= value <= high for value in data)
    return {
        "mean": mean,
        "stddev": stddev,
        "rounds": len(data),
        "iqr": q3 - q1,
        "q1": q1,
        "q3": q3,
        "iqr_outliers": iqr_outliers,
        "stddev_outliers": stddev_outliers,
        "outliers": f"{stddev_outliers};{iqr_outliers}",
        "ld15iqr": ordered[bisect_left(ordered, low)],
        "hd15iqr": ordered[bisect_right(ordered, high) - 1],
        "ops": len(data) / total,
        "total": total,
    }


def quartiles(ordered: Sequence[float]) -> tuple[float, float]:
    """The first and the third: of an even count medians of the halves, else means weighted 1 to 3.

    Methods 2 and 3 of https://en.wikipedia.org/wiki/Quartile#Computing_methods, as pytest-benchmark uses them.
    """
    count = len(ordered)
    if count % 2 == 0:
        return statistics.median(ordered[: count // 2]), statistics.median(ordered[count // 2 :])
    whole, rest = divmod(count, 4)
    if rest == 1:
        return (
            0.25 * ordered[whole - 1] + 0.75 * ordered[whole],
            0.75 * ordered[3 * whole] + 0.25 * ordered[3 * whole + 1],
        )
    return (
        0.75 * ordered[whole] + 0.25 * ordered[whole + 1],
        0.25 * ordered[3 * whole + 1] + 0.75 * ordered[3 * whole + 2],
    )
