"""A user's own workloads: from installed packages (entry points) and from ``PERFGATE_WORKLOAD``."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from collections import Counter
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from workloads.workload import Unsuitable, Workload

GROUP = "perfgate.workloads"
"""The group of entry points; the value of each is ``module:NAME``."""
VARIABLE = "PERFGATE_WORKLOAD"
"""Holds ``module:NAME``, or several, separated by commas."""
FOLDER = "PERFGATE_WORKLOAD_FOLDER"
"""Where to look for the module; default: the current directory."""
SHAPE = "write module:NAME, where NAME is a Workload in that module"
SHOWN = 3  # names in a message


def load() -> tuple[Workload, ...]:
    """Every workload of the user's own, those of entry points first; empty where there are none.

    Raises:
        Unsuitable: where one cannot be had, see :func:`named`, or two different ones have the same slug.
    """
    installed = [f"{each.module}:{each.attr}" for each in entry_points(group=GROUP)]
    asked = [each.strip() for each in os.environ.get(VARIABLE, "").split(",") if each.strip()]
    found = tuple(dict.fromkeys(map(named, [*installed, *asked])))
    slug, count = Counter(map(str, found)).most_common(1)[0] if found else ("", 1)
    if count > 1:
        raise Unsuitable(f"{count} different workloads are called {slug}: set the class variable 'name' of each")
    return found


def named(name: str) -> Workload:
    """The workload that ``module:NAME`` names: an instance, or a class whose fields all have defaults.

    The current directory, or ``PERFGATE_WORKLOAD_FOLDER``, is searched first, as by ``python -m``.

    Raises:
        Unsuitable: where the module is not found or raises, or has no such name, or that is no workload.
    """
    module_name, colon, attribute = name.partition(":")
    if not (module_name and colon and attribute):
        raise Unsuitable(f"{name!r} names no workload: {SHAPE}")
    module = _imported(module_name)
    if not hasattr(module, attribute):
        raise Unsuitable(f"{module_name} has no {attribute}{_instead(module, attribute)}")
    return _made(name, getattr(module, attribute))


def _imported(name: str) -> ModuleType:
    here = os.environ.get(FOLDER) or str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise Unsuitable(f"{name} needs the module {error.name}, which is not installed{_where(error)}") from error
        raise Unsuitable(f"no module is called {name}: looked in {here} and among what is installed") from error
    except (Exception, SystemExit) as error:
        raise Unsuitable(f"importing {name} raised {type(error).__name__}: {error}{_where(error)}") from error


def _where(error: BaseException) -> str:
    """The last line of Python that was reached, as `` (file:line)``; nothing where importing itself failed."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<frozen")]
    inside = [each for each in frames if each.filename not in (__file__, importlib.__file__)]
    return f" ({inside[-1].filename}:{inside[-1].lineno})" if inside else ""


def _instead(module: ModuleType, attribute: str) -> str:
    near = difflib.get_close_matches(attribute, vars(module), n=SHOWN)
    workloads = [name for name, value in vars(module).items() if _is_own(module, value)]
    known = list(dict.fromkeys([*near, *workloads]))[:SHOWN]
    return f"; there is {', '.join(known)}" if known else " and no workload at all"


def _is_own(module: ModuleType, value: Any) -> bool:
    """Whether ``value`` is a workload, or a class of one that the module itself defines."""
    if isinstance(value, type):
        return issubclass(value, Workload) and value.__module__ == module.__name__
    return isinstance(value, Workload)


def _made(name: str, value: Any) -> Workload:
    if isinstance(value, Workload):
        return value
    if not (isinstance(value, type) and issubclass(value, Workload)):
        what = f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
        raise Unsuitable(f"{name} is {what}, not a Workload: derive it from workloads.Workload")
    try:
        return value()
    except TypeError as error:
        raise Unsuitable(f"{name} cannot be made ({error}): give its fields defaults, or name an instance") from error
