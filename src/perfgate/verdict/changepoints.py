"""Change points: where the level of a series of runs changed for good."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import stdtr

from perfgate.verdict.statistics import Floats

WINDOW = 11  # values of the running median that an outlier is told by
FARTHEST = 3.0  # robust deviations from it
SHORTEST = 4  # values of a segment
LARGEST_P = 1e-3  # times the number of places where a split was possible
SMALLEST_CHANGE = np.log(1.02)
ROBUST = 1.4826  # standard deviations of a normal distribution per median absolute deviation


def change_points(values: Sequence[float]) -> list[int]:
    """Indices at which a new level begins, in order.

    ``values``: logarithms, oldest first. Outliers are drawn in to three robust deviations around the running median;
    then the series is split where the two sides' means differ most by Student's t, and each part again, as long as p
    times the number of possible splits is below 0.001 and the levels differ by 2 %. A level that lasted only a while
    can hide behind the level around it.

    Raises:
        ValueError: for a value that is not finite.
    """
    if not np.isfinite(np.asarray(values, float)).all():
        raise ValueError("a series must be finite to be split")
    return sorted(_splits(_winsorised(np.asarray(values, float)), 0))


def _winsorised(series: Floats) -> Floats:
    if len(series) < 2 * SHORTEST:
        return series
    half = WINDOW // 2
    padded = np.pad(series, half, mode="reflect")
    running = np.median(np.lib.stride_tricks.sliding_window_view(padded, WINDOW), axis=1)
    deviation = ROBUST * float(np.median(np.abs(series - running)))
    return np.clip(series, running - FARTHEST * deviation, running + FARTHEST * deviation)


def _splits(series: Floats, offset: int) -> Iterator[int]:
    count = len(series)
    if count < 2 * SHORTEST:
        return
    left = np.arange(SHORTEST, count - SHORTEST + 1)
    right = count - left
    sums, squares = np.cumsum(series), np.cumsum((series - series.mean()) ** 2)
    mean_left, mean_right = sums[left - 1] / left, (sums[-1] - sums[left - 1]) / right
    difference = mean_right - mean_left
    within = np.maximum(squares[-1] - left * right / count * difference**2, 1e-18 * count)
    t = np.abs(difference) / np.sqrt(within / (count - 2) * (1 / left + 1 / right))
    best = int(np.argmax(t))
    p = 2 * float(stdtr(count - 2, -t[best])) * len(left)
    if p >= LARGEST_P or abs(difference[best]) < SMALLEST_CHANGE:
        return
    place = int(left[best])
    yield offset + place
    yield from _splits(series[:place], offset)
    yield from _splits(series[place:], offset + place)
