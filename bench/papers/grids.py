"""Tables of records' rows in pages: a line for each of something, a column for each of something else (grids.toml)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from records import Record, Row, Wrong, matching

HERE = Path(__file__).resolve().parent

Grid = dict[str, Any]


def grids(path: Path = HERE / "grids.toml") -> dict[str, Grid]:
    """The tables by name."""
    with open(path, "rb") as file:
        found: list[Grid] = tomllib.load(file)["grid"]
    for grid in found:
        needed, known = {"name", "record", "title", "line", "head", "cell"}, {"where", "behind"}
        if not needed <= set(grid) <= needed | known:
            raise Wrong(f"{path.name}: a table has {sorted(needed)}, and perhaps {sorted(known)}: {grid}")
    by_name = {str(grid["name"]): grid for grid in found}
    if len(by_name) != len(found):
        raise Wrong(f"{path.name}: two tables have one name")
    return by_name


def text(form: str, row: Row) -> str:
    """A form with the row's values, as in Python's `str.format`; nothing where a number is absent."""
    try:
        return form.format(**row)
    except (ValueError, TypeError):
        return ""
    except KeyError as error:
        raise Wrong(f"no column {error} in a row: {row}") from None


def with_memory(row: Row) -> Row:
    """A row with `memory` and `memory_kib`: the bytes that are stated, or by how much the process grew."""
    number = (int, float)
    stated = next((row[name] for name in ("memory_bytes", "bytes") if isinstance(row.get(name), number)), None)
    memory = row.get("resident") if stated is None else stated
    if not isinstance(memory, number):
        return row
    behind = " resident" if stated is None else ""
    return {**row, "memory": f"{memory / 2**20:.1f} MiB{behind}", "memory_kib": f"{memory / 1024:,.0f}"}


def grid_of(grid: Grid, record: Record) -> str:
    """The table, and where its record was made."""
    lines: dict[str, dict[str, str]] = {}
    columns: list[str] = []

    def put(line: str, column: str, value: str) -> None:
        if column not in columns:
            columns.append(column)
        if lines.setdefault(line, {}).setdefault(column, value) != value:
            raise Wrong(f"{grid['name']}: two rows for {line}, {column}")

    try:
        rows = [with_memory(row) for row in matching(record.rows, grid.get("where", []))]
        for row in rows:
            # A contestant whose answers are wrong has no rate.
            cell = "wrong" if row.get("wrong") else text(grid["cell"], row)
            put(text(grid["line"], row), text(grid["head"], row), cell)
        for behind in grid.get("behind", []):
            for row in rows:
                lines[text(grid["line"], row)].setdefault(behind["head"], text(behind["cell"], row))
            columns.append(behind["head"])
    except Wrong as error:
        raise Wrong(f"{record.path.name}: table {grid['name']}: {error}") from None
    if not lines:
        raise Wrong(f"{record.path.name}: table {grid['name']}: no row")
    title = [grid["title"], *columns]
    text_lines = [f"| {' | '.join(title)} |", f"|---|{'--:|' * len(columns)}"]
    for name, cells in lines.items():
        text_lines.append(f"| {' | '.join([name, *(cells.get(column, '') for column in columns)])} |")
    return "\n".join(text_lines)
