"""pytest-benchmark's document, without what does not belong into a file in git: host name and objects' addresses."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any


def document(benchmarks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The document that ``pytest-benchmark compare`` reads; ``benchmarks`` as its own ``as_dict`` gives them."""
    return {
        "machine_info": {
            "machine": platform.machine(),
            "python_implementation": platform.python_implementation(),
            "python_version": platform.python_version(),
            "release": platform.release(),
            "system": platform.system(),
        },
        "commit_info": {},
        "benchmarks": [with_text_parameters(each) for each in benchmarks],
        "datetime": datetime.now(UTC).isoformat(),
        "version": version("pytest-benchmark"),
    }


def with_text_parameters(benchmark: Mapping[str, Any]) -> dict[str, Any]:
    """A benchmark's document with its parameters as text: objects would be written with their addresses."""
    parameters = benchmark.get("params")
    texts = {key: str(value) for key, value in parameters.items()} if parameters else None
    return {**benchmark, "params": texts, "extra_info": _plain(benchmark.get("extra_info", {}))}


def _plain(value: Any) -> Any:
    """What JSON has as it is, and anything else as text: an odd note must not cost the run."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    known = value is None or isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value))
    return value if known else str(value)
