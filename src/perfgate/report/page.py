"""Blocks of text and tables as one text for a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType

from perfgate.report import text

LINES = 25  # nothing depends on it, but without one rich takes a dumb terminal for 80 columns wide


def page(blocks: Iterable[RenderableType], *, columns: int, colour: bool) -> str:
    """``blocks`` one below the other, for a terminal of so many columns."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=columns,
        height=LINES,
        emoji=False,
        color_system="standard" if colour else None,
        force_terminal=colour,
        no_color=not colour,
    )
    for block in blocks:
        console.print(block, highlight=False)
    return text.without_commands(stream.getvalue())
