"""Exceptions as they reach whoever asks what happened: a chain, and the text of a worker's own exception."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType

RERAISED = re.compile(r"Caught (\w+) .*\nOriginal Traceback")
SHORTENING = "TorchDynamoException"
"""torch raises these "from None" for the sake of short tracebacks, and not because the cause does not matter."""
ERRNO = re.compile(r"\[Errno (\d+)\]")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One exception of a chain, reduced to what it is recognised by."""

    error: BaseException
    names: frozenset[str]
    """Names of its type and of those that it derives from."""
    text: str
    number: int | None
    """The operating system's error number, ``None`` where it is no such error."""

    @property
    def frames(self) -> Iterator[FrameType]:
        """Where it passed through, outermost first."""
        trace = self.error.__traceback__
        while trace is not None:
            yield trace.tb_frame
            trace = trace.tb_next


def chain_of(error: BaseException) -> Iterator[Seen]:
    """``error`` and what it was raised from, or while handling; an assertion's own judgement hides the latter."""
    passed: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in passed:
        passed.add(id(current))
        seen = _seen(current)
        yield seen
        suppressed = current.__suppress_context__ and SHORTENING not in seen.names
        hidden = suppressed or isinstance(current, AssertionError)
        current = current.__cause__ or (None if hidden else current.__context__)


def _seen(error: BaseException) -> Seen:
    """A worker's exception comes with its whole traceback as text, of which only the last part is its own."""
    text = str(error)
    reraised = RERAISED.match(text)
    if reraised:
        own = list(re.finditer(rf"^(?:[\w.]+\.)?_?\w*{reraised[1]}(?:: |$)", text, re.MULTILINE))
        text = text[own[-1].end() :].strip() if own else ""
    names = frozenset(each.__name__ for each in type(error).__mro__)
    number = getattr(error, "errno", None) if "OSError" in names else None
    if number is None and "OSError" in names:
        found = ERRNO.search(text)
        number = int(found[1]) if found else None
    return Seen(error=error, names=names, text=text, number=number)
