"""Verdicts for machines: JSON and JUnit."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from perfgate.report.text import OLD_COMMAND, visible
from perfgate.verdict.verdicts import Verdict, is_failure, tally

SCHEMA = 1
PARTS = {"ratio": "value", "low": "low", "high": "high"}


def as_json(verdicts: Sequence[Verdict], *, exit_code: int, about: Mapping[str, Any]) -> str:
    """The verdicts with counts, exit code and what ``about`` tells of the comparison."""
    document = {
        "schema": SCHEMA,
        "exit_code": exit_code,
        "counts": tally(verdicts),
        **about,
        "verdicts": [_as_dict(each) for each in verdicts],
    }
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    return text.replace(OLD_COMMAND, "\\u0023#[")  # the same string, and no command to a runner that sees it printed


def _as_dict(verdict: Verdict) -> dict[str, Any]:
    change = verdict.change
    return {
        "id": verdict.id,
        "verdict": verdict.word,
        "code": verdict.code,
        "reason": verdict.reason,
        "metric": verdict.metric,
        "worse_by": {key: _finite(getattr(change, name)) for key, name in PARTS.items()} if change else None,
        "limit": _finite(verdict.threshold),
        "detectable": _finite(verdict.detectable),
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def properties(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """What a case in JUnit carries beside its message."""
    for key, value in _as_dict(verdict).items():
        if value is not None and key not in {"id", "reason"}:
            yield f"perfgate.{key}", json.dumps(value) if isinstance(value, dict) else str(value)


def as_junit(verdicts: Sequence[Verdict], *, strict: bool) -> str:
    """A test suite with a case per verdict."""
    failing = [each for each in verdicts if is_failure(each, strict=strict)]
    counts = {"tests": str(len(verdicts)), "failures": str(len(failing)), "errors": "0"}
    suite = ET.Element("testsuite", {"name": "perfgate", **counts})
    for verdict in verdicts:
        file, _, name = verdict.id.partition("::")
        case = ET.SubElement(suite, "testcase", {"classname": _clean(file), "name": _clean(name or file or "perfgate")})
        held = ET.SubElement(case, "properties")
        for key, value in properties(verdict):
            ET.SubElement(held, "property", {"name": key, "value": _clean(value)})
        if verdict in failing:
            ET.SubElement(case, "failure", {"message": _clean(f"{verdict.word}: {verdict.reason}")})
        elif verdict.word in {"skipped", "unjudged", "gone"}:
            ET.SubElement(case, "skipped", {"message": _clean(f"{verdict.word}: {verdict.reason}")})
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    """Without what XML cannot hold, or nobody sees."""
    return visible(text)
