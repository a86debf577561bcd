"""Rows as mappings, columns as lists, an index with prefixes: what users write without looking it up."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import duckdb
import fibula
import fibula.duckdb
import fibula.polars
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

PREFIXES = ["10.0.0.0/8", "10.1.0.0/16"]
READ = [{"prefix": "10.0.0.0/8", "asn": 1}, {"prefix": "10.1.0.0/16", "asn": 2}]


def read(source: Any, **options: Any) -> list[dict[str, Any]]:
    return list(fibula.Table.build(source, **options))


def test_rows_as_mappings() -> None:
    assert read(READ) == READ
    assert read(tuple(READ)) == READ
    assert read(row for row in READ) == READ
    networks = [{"network": "10.0.0.0", "netmask": "255.0.0.0", "asn": 1}, {"network": "10.1.0.0", "netmask": "255.255.0.0", "asn": 2}]
    assert read(networks) == READ
    assert read([{"a": 3, "net": row["prefix"]} for row in READ], key="net")[0] == {"prefix": "10.0.0.0/8", "a": 3}
    # Of rows with different names the others are empty.
    uneven = [{"prefix": "10.0.0.0/8"}, {"prefix": "10.1.0.0/16", "asn": 2}, {"prefix": "10.2.0.0/16"}]
    assert [row["asn"] for row in read(uneven)] == [None, 2, None]


def test_mappings_of_prefixes_are_as_they_were() -> None:
    one, two = {"10.0.0.0/8": {"asn": 1}}, {"10.1.0.0/16": {"asn": 2}}
    assert read([one, two]) == READ
    assert read({**one, **two}) == READ
    assert read({ipaddress.ip_network(prefix): values for prefix, values in {**one, **two}.items()}) == READ


@pytest.mark.parametrize("make", [list, tuple, np.array, pd.Series, pl.Series, pa.array], ids=lambda make: f"{make.__module__}.{make.__name__}")
def test_columns_as_lists(make: Any) -> None:
    assert read({"prefix": make(PREFIXES), "asn": make([1, 2])}) == READ
    with pytest.raises(fibula.ColumnError, match="as many values as each other"):
        read({"prefix": make(PREFIXES), "asn": make([1])})


def test_an_index_of_prefixes_is_a_column() -> None:
    frame = pd.DataFrame({"prefix": PREFIXES, "asn": [1, 2]})
    assert read(frame.set_index("prefix")) == READ
    assert read(frame.set_index("prefix").rename_axis(None)) == READ
    assert read(frame.assign(site=["a", "b"]).set_index(["site", "prefix"])) == READ
    objects = pd.DataFrame({"asn": [1, 2]}, index=[ipaddress.ip_network(prefix) for prefix in PREFIXES])
    assert read(objects) == READ
    # Another index is none of the table.
    assert read(frame.set_axis(["a", "b"])) == READ
    assert read(frame.set_axis([167772160, 167772161])) == READ
    assert read(frame.set_index(pd.Index(["x", "y"], name="prefix"))) == READ


def test_rows_that_are_none() -> None:
    for source in ({"10.0.0.0/8"}, [["10.0.0.0/8", "a", 1]], [("10.0.0.0/8", "a", 1)], (prefix for prefix in PREFIXES), [[1]]):
        with pytest.raises(TypeError, match="row 0 is .*: rows are pairs of a prefix and its values"):
            read(source)


def test_frames_are_no_columns(small: fibula.Table) -> None:
    data = {"src": ["10.20.0.1"]}
    for frame in (pd.DataFrame(data), pl.DataFrame(data), pl.LazyFrame(data), pa.table(data), pa.RecordBatch.from_pydict(data)):
        with pytest.raises(TypeError, match=r"is no column: give one of its columns, frame\['src'\], or let annotate\(\)"):
            small.lookup_many(frame)


def test_series_and_lazy_frames() -> None:
    assert read(pd.Series([1, 2], index=PREFIXES, name="asn")) == READ
    for series in (pd.Series(PREFIXES), pl.Series(PREFIXES)):
        assert [row["prefix"] for row in read(series)] == PREFIXES
    assert read(pl.LazyFrame({"prefix": PREFIXES, "asn": [1, 2]})) == READ


def test_what_is_no_source() -> None:
    for frame in (pd.DataFrame({"prefix": []}), pl.DataFrame({"prefix": []}), []):
        with pytest.raises(fibula.SourceError, match="no routes at all: the source has no rows; allow_empty=True"):
            read(frame)
        assert read(frame, allow_empty=True) == []
    with pytest.raises(TypeError, match="layers is a mapping of names to sources, not a list"):
        fibula.Table.build(layers=[READ])  # type: ignore[arg-type]


def test_what_is_no_table() -> None:
    with pytest.raises(TypeError, match="table is a fibula.Table, not a str"):
        fibula.duckdb.register(duckdb.connect(), "ip_lookup")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="table is a fibula.Table, not a PosixPath"):
        pl.col("ip").fibula.lookup(Path("table.fib"))


def test_snapshots_of_the_other_kind(tmp_path: Path) -> None:
    fibula.Table.build(READ).save(tmp_path / "one.fib")
    with pytest.raises(fibula.SnapshotError, match="Table.open opens this one"):
        fibula.DatedTable.open(tmp_path / "one.fib")
    with pytest.raises(fibula.SnapshotError, match='Table.open\\(path, at="2024-05-01"\\); DatedTable.open opens all'):
        fibula.Table.open(Path(__file__).parents[3] / "testdata/snapshots/three-days.fib")


def test_lookup_takes_one_name(small: fibula.Table) -> None:
    with pytest.raises(TypeError, match="one column, not a list: without it, lookup"):
        small.lookup("10.20.0.1", ["vlan"])  # type: ignore[call-overload]
