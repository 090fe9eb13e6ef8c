"""Tables: columns whose widths the header and the first rows decide, cells that wrap."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from rich.cells import cell_len
from textual.content import Content

from minicpm5_mac.app.markdown.lines import EMPTY, Row, plain
from minicpm5_mac.app.markdown.wrap import breaks

Align = Literal["left", "center", "right"]
Cell = list[Content]

# Rows that decide the columns' widths. Later rows wrap within them: a table of any length can be
# shown row by row, and what is on the screen stays where it is.
MEASURED_ROWS = 20
_SEPARATOR = " │ "


@dataclass(slots=True)
class Table:
    """A table's columns. natural: for each, the cells its widest measured line takes."""

    aligns: list[Align]
    natural: list[int] = field(default_factory=list)
    measured: int = 0

    def measure(self, cells: list[Cell]) -> None:
        """Let a row have its say in the columns' widths, if it is among the first."""
        if self.measured > MEASURED_ROWS:
            return
        self.measured += 1
        self.natural += [1] * (len(self.aligns) - len(self.natural))
        for index, cell in enumerate(cells[: len(self.natural)]):
            widest = max((cell_len(line.plain) for line in cell), default=0)
            self.natural[index] = max(self.natural[index], widest)

    def widths(self, width: int) -> list[int]:
        """Columns' widths in `width` cells: natural ones, or the widest cut down evenly."""
        count = len(self.natural)
        room = max(count, width - len(_SEPARATOR) * (count - 1))
        spare = room - sum(self.natural)
        if spare >= 0:
            if self.measured <= MEASURED_ROWS:
                return list(self.natural)
            # Later rows may be wider than those that were measured.
            return [cells + min(cells // 2 + 2, spare // count) for cells in self.natural]
        widths, left, open_columns = [0] * count, room, list(range(count))
        while open_columns:
            share = max(1, left // len(open_columns))
            small = [index for index in open_columns if self.natural[index] <= share]
            if not small:
                for position, index in enumerate(open_columns):
                    widths[index] = share + (position < left - share * len(open_columns))
                break
            for index in small:
                widths[index] = self.natural[index]
                left -= widths[index]
            open_columns = [index for index in open_columns if index not in small]
        return widths


@dataclass(slots=True)
class TableRowLine:
    """One row of a table."""

    table: Table
    cells: list[Cell]
    prefix: Content = EMPTY

    def rows(self, width: int, before: list[Row]) -> list[Row]:
        widths = self.table.widths(width - cell_len(self.prefix.plain))
        columns = [
            _cell_rows(self.cells[index] if index < len(self.cells) else [], cells, align)
            for index, (cells, align) in enumerate(zip(widths, self.table.aligns, strict=True))
        ]
        separator = plain(_SEPARATOR, ".markdown--border")
        rows = []
        for number in range(max(1, *map(len, columns))):
            parts = [
                column[number] if number < len(column) else plain(" " * cells)
                for column, cells in zip(columns, widths, strict=True)
            ]
            body = separator.join(parts)
            rows.append(Row(self.prefix, body))
        return rows


@dataclass(slots=True)
class TableRule:
    """The line between a table's header and its rows."""

    table: Table
    prefix: Content = EMPTY

    def rows(self, width: int, before: list[Row]) -> list[Row]:
        widths = self.table.widths(width - cell_len(self.prefix.plain))
        rule = "─┼─".join("─" * cells for cells in widths)
        return [Row(self.prefix, plain(rule, ".markdown--border"))]


def _cell_rows(cell: Cell, width: int, align: Align) -> list[Content]:
    """A cell's text in rows of exactly `width` cells (more only for one wide character in 1)."""
    rows = []
    for line in cell:
        cuts = [0, *breaks(line.plain, width), len(line.plain)]
        for start, end in pairwise(cuts):
            piece = line[start:end].rstrip()
            space = max(0, width - cell_len(piece.plain))
            left = {"left": 0, "center": space // 2, "right": space}[align]
            rows.append(" " * left + piece + " " * (space - left))
    return rows
