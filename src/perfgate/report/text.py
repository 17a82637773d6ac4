"""Text from outside (names, commit messages, reasons) made fit for a terminal."""

from __future__ import annotations

import re

from rich.markup import escape

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
LONGEST_NAME, LONGEST_SENTENCE = 120, 500


def plain(text: str) -> str:
    """A name without control and bidi characters, of bounded length, never empty; for text without markup."""
    clean = CONTROL.sub("", text) or "(empty)"
    return clean if len(clean) <= LONGEST_NAME else clean[: LONGEST_NAME - 3] + "..."


def name(text: str) -> str:
    """A name likewise, for text with markup."""
    return escape(plain(text))


def sentence(text: str) -> str:
    """A reason, likewise, of at most 500 characters."""
    return escape(CONTROL.sub("", text.replace("\n", " "))[:LONGEST_SENTENCE])
