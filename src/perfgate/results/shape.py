"""Check parsed JSON against a shape: types, ranges and missing fields, named by their path."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Shape = Any
"""``str``, ``int``, ``float`` (any finite number) or ``bool``; ``[shape]`` for lists of it; ``{"*": shape}`` for maps;
``{field: shape}`` for objects (unknown fields are allowed); a tuple of texts for one of them; ``(shape, None)``;
:class:`AtLeast` and :class:`Above` for numbers in a range, :class:`Written` for texts of a form."""

NAMES = {str: "text", int: "integer", float: "number", bool: "true or false"}


@dataclass(frozen=True)
class AtLeast:
    """A number (``int`` or ``float``) that is not below ``least``."""

    wanted: type
    least: int


@dataclass(frozen=True)
class Above:
    """A number (``int`` or ``float``) that is more than ``limit``."""

    wanted: type
    limit: int


@dataclass(frozen=True)
class Written:
    """A text that matches ``pattern`` as a whole; ``said`` describes it in messages."""

    pattern: re.Pattern[str]
    said: str


def check_shape(value: Any, shape: Shape, where: str) -> str | None:
    """What is wrong with ``value``, as a sentence that names the field; ``None`` where all is well."""
    if isinstance(shape, type):
        return _check_scalar(value, shape, where)
    if isinstance(shape, AtLeast | Above | Written):
        return _check_limited(value, shape, where)
    if isinstance(shape, tuple):
        return _check_choice(value, shape, where)
    if isinstance(shape, list):
        return _check_list(value, shape[0], where)
    return _check_object(value, shape, where)


def _check_scalar(value: Any, wanted: type, where: str) -> str | None:
    # True is an int in Python, and no count
    fits = isinstance(value, bool) == (wanted is bool) and isinstance(
        value, (int, float) if wanted is float else wanted
    )
    if not fits:
        return f"field {where}: {NAMES[wanted]} expected, got {type(value).__name__}"
    if wanted is float and not math.isfinite(value):
        return f"field {where}: finite number expected, got {value}"
    return None


def _check_limited(value: Any, shape: AtLeast | Above | Written, where: str) -> str | None:
    wanted = str if isinstance(shape, Written) else shape.wanted
    problem = _check_scalar(value, wanted, where)
    if problem:
        return problem
    if isinstance(shape, Written):
        return None if shape.pattern.fullmatch(value) else f"field {where}: {shape.said} expected, got {value!r:.60}"
    if isinstance(shape, Above):
        return None if value > shape.limit else f"field {where}: more than {shape.limit} expected, got {value}"
    return None if value >= shape.least else f"field {where}: at least {shape.least} expected, got {value}"


def _check_choice(value: Any, choices: tuple[Any, ...], where: str) -> str | None:
    if None in choices:
        return None if value is None else check_shape(value, choices[0], where)
    return None if value in choices else f"field {where}: one of {', '.join(choices)} expected, got {value!r:.40}"


def _check_list(value: Any, inner: Shape, where: str) -> str | None:
    if not isinstance(value, list):
        return f"field {where}: list expected, got {type(value).__name__}"
    problems = (check_shape(each, inner, f"{where}[{number}]") for number, each in enumerate(value))
    return next((problem for problem in problems if problem), None)


def _check_object(value: Any, fields: Mapping[str, Shape], where: str) -> str | None:
    if not isinstance(value, dict):
        return f"field {where}: object expected, got {type(value).__name__}"
    if "*" in fields:
        problems = (check_shape(each, fields["*"], f"{where}.{key}") for key, each in value.items())
    else:
        missing = next((key for key in fields if key not in value), None)
        if missing is not None:
            return f"field {where}.{missing}: missing"
        problems = (check_shape(value[key], shape, f"{where}.{key}") for key, shape in fields.items())
    return next((problem for problem in problems if problem), None)
