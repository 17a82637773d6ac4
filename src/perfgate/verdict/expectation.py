"""Does an optimization pay, and does it go the way its documentation says?"""

from __future__ import annotations

from perfgate.results.record import Record
from perfgate.verdict.estimate import Estimate, median_estimate

INDIFFERENT = 1.05  # a technique expected to change nothing may still differ by this factor either way


def speedup_of(record: Record) -> Estimate | None:
    """Speedup over the plain twin with its interval; ``None`` without a twin."""
    measurement = record.measurement("speedup")
    return median_estimate(measurement.values) if measurement else None


def against_expectation(record: Record) -> str | None:
    """What contradicts the expected direction, as a phrase; ``None`` where nothing does.

    Only an interval that lies wholly on the other side contradicts.
    """
    speedup = speedup_of(record)
    if speedup is None:
        return None
    contradicts = {
        "faster": speedup.high < 1,
        "slower": speedup.low > 1,
        "same": speedup.low > INDIFFERENT or speedup.high < 1 / INDIFFERENT,
    }
    return f"expected {record.expected}" if contradicts.get(record.expected) else None
