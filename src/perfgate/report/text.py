"""Text from outside (names, commit messages, reasons) made fit for a terminal, and for a log that a runner reads."""

from __future__ import annotations

import re

from rich.markup import escape

CONTROL = re.compile(
    r"[\x00-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    r"\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Characters that are not seen but act: control, bidi, zero width, half a pair, line separators, tags."""
LONGEST_NAME, LONGEST_SENTENCE = 120, 500
OLD_COMMAND = "##["  # GitHub's runner obeys it anywhere in a line, see its ActionCommand.cs
COMMAND = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


def visible(text: str) -> str:
    """``text`` on one line, without characters that are not seen and without commands to a runner."""
    return CONTROL.sub("", text.replace("\n", " ")).replace(OLD_COMMAND, "## [")


def plain(text: str) -> str:
    """A name likewise, of bounded length and never empty; for text without markup."""
    clean = visible(text)
    if not clean.strip():
        return "(empty)"
    return clean if len(clean) <= LONGEST_NAME else clean[: LONGEST_NAME - 3] + "..."


def name(text: str) -> str:
    """A name likewise, for text with markup."""
    return escape(plain(text))


def line(text: str) -> str:
    """A reason likewise, of at most 500 characters; for text without markup."""
    clean = visible(text)
    return clean if len(clean) <= LONGEST_SENTENCE else clean[: LONGEST_SENTENCE - 3] + "..."


def sentence(text: str) -> str:
    """A reason likewise, for text with markup."""
    return escape(line(text))


def without_commands(page: str) -> str:
    """Finished lines that no runner obeys: ``::set-env`` at the beginning of one, also after wrapping, is broken."""
    return COMMAND.sub(r"\1: ", page)
