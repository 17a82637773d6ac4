"""A table that stays readable in a narrow terminal: no word and no number is ever broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

UNBOUNDED = 10_000  # columns, to ask what a table would take


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Rows under a title. Text is folded between words; where even that is too wide, each row is a block."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    """An empty cell is what is not known, or does not apply."""
    text: frozenset[int] = frozenset({0})
    """Numbers of the columns that hold words: to the left, and folded. The others hold numbers."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """The table where it fits, else blocks."""
        table = self._table()
        least = Measurement.get(console, options.update_width(UNBOUNDED), table).minimum
        if least <= options.max_width:
            yield Text(self.title, style="bold")  # apart: a table folds its title to its own width, breaking words
            yield table
        else:
            yield Text("\n").join([*self._blocks(), Text()])  # an empty line at the end, as below a table

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for number, column in enumerate(self.columns):
            cells = [column, *(row[number] for row in self.rows)]
            text = number in self.text
            whole = [word for each in cells for word in each.split()] if text else cells
            least = max(map(len, whole), default=0)
            table.add_column(column, justify="left" if text else "right", no_wrap=not text, min_width=least)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def _blocks(self) -> Iterator[Text]:
        yield Text(self.title, style="bold")
        width = max(map(len, self.columns[1:]))
        for name, *cells in self.rows:
            yield Text(f"\n{name}")
            for column, cell in zip(self.columns[1:], cells, strict=True):
                if cell:
                    yield Text(f"  {column:<{width}}  {cell}")
