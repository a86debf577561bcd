"""The table."""

from __future__ import annotations

import datetime
import os
import pickle
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, overload

from fibula import _columns, _devices, _frames, _sources
from fibula import _fibula as native
from fibula._fibula import Column, Columns
from fibula._resident import DeviceTable
from fibula._routes import Routes

Frame = TypeVar("Frame")


def _files(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None) -> list[str | os.PathLike[str]]:
    """No file, one, or several."""
    if given is None:
        return []
    return [given] if isinstance(given, (str, os.PathLike)) else list(given)


class DamageWarning(UserWarning):
    """Records of a source were damaged and skipped."""


class Table(Routes):
    """Prefixes with what they carry, compiled for lookup.

    Made by `Table.open` and `Table.build`. It never changes, so threads may share it; lookups of columns let other
    Python threads run meanwhile. Pickled, it is the path of its file.

    The examples below go on with this table:

    >>> table = Table.build({"10.0.0.0/8": {"site": "hq", "vlan": 1}, "10.20.0.0/16": {"site": "zurich", "vlan": 20}})
    >>> table
    <fibula.Table in memory: 2 prefixes, columns ['site', 'vlan']>
    """

    __slots__ = ("__weakref__", "_native", "_path", "_report")

    def __init__(self, table: native.Table, path: Path | None = None) -> None:
        """For `open` and `build`, which see."""
        self._native = table
        self._path = path
        self._report: dict[str, Any] | None = None

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        load: str = "auto",
        at: str | datetime.date | None = None,
        rpki: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        origin: str = "origin_as",
    ) -> Table:
        """Opens a snapshot file, as `fibula build` and `Table.save` write it.

        A file that nobody may write, as snapshots are written, is mapped: a million prefixes open in milliseconds, and
        all processes that have it open share its pages. Another is read into memory. `load="map"` and `load="read"` force
        either; a mapped file must not be changed in place while it is open, so those who write snapshots put a new
        file in the place of the old one.

        Of a file of several dates, which `fibula build --as-of` writes, `at` chooses the table: the newest that is not later
        than this date or time (a `date`, a `datetime`, or text such as "2024-05-01T12:00:00Z"; UTC without a zone). It is copied
        into memory, so it cannot be pickled before it is saved. `DatedTable.open` opens all of its tables.

        `rpki` and `origin` add columns as in `build`; the table is then in memory, and compiled again.

        Raises OSError if it cannot be read, `SnapshotError` if it is none, or damaged, or has several dates and `at` is not
        given; `SourceError` if there is no table of that time.

        >>> table.save("sites.fib")
        >>> Table.open("sites.fib").lookup("10.1.1.1")
        {'prefix': '10.0.0.0/8', 'site': 'hq', 'vlan': 1}
        """
        path, vrps = Path(path).absolute(), _files(rpki)
        text = at.isoformat() if isinstance(at, datetime.date) else at
        kept = None if vrps or text is not None else path
        return cls(native.Table.open(path, load, text, vrps, origin), kept)

    @classmethod
    def build(
        cls,
        sources: object = None,
        *,
        layers: Mapping[str, object] | None = None,
        output: str | os.PathLike[str] | None = None,
        format: str = "auto",
        strict: bool = False,
        salvage: bool = False,
        allow_empty: bool = False,
        columns: Iterable[str] | None = None,
        tags: str | None = None,
        names: Iterable[str] | None = None,
        key: str | Iterable[str] | None = None,
        kinds: Mapping[str, type] | None = None,
        delimiter: str | None = None,
        header: bool | None = None,
        mask_host_bits: bool = False,
        peer: str | int = "best",
        as_path: bool = False,
        communities: bool = False,
        engine: str = "auto",
        load: str = "auto",
        rpki: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        origin: str = "origin_as",
    ) -> Table:
        """Builds a table from one source or a list of them, merged in order: for the same prefix a later one wins.

        A source is

        - a path or a pattern (`"lists/*.csv"`): lists of networks, CSV, TSV, ranges, MRT, mmdb, snapshots; plain or
          compressed; `"embedded"` is the table of countries in the package, `"gen:v4:2024:900000:1"` a generated one;
        - a frame of pyarrow, Polars or pandas, or a relation of DuckDB, with the prefixes in the column `key`, or with
          ranges (first and last address) or networks and their lengths in two columns, `key=("start", "end")`. Without
          `key` the columns are found as those of a text, by their names and contents, and `Table.report["notes"]` says
          if they could be others. Integers are addresses only if `key` or a name as `ip_from` says so. Ranges become
          prefixes. An address belongs to the narrowest range that contains it, and of equally narrow ones to the last;
        - rows as mappings, `[{"prefix": "10.0.0.0/8", "site": "hq"}, ...]`, or a mapping of names to lists of values; both
          are read as a frame. An index of pandas with prefixes is a column, too;
        - pairs of a prefix and its values: `[("10.0.0.0/8", {"site": "hq"}), ...]`, or a mapping of them. Values are
          str, int, float, bool, dates or None. A column has one of the kinds `int`, `float` (also for negative integers)
          and `bool` if all its values have, and otherwise is text, as dates are.

        `layers` puts tables beside each other in place of merging them: `layers={"geo": "countries.csv", "asn":
        [...]}` gives the columns `geo_country`, `asn_asn`, and one lookup answers for all.

        With `output` the table is written there, whole or not at all, and opened from there; otherwise it is in memory.
        `columns` keeps only these. Of a prefix that comes twice the last row counts, with all its columns, and
        `Table.report` counts and names such; `tags` names a column that lists the values of all rows and sources
        instead, each once, as text such as "drop;botnet", in which a source without that column gives its name.
        `load` is as in `open`. Damaged records are counted and skipped, with a `DamageWarning`, and
        `Table.report` has them; if `strict`, the first is a `SourceError`, and so is a prefix that a source has
        twice. A damaged archive is an error unless `salvage`
        takes what comes before the damage; so is a source without routes unless `allow_empty`. `format`, `names`, `key`, `kinds`, `delimiter`,
        `header`, `mask_host_bits` say how text is read, where that should not be found out; `peer`, `as_path` and
        `communities` what is kept of BGP tables; all as `fibula build --help` has them. `engine` names one that the
        families take if they have it.

        `rpki` names files of VRPs, JSON or CSV of routinator or rpki-client: it adds the columns `rpki` ("valid",
        "invalid-origin", "invalid-length" or "not-found", after RFC 6811) and `rpki_vrps` (the VRPs that cover the
        prefix, as text). `origin` is the column with the AS that originates each route.

        >>> both = Table.build(layers={"net": {"10.0.0.0/8": {"vlan": 1}}, "who": {"10.9.0.0/16": {"name": "lab"}}})
        >>> both.lookup("10.9.0.1")
        {'prefix': '10.9.0.0/16', 'net_vlan': 1, 'who_name': 'lab'}
        """
        if (sources is None) == (layers is None):
            raise TypeError("build() takes sources, or layers, and not both")
        if rpki is not None and layers is not None:
            raise TypeError("rpki= is about one table's routes: build the layer with it first, and save it")
        if layers is not None and not isinstance(layers, Mapping):
            raise TypeError(f"layers is a mapping of names to sources, not a {type(layers).__name__}")
        keys = _columns.names(key)
        given = {None: sources} if layers is None else layers
        if layers is not None:
            _columns.names(layers)
        read = [(name, _sources.listed(listed, keys)) for name, listed in given.items()]
        building: native._Building = {
            "format": format,
            "strict": strict,
            "salvage": salvage,
            "allow_empty": allow_empty,
            "peer": str(peer),
            "columns": None if columns is None else _columns.names(columns),
            "tags": tags,
            "load": load,
            "as_path": as_path,
            "communities": communities,
            "delimiter": delimiter,
            "header": header,
            "names": _columns.names(names),
            "key": keys,
            "kinds": _columns.kind_names(kinds or {}),
            "mask_host_bits": mask_host_bits,
            "engine": engine,
            "rpki": _files(rpki),
            "origin": origin,
        }
        path = None if output is None else Path(output).absolute()
        made, report = native.Table.build(read, building, path)
        if report["damaged"]:
            shown = "\n  ".join(report["damage"][:5])
            warnings.warn(
                f"{report['damaged']:,} damaged records skipped:\n  {shown}", DamageWarning, stacklevel=2
            )
        table = cls(made, path)
        table._report = report
        return table

    @property
    def report(self) -> dict[str, Any] | None:
        """What was read when the table was built: `damaged` (how many records), `damage` (the first of them, as text),
        `repeated` and `replaced` (how many prefixes a source had again, and how many replaced those of earlier sources),
        `replacements` (the first of them, as text), `notes` (what was not read as it is written), `sources` (records
        and routes of each) and `peer` (of BGP tables). None if it was opened."""
        return self._report

    @property
    def path(self) -> Path | None:
        """The file, absolute; None if the table is in memory only."""
        return self._path

    @property
    def columns(self) -> dict[str, type]:
        """The value columns: their names, and `int`, `float`, `bool` or `str`."""
        return _columns.kinds(self._native.columns())

    def __repr__(self) -> str:
        where = "in memory" if self._path is None else str(self._path)
        return f"<fibula.Table {where}: {len(self):,} prefixes, columns {list(self.columns)}>"

    def _search(self, name: str | None, column: object, times: None, asked: native._Requested) -> Columns:
        found = self._native.lookup_many(name, _columns.column(column), _columns.index(column), asked)
        _devices.warn_of_failures(found, asked["device"])
        return found

    @overload
    def lookup_many(  # type: ignore[overload-overlap]  # a str is an iterable of str, but one name
        self,
        column: object,
        add: str,
        *,
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str = "dictionary",
        threads: int | None = None,
        device: str | None = None,
    ) -> Column: ...

    @overload
    def lookup_many(
        self,
        column: object,
        add: Iterable[str] | None = None,
        *,
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str = "dictionary",
        threads: int | None = None,
        device: str | None = None,
    ) -> Columns: ...

    def lookup_many(
        self,
        column: object,
        add: str | Iterable[str] | None = None,
        *,
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str = "dictionary",
        threads: int | None = None,
        device: str | None = None,
    ) -> Column | Columns:
        """Looks up a column of addresses.

        The column: a pyarrow array or chunked array, a Polars or pandas Series, a NumPy array (unsigned integers for
        IPv4; rows of 4 or 16 uint8), anything else with Arrow's PyCapsule interface, or an iterable of what `lookup`
        takes, and None. Columns of integers hold IPv4 addresses (10.0.0.1 is 167772161).

        `add` names what is wanted: "prefix" for the matched prefix, "covering" for the list of all covering prefixes,
        and columns of the table; without it, all columns. One name gives a `Column`, several give `Columns`; both are
        Arrow data to pyarrow, Polars, pandas and DuckDB, row by row for the addresses, chunk by chunk,
        chunks of more than 2**20 rows in pieces. Of a pandas Series, `to_pandas` of the result has the index.

        Null, where there is no address or no prefix that covers it. `default` says what addresses without a prefix get
        in place of null, by column. Text that is not an address is counted (`Columns.unparsable`), or, if `strict`, an
        `AddressError`.

        `prefix_form="binary"` gives prefixes as bytes and a column of lengths. `text="plain"` gives text as it is, not
        in dictionaries. `threads` is how many may be used: one for each processor, if not said.

        `device` names an accelerator that looks up, such as "opencl:0" or "cuda:0" (`devices` lists them): the result is
        the same. The first lookup copies the table to it, and the copy is kept as long as the table. A device needs
        hundreds of thousands of addresses: fewer than 8,192 of a family at once go to the CPU, and so do those that the
        device fails to look up, with a `DeviceWarning`. `Columns.on_device` and `Columns.on_cpu` count the lookups of
        both. A device that is not there is a `DeviceError`.

        >>> table.lookup_many(["10.20.0.1", "192.0.2.1", None], add="vlan", default=0).to_pylist()
        [20, 0, None]
        >>> table.lookup_many(["10.20.0.1", "x"], add=["prefix", "site"])
        <fibula.Columns ["prefix", "site"], 2 rows, 1 matched>
        """
        asked = _columns.options(add, default, strict, prefix_form, text, threads, device)
        found = self._search(None, column, None, asked)
        return _columns.one(found, add) if isinstance(add, str) else found

    def annotate(
        self,
        frame: Frame,
        columns: str | Iterable[str] | None = None,
        add: str | Iterable[str] | None = None,
        *,
        default: Mapping[str, float | str] | float | str | None = None,
        strict: bool = False,
        prefix_form: str = "text",
        text: str | None = None,
        threads: int | None = None,
        device: str | None = None,
        counts: dict[str, dict[str, int]] | None = None,
    ) -> Frame:
        """The frame with columns added for its columns of addresses: `src_asn` and `src_prefix` for `src`.

        The frame: a pyarrow Table or RecordBatch, a Polars DataFrame or LazyFrame, a pandas DataFrame, a relation of
        DuckDB (which needs pyarrow, and is read into memory); the same kind comes back, with its rows in order, its index
        and its chunks. `columns` are those with addresses; without them, the columns of text in which at least half of
        the first 1,000 values are addresses, empty ones aside. Without them, a frame without rows comes back as it is.
        The other options are those of `lookup_many`.

        `text` is "dictionary" for pyarrow and "plain" for the others, if not said. Polars gets UInt32 (UInt64 where a
        table needs it) and String; pandas UInt32 or UInt64 with NA, and str. A dictionary that is given as `counts` is
        filled with what happened, by column of addresses: rows, matched, unmatched, unparsable, empty; with a `device`
        also on_device, on_cpu, device_failures. A LazyFrame has no `counts`, because nothing has happened yet.

        >>> import pyarrow
        >>> flows = pyarrow.table({"src": ["10.20.0.1", "192.0.2.1"], "bytes": [120, 77]})
        >>> table.annotate(flows, columns="src", add=["vlan"]).to_pydict()
        {'src': ['10.20.0.1', '192.0.2.1'], 'bytes': [120, 77], 'src_vlan': [20, None]}
        """
        found: Frame = _frames.annotate(
            self._search,
            frame,
            columns,
            add,
            counts,
            time=None,
            default=default,
            strict=strict,
            prefix_form=prefix_form,
            text=text,
            threads=threads,
            device=device,
        )
        return found

    def on_device(self, device: str) -> DeviceTable:
        """The table on a device, such as "cuda:0", for addresses that lie there, in an array of CuPy, cuDF or PyTorch:
        they are looked up without a copy. Addresses in the program's memory are looked up on a device by `lookup_many`
        and `annotate`, with their option `device`.

        The first call copies the table to the device, and the copy is kept as long as the table or a `DeviceTable`. A
        device that is not there is a `DeviceError`.
        """
        return DeviceTable(self._native.on_device(device))

    def stats(self) -> dict[str, Any]:
        """Numbers about the table: routes and engine of each family, columns, sources, size."""
        return {"path": None if self._path is None else str(self._path), **self._native.stats()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as a snapshot file, whole or not at all, and makes it the table's path."""
        path = Path(path).absolute()
        self._native.save(path)
        self._path = path

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        family: str | None = None,
        mmdb_type: str = "fibula",
    ) -> None:
        """Writes the table for another tool, whole or not at all.

        Formats: "csv" and "tsv" (a prefix and its values a line), "clickhouse" (CSV for an `ip_trie` dictionary), "mmdb"
        (for MaxMind's readers; `mmdb_type` is its `database_type`), "prefixes" (Parquet with a row for each prefix), and
        "intervals" (Parquet with `start`, `end` and values of the runs of addresses with equal values, of one `family`: "v4"
        or "v6"). Without a format the ending of the name tells: .csv, .tsv, .txt, .mmdb, .parquet (prefixes).

        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "table.csv"
        >>> table.export(path)
        >>> print(path.read_text().splitlines()[0])
        prefix,site,vlan
        """
        path = Path(path).absolute()
        endings = {".csv": "csv", ".tsv": "tsv", ".txt": "tsv", ".mmdb": "mmdb", ".parquet": "prefixes"}
        to = format or endings.get(path.suffix)
        if to is None:
            raise ValueError(f"{path.name}: unknown file name ending, name the format with format=")
        self._native.export(path, to, family, mmdb_type)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None:
            raise pickle.PicklingError(
                "the table is in memory only, and a pickle holds no more than a path: table.save(path) first"
            )
        return Table.open, (self._path,)

    def __copy__(self) -> Table:
        return self

    def __deepcopy__(self, memo: object) -> Table:
        return self


__all__ = ["Column", "Columns", "DamageWarning", "Table"]
