"""What tables are built from, as the compiled part takes it: names of sources, and rows."""

from __future__ import annotations

import datetime
import errno
import glob
import ipaddress
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from fibula._columns import is_missing, loaded
from fibula._fibula import ColumnError

TEXTS = (
    datetime.timedelta,
    UUID,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
)
"""What is the text that Python shows."""


@dataclass
class Rows:
    """Columns with a value for each row. The prefixes of pairs are beside them; the addresses of a frame are in columns,
    which `key` names or the compiled part finds."""

    name: str
    prefixes: list[Any] | None
    columns: list[tuple[str, list[Any]]]
    key: list[str]


def listed(sources: object, key: list[str]) -> list[str | Rows]:
    """A source, or several."""
    if isinstance(sources, (list, tuple)) and not _are_pairs(sources) and not _are_records(sources):
        return [found for source in sources for found in _source(source, key)]
    return _source(sources, key)


def _are_pairs(sources: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list is one source, of rows, and not several sources."""

    def is_pair(item: Any) -> bool:
        return isinstance(item, (tuple, list)) and len(item) == 2 and not isinstance(item[0], (tuple, list))

    return bool(sources) and all(map(is_pair, sources))


def _are_records(rows: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list is one source, of a mapping of names to values for each row."""
    return bool(rows) and all(map(_has_names, rows)) and not any(isinstance(value, Mapping) for value in rows[0].values())


def _has_names(source: Any) -> bool:
    """Whether it is a mapping of names, and not of prefixes."""
    name = next(iter(source), None) if isinstance(source, Mapping) else None
    return isinstance(name, str) and not _is_prefix(name)


def _are_columns(source: Mapping[Any, Any]) -> bool:
    """Whether it has a list of values, or a column of another library, for each name."""
    return _has_names(source) and all(
        hasattr(values, "__len__") and not isinstance(values, (str, bytes, bytearray, Mapping)) for values in source.values()
    )


def _source(source: Any, key: list[str]) -> list[str | Rows]:
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        if _is_prefix(name) and not os.path.exists(name):
            raise TypeError(
                f"{name!r} is a prefix, and no file has that name: "
                f"rows are pairs of a prefix and its values, [({name!r}, {{'site': 'hq'}})] or [({name!r}, None)]"
            )
        return list(_paths(name))
    if isinstance(source, Mapping):
        return [_of_lists(source, key) if _are_columns(source) else _from_pairs(source.items())]
    frame = _from_frame(source, key)
    if frame is not None:
        return [frame]
    if isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray)):
        rows = source if isinstance(source, (list, tuple)) else list(source)
        return [_of_records(rows, key) if _are_records(rows) else _from_pairs(rows)]
    raise TypeError(
        f"{type(source).__name__} is no source: those are paths, patterns, frames, rows, and pairs of prefix and values"
    )


def _is_prefix(name: str) -> bool:
    try:
        ipaddress.ip_network(name, strict=False)
    except ValueError:
        return False
    return True


def _paths(name: str) -> list[str]:
    if not glob.has_magic(name) or os.path.exists(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no file has such a name", name)
    return found


def _from_pairs(pairs: Iterable[Any]) -> Rows:
    prefixes: list[Any] = []
    columns: dict[str, list[Any]] = {}
    for row, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"row {row} is {pair!r}: rows are pairs of a prefix and its values, [('10.0.0.0/8', {{'site': 'hq'}})] or"
                " [('10.0.0.0/8', None)], or a mapping each, [{'prefix': '10.0.0.0/8', 'site': 'hq'}]"
            )
        prefix, values = pair
        if not isinstance(values, Mapping):
            values = {} if values is None else {"value": values}
        for name in values:
            if not isinstance(name, str):
                raise TypeError(f"a column's name is a str, not {type(name).__name__}: {name!r} of {prefix}")
            if name not in columns:
                columns[name] = [None] * len(prefixes)
        prefixes.append(prefix)
        for name, column in columns.items():
            column.append(_value(values.get(name)))
    return Rows("rows", prefixes, list(columns.items()), [])


def _of_records(rows: Iterable[Mapping[str, Any]], key: list[str]) -> Rows:
    columns: dict[str, list[Any]] = {}
    for at, row in enumerate(rows):
        for name, value in row.items():
            if not isinstance(name, str):
                raise TypeError(f"a column's name is a str, not {type(name).__name__}: {name!r} of row {at}")
            columns.setdefault(name, [None] * at).append(value)
        for column in columns.values():
            column.extend([None] * (at + 1 - len(column)))
    return _of_columns(columns, key)


def _of_lists(source: Mapping[str, Any], key: list[str]) -> Rows:
    columns = {}
    for name, values in source.items():
        if not isinstance(name, str):
            raise TypeError(f"a column's name is a str, not {type(name).__name__}: {name!r}")
        as_list = getattr(values, "to_pylist", None) or getattr(values, "tolist", None) or values.__iter__
        columns[name] = list(as_list())
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ColumnError(f"columns have as many values as each other, not {lengths}")
    return _of_columns(columns, key)


def _from_frame(frame: Any, key: list[str]) -> Rows | None:
    pyarrow, polars, pandas, duckdb = (loaded(name) for name in ("pyarrow", "polars", "pandas", "duckdb"))
    if pyarrow is not None and isinstance(frame, (pyarrow.Table, pyarrow.RecordBatch)):
        names, columns = frame.schema.names, [column.to_pylist() for column in frame.columns]
    elif polars is not None and isinstance(frame, (polars.DataFrame, polars.LazyFrame, polars.Series)):
        if isinstance(frame, polars.Series):
            frame = frame.to_frame()
        elif isinstance(frame, polars.LazyFrame):
            frame = frame.collect()
        names, columns = frame.columns, [column.to_list() for column in frame.get_columns()]
    elif pandas is not None and isinstance(frame, (pandas.DataFrame, pandas.Series)):
        if isinstance(frame, pandas.Series):
            frame = frame.to_frame("value" if frame.name is None else frame.name)
        names, columns = [str(name) for name in frame.columns], [column.tolist() for _, column in frame.items()]
        for level in reversed(range(frame.index.nlevels)):
            index = frame.index.get_level_values(level)
            if _holds_prefixes(index):
                names.insert(0, "index" if index.name is None else str(index.name))
                columns.insert(0, index.tolist())
    elif duckdb is not None and isinstance(frame, duckdb.DuckDBPyRelation):
        rows = frame.fetchall()
        names = frame.columns
        columns = [[row[at] for row in rows] for at in range(len(names))]
    else:
        return None
    for name in names:
        if names.count(name) > 1:
            raise ColumnError(f"the frame has several columns {name!r}: rename or drop them")
    return _of_columns(dict(zip(names, columns)), key)


def _holds_prefixes(index: Any) -> bool:
    """Whether an index of pandas begins with an address or a prefix, as text or an object of `ipaddress`: it is a column of
    the table then."""
    return index.dtype.kind == "O" and len(index) > 0 and _is_prefix(str(index[0]))


def _of_columns(columns: dict[str, list[Any]], key: list[str]) -> Rows:
    if len(key) > 2:
        raise ColumnError("a frame has a column of prefixes, key='network', or two of ranges, key=('start', 'end')")
    if not columns:
        raise ColumnError("a frame without columns has no prefixes")
    chosen = [_named(name, list(columns)) for name in key]
    if len(set(chosen)) < len(chosen):
        raise ColumnError(f"key names the column {chosen[0]!r} twice: a range has a first and a last address")
    values = [(name, [_value(item) for item in column]) for name, column in columns.items()]
    return Rows("frame", None, values, chosen)


def _named(asked: str, names: list[str]) -> str:
    """The column of this name, or of the name in other letters."""
    if asked in names:
        return asked
    found = next((name for name in names if name.casefold() == asked.casefold()), None)
    if found is None:
        raise ColumnError(f"the frame has no column {asked!r}; it has: {', '.join(names)}")
    return found


def _value(item: Any) -> Any:
    """A value as the compiled part takes it: None, bool, int, float, str, or bytes.

    pandas has floats where integers are missing, and several things for missing. Dates and what else is text in CSV is
    text here.
    """
    if type(item) in (str, int, bool):
        return item
    if is_missing(item):
        return None
    if type(item).__module__ == "numpy" and hasattr(item, "item"):
        # Times in nanoseconds would become numbers.
        item = str(item) if type(item).__name__ == "datetime64" else item.item()
    if isinstance(item, Decimal):
        number = float(item)
        item = number if Decimal(repr(number)) == item else format(item, "f")
    if isinstance(item, float):
        return int(item) if item.is_integer() else item
    if isinstance(item, (datetime.date, datetime.time)):
        return item.isoformat()
    return str(item) if isinstance(item, TEXTS) else item
