"""The tables of several dates."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from fibula import _columns, _frames
from fibula import _fibula as native
from fibula._fibula import Column, Columns
from fibula.table import Table

if TYPE_CHECKING:
    from fibula._fibula import _Requested
    from fibula._routes import Address

    Time = str | int | float | datetime.date

Frame = TypeVar("Frame")


class DatedTable:
    """The tables of several dates, which `fibula build --as-of` writes into one file: flows of last May are looked up
    in the table of last May.

    Each address is looked up in the newest table that is not later than its time. It never changes, so threads may share
    it. Pickled, it is the path of its file.

    The examples below go on with this file, of three days:

    >>> tables = DatedTable.open("three-days.fib")
    >>> tables
    <fibula.DatedTable three-days.fib: 3 tables from 2024-05-01 to 2024-05-03, columns ['asn', 'country']>
    """

    __slots__ = ("__weakref__", "_native", "_path")

    def __init__(self, tables: native.DatedTable, path: Path) -> None:
        """For `open`, which see."""
        self._native = tables
        self._path = path

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, load: str = "auto") -> DatedTable:
        """Opens a file of several dates. `load` is as in `Table.open`.

        Raises OSError if it cannot be read, `SnapshotError` if it is no such file, or damaged.
        """
        path = Path(path).absolute()
        return cls(native.DatedTable.open(path, load), path)

    @property
    def path(self) -> Path:
        """The file, absolute."""
        return self._path

    @property
    def dates(self) -> list[datetime.datetime]:
        """The times from which the tables hold, ascending, in UTC.

        >>> [f"{date:%F}" for date in tables.dates]
        ['2024-05-01', '2024-05-02', '2024-05-03']
        """
        return [_utc(seconds) for seconds, _, _ in self._native.dates()]

    @property
    def columns(self) -> dict[str, type]:
        """The value columns of all tables: their names, and `int`, `float`, `bool` or `str`."""
        return _columns.kinds(self._native.columns())

    def __len__(self) -> int:
        """The number of tables."""
        return len(self._native.dates())

    def __repr__(self) -> str:
        dates = [f"{date:%F}" if date.time() == datetime.time() else f"{date:%FT%TZ}" for date in self.dates]
        span = f" from {dates[0]} to {dates[-1]}" if dates else ""
        return f"<fibula.DatedTable {self._path.name}: {len(dates):,} tables{span}, columns {list(self.columns)}>"

    def at(self, time: Time) -> Table:
        """The newest table that is not later than this time, copied into memory.

        Raises `SourceError` if the first one is later.

        >>> tables.at("2024-05-02T12:00:00Z").lookup("10.1.2.3")
        {'prefix': '10.1.2.0/24', 'asn': 64503, 'country': 'AT'}
        """
        return Table(self._native.at(_time(time)))

    @overload
    def lookup(self, address: Address, time: Time) -> dict[str, Any] | None: ...

    @overload
    def lookup(self, address: Address, time: Time, add: str) -> Any: ...

    def lookup(self, address: Address, time: Time, add: str | None = None) -> Any:
        """What the longest prefix that covered the address at that time said, as `Table.lookup`; also None if the first
        table is later.

        A time is a `date`, a `datetime`, a scalar of NumPy, text such as "2024-05-01T12:00:00Z", or a number since 1970, whose
        size tells its unit; UTC without a zone.

        >>> tables.lookup("10.1.2.3", "2024-05-01"), tables.lookup("10.1.2.3", "2024-04-30")
        ({'prefix': '10.1.0.0/16', 'asn': 64501, 'country': None}, None)
        """
        return self._native.lookup(address, _time(time), _columns.one_name(add))

    def history(self, address: Address) -> list[tuple[datetime.datetime, dict[str, Any] | None]]:
        """What matches the address over time: from when, and what; None where nothing does. Entries are changes, and the
        first date.

        >>> [(f"{since:%F}", found["prefix"]) for since, found in tables.history("10.1.2.3") if found]
        [('2024-05-01', '10.1.0.0/16'), ('2024-05-02', '10.1.2.0/24'), ('2024-05-03', '10.1.0.0/16')]
        """
        return [(_utc(seconds), found) for seconds, found in self._native.history(address)]

    def _search(self, name: str | None, column: object, times: object, asked: _Requested, time_format: str = "auto") -> Columns:
        found, index = _columns.column(column), _columns.index(column)
        return self._native.lookup_many(name, found, _columns.times(times), index, time_format, asked)

    @overload
    def lookup_many(  # type: ignore[overload-overlap]  # a str is an iterable of str, but one name
        self,
        column: object,
        times: object,
        add: str,
        *,
        time_format: str = "auto",
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str = "dictionary",
        threads: int | None = None,
    ) -> Column: ...

    @overload
    def lookup_many(
        self,
        column: object,
        times: object,
        add: Iterable[str] | None = None,
        *,
        time_format: str = "auto",
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str = "dictionary",
        threads: int | None = None,
    ) -> Columns: ...

    def lookup_many(
        self,
        column: object,
        times: object,
        add: str | Iterable[str] | None = None,
        *,
        time_format: str = "auto",
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str = "dictionary",
        threads: int | None = None,
    ) -> Column | Columns:
        """Looks up a column of addresses, each at the time in the same row of `times`. The rest is as in `Table.lookup_many`.

        Columns of times are timestamps of any unit (UTC without a zone), dates, text, numbers since 1970 (a number's size
        tells its unit; `time_format="s"`, "ms", "us" or "ns" names it, "rfc3339" accepts only text; 20240501 is a date, as in
        text), or lists of what `lookup` takes and None. Rows before the first table, and rows without a time, get None, also where there is a
        default; `Columns.before` and `Columns.untimed` count them, and `Columns.first_untimed` is the first time that
        cannot be read, which is an error if `strict`.

        >>> tables.lookup_many(["10.1.2.3", "10.1.2.3"], ["2024-05-01", "2024-05-02T08:00:00Z"], add="asn").to_pylist()
        [64501, 64503]
        """
        asked = _columns.options(add, default, strict, prefix_form, text, threads)
        found = self._search(None, column, times, asked, time_format)
        return _columns.one(found, add) if isinstance(add, str) else found

    def annotate(
        self,
        frame: Frame,
        columns: str | Iterable[str] | None = None,
        add: str | Iterable[str] | None = None,
        *,
        time: str,
        time_format: str = "auto",
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str | None = None,
        threads: int | None = None,
        counts: dict[str, dict[str, int]] | None = None,
    ) -> Frame:
        """The frame with columns added for its columns of addresses, each row by the table of the time in its column
        `time`. The rest is as in `Table.annotate` and `lookup_many`; `counts` also has `before` and `untimed`.

        >>> import pyarrow
        >>> flows = pyarrow.table({"ts": ["2024-05-01", "2024-05-02"], "src": ["10.1.2.3", "10.1.2.3"]})
        >>> tables.annotate(flows, "src", ["asn"], time="ts")["src_asn"].to_pylist()
        [64501, 64503]
        """

        def search(name: str | None, column: object, times: object, asked: _Requested) -> Columns:
            return self._search(name, column, times, asked, time_format)

        found: Frame = _frames.annotate(
            search,
            frame,
            columns,
            add,
            counts,
            time=time,
            default=default,
            strict=strict,
            prefix_form=prefix_form,
            text=text,
            threads=threads,
        )
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return DatedTable.open, (self._path,)

    def __copy__(self) -> DatedTable:
        return self

    def __deepcopy__(self, memo: object) -> DatedTable:
        return self


def _utc(seconds: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)


def _time(time: object) -> str:
    text = _columns.time(time)
    if text is None:
        raise TypeError(f"{time!r} is no time")
    return text


__all__ = ["DatedTable"]
