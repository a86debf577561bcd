"""Frames of pyarrow, Polars, pandas and DuckDB: the same kind comes back, with columns behind its own."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from fibula import _columns
from fibula._fibula import Column, Columns, ColumnError, FibulaError, is_address

if TYPE_CHECKING:
    from collections.abc import Mapping

Search = Callable[..., Columns]
"""Looks up a column of this name, with the column of times if there is one, and options."""

Look = Callable[[str, object, object], Columns]
"""The same with the options of the frame."""

SAMPLE = 1000
"""Values by which a column of addresses is found, as many as of a file's."""

ADDRESSES = (str, ipaddress.IPv4Address, ipaddress.IPv6Address)


def annotate(
    search: Search,
    frame: Any,
    columns: str | Iterable[str] | None,
    add: str | Iterable[str] | None,
    counts: dict[str, dict[str, int]] | None,
    *,
    time: str | None,
    default: Mapping[str, float | str] | float | str | None,
    strict: bool,
    prefix_form: str,
    text: str | None,
    threads: int | None,
    device: str | None = None,
) -> Any:
    pyarrow, polars, pandas, duckdb = (_columns.loaded(name) for name in ("pyarrow", "polars", "pandas", "duckdb"))
    if duckdb is not None and isinstance(frame, duckdb.DuckDBPyRelation):
        rows = annotate(
            search,
            frame.to_arrow_table(),
            columns,
            add,
            counts,
            time=time,
            default=default,
            strict=strict,
            prefix_form=prefix_form,
            text=text,
            threads=threads,
            device=device,
        )
        return _relation(duckdb, frame, rows)
    is_arrow = pyarrow is not None and isinstance(frame, (pyarrow.Table, pyarrow.RecordBatch))
    text = text or ("dictionary" if is_arrow else "plain")
    asked = _columns.options(add, default, strict, prefix_form, text, threads, device)
    if polars is not None and isinstance(frame, polars.LazyFrame):
        from fibula.polars import annotate_lazy

        if counts is not None:
            raise TypeError("a LazyFrame has no counts, because its rows are not there yet: collect() it first")
        return annotate_lazy(search, frame, _columns.names(columns), time, asked)

    def look(name: str, column: object, times: object) -> Columns:
        found = search(name, column, times, asked)
        if counts is not None:
            counts[name] = {
                "rows": len(found),
                "matched": found.matched,
                "unmatched": found.unmatched,
                "unparsable": found.unparsable,
                "empty": found.empty,
            }
            if time is not None:
                counts[name].update(before=found.before, untimed=found.untimed)
            if device is not None:
                counts[name].update(
                    on_device=found.on_device, on_cpu=found.on_cpu, device_failures=found.device_failures
                )
        return found

    if is_arrow:
        return _pyarrow(pyarrow, frame, columns, time, look)
    if polars is not None and isinstance(frame, polars.DataFrame):
        return _polars(polars, frame, columns, time, look)
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return _pandas(frame, columns, time, look)
    raise TypeError(
        f"{type(frame).__module__}.{type(frame).__name__} is no frame that is known: pyarrow.Table and RecordBatch, polars.DataFrame and"
        " LazyFrame, pandas.DataFrame, DuckDBPyRelation; fibula.spark.annotate() takes those of Spark, lookup_many() single"
        " columns of other libraries"
    )


def _relation(duckdb: Any, relation: Any, rows: Any) -> Any:
    """The rows as a relation of the same connection, which a relation does not give: DuckDB finds them as a variable.

    It looks at tables and views first, so the names are some that none of them has."""
    name = f"fibula_{uuid.uuid4().hex}"
    globals()[name] = rows
    try:
        return relation.query(f"{name}_frame", f"FROM {name}")
    except duckdb.CatalogException as error:
        raise FibulaError(
            "DuckDB does not look for variables of Python: SET python_enable_replacements = true, or annotate"
            " relation.to_arrow_table(), which gives a pyarrow.Table"
        ) from error
    finally:
        del globals()[name]


def chosen(
    columns: str | Iterable[str] | None, there: list[str], rows: int, values: Callable[[str], Iterable[Any] | None]
) -> list[str]:
    """The columns that were asked for, or all that hold addresses; of a frame without rows none."""
    asked = _columns.names(columns)
    for at, name in enumerate(asked):
        if there.count(name) != 1:
            problem = "no column" if name not in there else "several columns"
            raise ColumnError(f"the frame has {problem} {name!r}; it has: {', '.join(there)}")
        if name in asked[:at]:
            raise ColumnError(f"{name!r} was asked for twice")
    if columns is not None or rows == 0:
        return asked
    found = [name for name in there if there.count(name) == 1 and _holds_addresses(values(name))]
    if not found:
        raise ColumnError(
            f"in no column of text are half of the first {SAMPLE:,} values addresses: columns=[...] names those with addresses"
        )
    return found


def of_times(time: str | None, there: list[str]) -> str | None:
    """The column of times, if it is there."""
    if time is not None and there.count(time) != 1:
        problem = "no column" if time not in there else "several columns"
        raise ColumnError(f"the frame has {problem} {time!r} for the times; it has: {', '.join(map(str, there))}")
    return time


def _holds_addresses(values: Iterable[Any] | None) -> bool:
    """Whether half of the first values are addresses, empty ones aside: as columns of CSV are found."""
    filled = addresses = 0
    for value in islice(() if values is None else values, SAMPLE):
        text = str(value).strip() if isinstance(value, ADDRESSES) else None
        if text != "" and not _columns.is_missing(value):
            filled += 1
            addresses += text is not None and is_address(text)
    return addresses > 0 and 2 * addresses >= filled


def taken(there: Iterable[str], found: Columns) -> None:
    """Refuses to have two columns of one name."""
    there = set(there)
    for name in found.names:
        if name in there:
            raise ColumnError(f"the frame already has a column {name!r}: rename or drop it")


def _pyarrow(pyarrow: Any, frame: Any, columns: str | Iterable[str] | None, time: str | None, look: Look) -> Any:
    def values(name: str) -> Iterable[Any] | None:
        column = frame.column(name)
        kind = column.type
        if pyarrow.types.is_dictionary(kind):
            kind = kind.value_type
        kinds = (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_string_view)
        return (value.as_py() for value in column) if any(is_kind(kind) for is_kind in kinds) else None

    time = of_times(time, frame.schema.names)
    times = None if time is None else frame.column(time)
    make = pyarrow.chunked_array if isinstance(frame, pyarrow.Table) else pyarrow.array
    for name in chosen(columns, frame.schema.names, frame.num_rows, values):
        found = look(name, frame.column(name), times)
        taken(frame.schema.names, found)
        for added in found.names:
            frame = frame.append_column(added, make(found[added]))
    return frame


def _polars(polars: Any, frame: Any, columns: str | Iterable[str] | None, time: str | None, look: Look) -> Any:
    def values(name: str) -> Iterable[Any] | None:
        column = frame.get_column(name)
        is_text = column.dtype in (polars.String, polars.Categorical, polars.Enum)
        return column if is_text else None

    time = of_times(time, frame.columns)
    times = None if time is None else frame.get_column(time)
    for name in chosen(columns, frame.columns, frame.height, values):
        found = look(name, frame.get_column(name), times)
        taken(frame.columns, found)
        frame = frame.hstack(found.to_polars())
    return frame


def _pandas(frame: Any, columns: str | Iterable[str] | None, time: str | None, look: Look) -> Any:
    there = list(frame.columns)

    def values(name: str) -> Iterable[Any] | None:
        return None if frame[name].dtype.kind in "iufbcmM" else frame[name]

    names = chosen(columns, [name for name in there if isinstance(name, str)], len(frame), values)
    time = of_times(time, there)
    times = None if time is None else frame[time]
    frame = frame.copy(deep=False)
    for name in names:
        found = look(name, frame[name], times)
        taken(frame.columns, found)
        # By place: the frame's index may be anything.
        for added, column in to_pandas(found).items():
            frame[added] = column.array
    return frame


def to_numpy(column: Column, numbers: tuple[bytearray, str] | None, dtype: Any, copy: bool | None) -> Any:
    """An array of NumPy: of numbers as the compiled part gave them, or of objects."""
    import numpy

    _refuse_views(copy)
    if numbers is None:
        array = numpy.fromiter(column.to_pylist(), dtype=object, count=len(column))
    else:
        array = numpy.frombuffer(numbers[0], dtype=numbers[1])
    return array if dtype is None else array.astype(dtype, copy=False)


def compare(column: Column, other: object, is_equal: bool) -> Any:
    """For each row whether it has the value: without this, `column == 1` would be False as a whole."""
    try:
        import numpy
    except ImportError as error:
        raise TypeError("NumPy compares rows, and is not there: column.to_pylist() is a list") from error
    rows = numpy.asarray(column)
    other = numpy.asarray(other) if isinstance(other, Column) else other
    return rows == other if is_equal else rows != other


def rows_to_numpy(columns: Columns, dtype: Any, copy: bool | None) -> Any:
    """An array of NumPy with two dimensions: rows, and columns."""
    import numpy

    _refuse_views(copy)
    arrays = [numpy.asarray(column) for column in columns]
    if len({array.dtype for array in arrays}) > 1:
        # As numbers, integers with nulls would be fractions, also as objects.
        arrays = [numpy.fromiter(column.to_pylist(), dtype=object, count=len(columns)) for column in columns]
    array = numpy.column_stack(arrays) if arrays else numpy.empty((len(columns), 0))
    return array if dtype is None else array.astype(dtype, copy=False)


def _refuse_views(copy: bool | None) -> None:
    if copy is False:
        raise ValueError("a column of fibula becomes an array of NumPy by a copy: copy=False cannot be kept")


def to_pandas(columns: Columns) -> Any:
    """A pandas.DataFrame of nullable types."""
    import pandas

    series = {name: to_series(columns[name]) for name in columns.names}
    return pandas.DataFrame(series, columns=columns.names)


def to_series(column: Column) -> Any:
    """A pandas.Series of a nullable type."""
    import pandas

    numbers = {
        "UInt8": pandas.UInt8Dtype(),
        "UInt32": pandas.UInt32Dtype(),
        "UInt64": pandas.UInt64Dtype(),
        "Float64": pandas.Float64Dtype(),
        "Boolean": pandas.BooleanDtype(),
    }
    try:
        import pyarrow
    except ImportError:
        kind = numbers.get(column.type, "str" if column.type == "Utf8" else "object")
        kind = "category" if column.type.startswith("Dictionary") else kind
        return pandas.Series(column.to_pylist(), index=column._index, dtype=kind, name=column.name)
    types = {
        pyarrow.uint8(): "UInt8",
        pyarrow.uint32(): "UInt32",
        pyarrow.uint64(): "UInt64",
        pyarrow.float64(): "Float64",
        pyarrow.bool_(): "Boolean",
    }
    mapper = {kind: numbers[name] for kind, name in types.items()}
    series = pyarrow.chunked_array(column).to_pandas(types_mapper=mapper.get)
    series.name = column.name
    if column._index is not None:
        series.index = column._index
    return series
