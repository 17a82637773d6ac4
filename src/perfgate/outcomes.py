"""What a test's report says about its benchmark: a record, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perfgate.faults import Fault, recognise
from perfgate.results.record import Measurement, Record, identity_hash
from perfgate.results.stock import with_text_parameters
from perfgate.turns import ALONE
from perfgate.verdict.verdicts import Verdict, Word

if TYPE_CHECKING:
    import pytest

    from perfgate.gate import Gate

NO_MEASUREMENT = "no-measurement", "the test passed without measuring: call measure(step)"
DISABLED = "disabled", "benchmarks are disabled"


def take(
    gate: Gate,
    item: pytest.Item,
    report: pytest.TestReport,
    record: Record | None,
    error: BaseException | None = None,
) -> Fault | None:
    """Enter the outcome of one phase of a test into the gate.

    ``record`` is what ``measure`` made, ``error`` what the phase raised; the fault of the machine that this was, if it
    was one.
    """
    name = report.nodeid
    fixture = getattr(item, "funcargs", {}).get("benchmark")  # None where the test did not get that far
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        gate.harvest.give_up(_outcome(name, "skipped", "skipped", reason.removeprefix("Skipped: ")))
    elif report.failed:
        if fixture is not None:
            fixture.has_error = True  # pytest-benchmark would save the numbers of a failed test
            fixture.skipped = True  # and warn, as an error of its own, where the test failed before the first round
        gate.reported.add(name)
        fault = recognise(error) if error is not None else None
        failed = _outcome(name, "failed", f"failed-in-{report.when}", _reason(report))
        gate.harvest.give_up(_outcome(name, "unjudged", fault.code, fault.reason) if fault else failed)
        return fault
    elif report.when == "call":
        record = record or _timed_by(fixture, name)
        if record is None:
            code, reason = DISABLED if fixture is not None and fixture.disabled else NO_MEASUREMENT
            gate.harvest.give_up(_outcome(name, "unjudged", code, reason))
        else:
            if gate.turns is ALONE:
                gate.describe_process()
            gate.harvest.take(record, _stock_of(fixture))
            _show(item, report, record, smoke=gate.wishes.smoke)
    return None


def _stock_of(fixture: Any) -> dict[str, Any] | None:
    """pytest-benchmark's own document of the benchmark."""
    stats = getattr(fixture, "stats", None)
    return with_text_parameters(stats.as_dict(include_data=True)) if stats else None


def _show(item: pytest.Item, report: pytest.TestReport, record: Record, *, smoke: bool) -> None:
    """For ``pytest -v`` and as properties of the case in JUnit."""
    from perfgate.report.summary import figures, one_line

    report.perfgate = one_line(record, smoke=smoke)  # type: ignore[attr-defined]
    if not smoke:
        item.user_properties += [(f"perfgate.{key}", value) for key, value in figures(record).items()]


def _outcome(name: str, word: Word, code: str, reason: str) -> Verdict:
    return Verdict(id=name, word=word, code=code, reason=reason)


def _reason(report: pytest.TestReport) -> str:
    """Why a test failed, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else str(report.longrepr)
    return text.strip().partition("\n")[0].removeprefix("Failed: ")


def _timed_by(fixture: Any, name: str) -> Record | None:
    """What pytest-benchmark's own fixture timed, if it did: times, and nothing else."""
    if fixture is None or fixture.stats is None or not fixture.stats.stats.data:
        return None
    samples: Sequence[float] = fixture.stats.stats.data
    return plain_record(name, fixture.group, samples)


def plain_record(name: str, group: str | None, samples: Sequence[float], note: str | None = None) -> Record:
    """The record of a benchmark of which only the times are known, in seconds; ``note`` says what to know of them."""
    wall = Measurement(
        metric="wall_seconds", unit="s", better="lower", kind="sampled", samples=(tuple(samples),), note=note
    )
    return Record(
        id=name,
        group=group or "",
        identity=identity_hash({}),
        step=name,
        measurements=(wall,),
        seconds=sum(samples),
    )
