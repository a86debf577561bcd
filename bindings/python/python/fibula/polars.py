"""The Polars expression namespace `fibula`. Importing this module registers it.

>>> import polars as pl
>>> import fibula, fibula.polars
>>> table = fibula.Table.build([("10.0.0.0/8", {"site": "hq"}), ("10.20.0.0/16", {"site": "zurich"})])
>>> df = pl.DataFrame({"ip": ["10.20.0.1", None, "192.0.2.1"]})
>>> df.select(pl.col("ip").fibula.lookup(table, add="site").alias("site"))["site"].to_list()
['zurich', None, None]

It is made of `map_batches`, whose function is elementwise and lets other threads run: nothing of Polars is compiled in,
so every version of Polars that speaks Arrow's PyCapsule interface will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import polars as pl

from fibula import _columns
from fibula._fibula import ColumnError
from fibula._frames import of_times

if TYPE_CHECKING:
    from fibula._fibula import _Requested
    from fibula._frames import Search
    from fibula.table import Table


@pl.api.register_expr_namespace("fibula")
class FibulaExpr:
    """`pl.col("ip").fibula`."""

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def lookup(
        self,
        table: Table,
        add: str | Iterable[str] | None = None,
        *,
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str = "plain",
        threads: int | None = None,
    ) -> pl.Expr:
        """Looks up the addresses of the expression: text, unsigned integers, binary, categories.

        `add` and the other options are those of `Table.lookup_many`. One name gives a column, several (and None, which
        is all columns of the table) a struct with a field for each, for `unnest`. Integers are UInt32, or UInt64 where
        the table needs it; text is String, or Categorical with `text="dictionary"`. Rows without an address or a match
        are null; of a struct, its fields are.
        """
        asked = _columns.options(add, default, strict, prefix_form, text, threads)
        return _expression(self._expr, None, _columns.search_of(table), None, asked, alone=isinstance(add, str))


def _expression(
    expr: pl.Expr, time: pl.Expr | None, search: Search, name: str | None, asked: _Requested, *, alone: bool
) -> pl.Expr:
    # Types are known before there is data. This also prepares the table's values, once.
    fields = pl.DataFrame(search(name, [], None if time is None else [], asked)).schema
    if alone and len(fields) > 1:
        raise ColumnError("a prefix in binary form is two columns: add=['prefix'] gives both")
    kind = next(iter(fields.values())) if alone else pl.Struct(fields)

    def look(series: pl.Series) -> pl.Series:
        both = [series, None] if time is None else series.struct.unnest().get_columns()
        found = search(name, *both, asked)
        return pl.Series(series.name, found[0]) if alone else pl.DataFrame(found).to_struct(series.name)

    if time is not None:
        expr = pl.struct(expr.alias("address"), time.alias("time"))
    return expr.map_batches(look, return_dtype=kind, is_elementwise=True)


def annotate_lazy(
    search: Search, frame: pl.LazyFrame, columns: list[str], time: str | None, asked: _Requested
) -> pl.LazyFrame:
    """`annotate` for a LazyFrame: what is added is in the plan, and computed with it."""
    there = frame.collect_schema().names()
    times = None if of_times(time, there) is None else pl.col(str(time))
    if not columns:
        raise ColumnError("a LazyFrame has no data to find addresses in: columns=[...] names those with addresses")
    for at, name in enumerate(columns):
        if name not in there:
            raise ColumnError(f"the frame has no column {name!r}; it has: {', '.join(there)}")
        if name in columns[:at]:
            raise ColumnError(f"{name!r} was asked for twice")
        added = f"__fibula_{name}"
        frame = frame.with_columns(_expression(pl.col(name), times, search, name, asked, alone=False).alias(added)).unnest(added)
        there = frame.collect_schema().names()
    return frame


def lookup(
    column: str | pl.Expr,
    table: Table,
    add: str | Iterable[str] | None = None,
    *,
    default: Mapping[str, float | str] | float | str | None = None,
    strict: bool = False,
    prefix_form: str = "text",
    text: str = "plain",
    threads: int | None = None,
) -> pl.Expr:
    """`FibulaExpr.lookup` as a function: type checkers know no registered namespaces, mypy only with the plugin `fibula.mypy`."""
    expr = pl.col(column) if isinstance(column, str) else column
    return FibulaExpr(expr).lookup(
        table, add, default=default, strict=strict, prefix_form=prefix_form, text=text, threads=threads
    )
