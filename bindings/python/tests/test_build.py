"""Tables from files, rows and frames; snapshots; what is wrong with them."""

from __future__ import annotations

import datetime
import decimal
import errno
import gzip
import ipaddress
import uuid
import warnings
from pathlib import Path
from typing import Any

import duckdb
import fibula
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

NETWORKS = "prefix,site,vlan\n10.0.0.0/8,hq,1\n10.20.0.0/16,zurich,20\n2001:db8::/32,hq,\n"
ROWS: dict[str, Any] = {
    "prefix": ["10.0.0.0/8", "10.20.0.0/16", "2001:db8::/32"],
    "site": ["hq", "zurich", "hq"],
    "vlan": [1, 20, None],
}
PAIRS = [
    (prefix, {"site": site, "vlan": vlan}) for prefix, site, vlan in zip(ROWS["prefix"], ROWS["site"], ROWS["vlan"])
]
ADDRESSES = ["10.20.0.1", "10.1.1.1", "2001:db8::1", "192.0.2.1"]
FOUND = {"prefix": ["10.20.0.0/16", "10.0.0.0/8", "2001:db8::/32", None], "site": ["zurich", "hq", "hq", None], "vlan": [20, 1, None, None]}


def found(table: fibula.Table) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = table.lookup_many(ADDRESSES, add=["prefix", *table.columns]).to_pydict()
    return columns


SOURCES: dict[str, Any] = {
    "pairs": PAIRS,
    "tuple of pairs": tuple(PAIRS),
    "iterator of pairs": lambda: iter(PAIRS),
    "mapping": dict(PAIRS),
    "networks": [(ipaddress.ip_network(prefix), values) for prefix, values in PAIRS],
    "a list of sources": [PAIRS[:1], dict(PAIRS[1:])],
    "two lists of two": [PAIRS[:2], PAIRS[1:]],
    "pyarrow": pa.table(ROWS),
    "polars": pl.DataFrame(ROWS),
    "pandas": pd.DataFrame(ROWS),
    "pandas, nullable": pd.DataFrame(ROWS).astype({"vlan": "UInt32"}),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_rows(kind: str) -> None:
    source = SOURCES[kind]
    table = fibula.Table.build(source() if callable(source) else source)
    assert table.columns == {"site": str, "vlan": int}
    assert found(table) == FOUND
    assert table.report is not None and table.report["damaged"] == 0


def test_bools_are_bools(tmp_path: Path) -> None:
    path = tmp_path / "bools.csv"
    path.write_text("prefix,on\n10.0.0.0/8,true\n11.0.0.0/8,false\n12.0.0.0/8,\n")
    rows = {"10.0.0.0/8": {"on": True}, "11.0.0.0/8": {"on": np.False_}, "12.0.0.0/8": {"on": None}}
    frame = pd.DataFrame({"prefix": list(rows), "on": pd.Series([True, False, None], dtype="boolean")})
    for source in (path, rows, frame, pl.DataFrame(frame)):
        table = fibula.Table.build(source)
        assert table.columns == {"on": bool}
        assert [record["on"] for record in table] == [True, False, None]
        assert table.prefixes(on=True) == ["10.0.0.0/8"]
    both = fibula.Table.build([path, rows])
    assert both.columns == {"on": bool}
    mixed = fibula.Table.build({"10.0.0.0/8": {"on": True}, "11.0.0.0/8": {"on": "x"}})
    assert [record["on"] for record in mixed] == ["true", "x"]
    for row, values in enumerate(([1, True], [True, 1])):
        with pytest.raises(fibula.ColumnError, match=f'column "on", row {row}: 1 in a column that also has True or False'):
            fibula.Table.build([("10.0.0.0/8", {"on": values[0]}), ("11.0.0.0/8", {"on": values[1]})])


def test_columns_that_are_none() -> None:
    twice: list[Any] = [
        pd.DataFrame([["10.0.0.0/8", 1, 2]], columns=["prefix", "a", "a"]),
        pd.DataFrame([["10.0.0.0/8", 1, 2]], columns=["prefix", "1", 1]),
        pa.table([pa.array(["10.0.0.0/8"]), pa.array([1]), pa.array([2])], names=["prefix", "a", "a"]),
        pa.table([pa.array(["10.0.0.0/8"]), pa.array([2])], names=["prefix", "prefix"]),
    ]
    for frame in twice:
        with pytest.raises(fibula.ColumnError, match="the frame has several columns '.*': rename or drop"):
            fibula.Table.build(frame)
    with pytest.raises(fibula.ColumnError, match="key names the column 'a' twice"):
        fibula.Table.build(pl.DataFrame({"a": ["10.0.0.0"]}), key=("a", "a"))
    rows: Any = {"10.0.0.0/8": {"a": 1}}
    wrong: list[tuple[str, Any]] = [
        ("the kind of column 'a' is a type", lambda: fibula.Table.build(rows, kinds={"a": "int"})),  # type: ignore[dict-item]
        ("a column's name is a str, not int", lambda: fibula.Table.build({"10.0.0.0/8": {1: 2}})),
        ("a column's name is a str, not int", lambda: fibula.Table.build(rows, kinds={1: int})),  # type: ignore[dict-item]
        ("a column's name is a str, not int", lambda: fibula.Table.build(layers={1: rows})),  # type: ignore[dict-item]
        ("a column's name is a str, not int", lambda: fibula.Table.build(rows, key=(1, 2))),  # type: ignore[arg-type]
        ("a column's name is a str, not int", lambda: fibula.Table.build(rows).where({1: 2})),  # type: ignore[dict-item]
        ("a column's name is a str, not int", lambda: fibula.Table.build(rows).lookup_many([], default={1: 2})),  # type: ignore[dict-item]
    ]
    for text, build in wrong:
        with pytest.raises(TypeError, match=text):
            build()
    with pytest.raises(fibula.ColumnError, match='column "a", row 0: not UTF-8'):
        fibula.Table.build({"10.0.0.0/8": {"a": "\udcff"}})


def test_values_of_rows() -> None:
    table = fibula.Table.build([("10.0.0.0/8", 7), ("10.1.0.0/16", None), ("10.2.0.1", np.uint16(9))])
    assert table.columns == {"value": int}
    assert [table.lookup(text)["value"] for text in ("10.0.0.1", "10.1.0.1", "10.2.0.1")] == [7, None, 9]  # type: ignore[index]
    # Text anywhere makes a column text; a column that comes late is null before.
    table = fibula.Table.build([("10.0.0.0/8", {"a": 7}), ("11.0.0.0/8", {"a": "x", "b": 1})])
    assert table.columns == {"a": str, "b": int}
    assert table.lookup("10.0.0.1") == {"prefix": "10.0.0.0/8", "a": "7", "b": None}
    for bad in (b"x", object(), [1]):
        with pytest.raises(fibula.ColumnError, match="neither a str nor a number"):
            fibula.Table.build({"10.0.0.0/8": {"a": bad}})
    # A list of prefixes without values is one: what matched is the answer.
    prefixes = fibula.Table.build({"10.0.0.0/8": None})
    assert prefixes.columns == {} and prefixes.lookup_many(["10.1.1.1"]).to_pydict() == {"prefix": ["10.0.0.0/8"]}


def test_numbers_and_dates_are_read_as_in_csv(tmp_path: Path) -> None:
    values: dict[str, list[Any]] = {
        "latitude": [47.37, -33.9, None],
        "offset": [-5, 3, 0],
        "share": [1.0, 2.5, float("nan")],
        "whole": [7.0, None, 8.0],
        "large": [2**64, 1, 2],
        "fine": [2**53 + 1, 0.5, 1],
        "since": [datetime.date(2024, 5, 1), datetime.date(1999, 12, 31), None],
        "price": [decimal.Decimal("1.50"), decimal.Decimal(2), None],
        "id": [uuid.UUID(int=1), uuid.UUID(int=2), None],
    }
    kinds = {"latitude": float, "offset": float, "share": float, "whole": int, "large": str, "fine": str, "since": str}
    kinds |= {"price": float, "id": str}
    prefixes = ["10.0.0.0/8", "10.1.0.0/16", "10.2.0.0/16"]
    rows = [(prefix, {name: column[at] for name, column in values.items()}) for at, prefix in enumerate(prefixes)]
    table = fibula.Table.build(rows)
    assert table.columns == kinds
    assert table.lookup("10.9.9.9") == {
        "prefix": "10.0.0.0/8",
        "latitude": 47.37,
        "offset": -5.0,
        "share": 1.0,
        "whole": 7,
        "large": "18446744073709551616",
        "fine": "9007199254740993",
        "since": "2024-05-01",
        "price": 1.5,
        "id": "00000000-0000-0000-0000-000000000001",
    }
    path = tmp_path / "same.csv"
    exported = tmp_path / "table.csv"
    table.export(exported)
    path.write_text(exported.read_text())
    assert fibula.Table.build(path).columns == kinds and list(fibula.Table.build(path)) == list(table)
    plain = {name: values[name] for name in ("latitude", "offset", "share", "since")}
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        frame = make({"prefix": prefixes, **plain})
        assert fibula.Table.build(frame).columns == {name: kinds[name] for name in plain}
    inf = fibula.Table.build({"10.0.0.0/8": {"a": float("inf"), "when": np.datetime64("2024-05-01T00:00:00.5")}})
    assert inf.lookup("10.0.0.1") == {"prefix": "10.0.0.0/8", "a": "inf", "when": "2024-05-01T00:00:00.500"}
    assert fibula.Table.build(duckdb.sql("SELECT '10.0.0.0/8' AS prefix, 47.37 AS latitude")).columns == {"latitude": float}


NAMING: list[tuple[dict[str, list[Any]], str]] = [
    ({"network": ["10.0.0.0"], "prefix_length": [8]}, "10.0.0.0/8"),
    ({"range_start": ["10.0.0.0"], "range_end": ["10.0.0.255"]}, "10.0.0.0/24"),
    ({"id": [1], "Prefix": ["10.0.0.0/8"]}, "10.0.0.0/8"),
    ({"id": [1], "Start IP": ["10.0.0.0"], "End-IP": ["10.0.0.255"]}, "10.0.0.0/24"),
    ({"id": [16777216], "CIDR": ["10.0.0.0/8"]}, "10.0.0.0/8"),
    ({"network": ["10.0.0.0"], "netmask": ["255.0.0.0"]}, "10.0.0.0/8"),
    ({"network": ["2001:db8::"], "netmask": ["ffff:ffff::"]}, "2001:db8::/32"),
    ({"network": ["10.0.0.0"], "broadcast": ["10.0.0.255"]}, "10.0.0.0/24"),
    ({"start": ["10.0.0.0"], "count": [256]}, "10.0.0.0/24"),
    ({"ip_from": [167772160], "ip_to": [167772415]}, "10.0.0.0/24"),
    ({"asn": [64500], "unnamed": ["10.0.0.0/8"]}, "10.0.0.0/8"),
    ({"ip": ["198.51.100.7"], "bgp_prefix": ["198.51.100.0/24"]}, "198.51.100.0/24"),
    ({"n": [1], "range": ["10.0.0.0-10.0.0.255"]}, "10.0.0.0/24"),
]


@pytest.mark.parametrize(("columns", "prefix"), NAMING)
def test_a_frame_is_read_as_the_same_csv(columns: dict[str, list[Any]], prefix: str, tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    pd.DataFrame({**columns, "site": ["hq"]}).to_csv(path, index=False)
    text = fibula.Table.build(path)
    assert text.prefixes() == [prefix] and text.report is not None
    notes = [note.replace(str(path), "frame") for note in text.report["notes"]]
    for make in (pd.DataFrame, pl.DataFrame, pa.table):
        frame = fibula.Table.build(make({**columns, "site": ["hq"]}))
        assert frame.prefixes() == [prefix] and frame.columns == text.columns
        assert frame.report is not None and frame.report["notes"] == notes


def test_integers_are_addresses_only_if_a_key_says_so() -> None:
    frame = pl.DataFrame({"id": [0, 1, 2], "n": [5, 6, 7]})
    with pytest.raises(fibula.SourceError, match="no routes at all|--key"):
        fibula.Table.build(frame)
    assert fibula.Table.build(frame, key="ID").prefixes() == ["0.0.0.0/32", "0.0.0.1/32", "0.0.0.2/32"]
    numbers = pl.DataFrame({"a": [167772160], "b": [167772415], "n": [1]})
    assert fibula.Table.build(numbers, key=("a", "b")).prefixes() == ["10.0.0.0/24"]
    masks = pl.DataFrame({"network": ["10.0.0.0"], "netmask": ["255.0.0.0"]})
    assert fibula.Table.build(masks, key=("network", "netmask")).prefixes() == ["10.0.0.0/8"]
    octets = pl.DataFrame({"net": [bytes([10, 0, 0, 0]), bytes(16)], "len": [8, 0]})
    assert fibula.Table.build(octets, key=("net", "len")).prefixes() == ["10.0.0.0/8", "::/0"]


def test_the_key_of_a_frame() -> None:
    frame = pl.DataFrame({"vlan": [1], "net": ["10.0.0.0/8"]})
    assert fibula.Table.build(frame, key="net").lookup("10.0.0.1") == {"prefix": "10.0.0.0/8", "vlan": 1}
    with pytest.raises(fibula.ColumnError, match="no column 'x'; it has: vlan, net"):
        fibula.Table.build(frame, key="x")


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "networks.csv"
    path.write_text(NETWORKS)
    return path


def test_files(csv: Path, tmp_path: Path) -> None:
    for source in (csv, str(csv), [csv], str(tmp_path / "*.csv")):
        assert found(fibula.Table.build(source)) == FOUND
    packed = tmp_path / "networks.csv.gz"
    packed.write_bytes(gzip.compress(NETWORKS.encode()))
    assert found(fibula.Table.build(packed)) == FOUND
    lines = tmp_path / "lines"
    lines.write_text("10.0.0.0/8;hq\n10.1.2.3/16;berlin\n")
    table = fibula.Table.build(
        lines, format="csv", delimiter=";", header=False, names=["prefix", "site"], key="prefix", mask_host_bits=True
    )
    assert table.lookup("10.1.0.1") == {"prefix": "10.1.0.0/16", "site": "berlin"}
    ranges = tmp_path / "ranges.csv"
    ranges.write_text("first,last,asn\n10.0.0.0,10.0.2.255,64500\n")
    asns = fibula.Table.build(ranges, key=["first", "last"], kinds={"asn": str})
    assert asns.lookup("10.0.2.1") == {"prefix": "10.0.2.0/24", "asn": "64500"}


def test_merging_and_layers(csv: Path) -> None:
    later = {"10.20.0.0/16": {"site": "berlin", "vlan": 21}}
    assert fibula.Table.build([csv, later]).lookup("10.20.0.1") == {"prefix": "10.20.0.0/16", "site": "berlin", "vlan": 21}
    both = fibula.Table.build(layers={"net": csv, "who": [{"10.20.30.0/24": {"name": "lab"}}], "bad": {"10.0.0.0/9": None}})
    assert both.columns == {"net_site": str, "net_vlan": int, "who_name": str, "bad": int}
    assert both.lookup("10.20.30.1") == {"prefix": "10.20.30.0/24", "net_site": "zurich", "net_vlan": 20, "who_name": "lab", "bad": 1}
    assert fibula.Table.build(csv, columns=["vlan"]).columns == {"vlan": int}
    for wrong in ({}, {"sources": csv, "layers": {"a": csv}}):
        with pytest.raises(TypeError, match="sources, or layers"):
            fibula.Table.build(**wrong)


def test_the_tables_that_need_no_file() -> None:
    countries = fibula.Table.build("embedded")
    assert countries.lookup("193.0.6.139") == {"prefix": "193.0.0.0/20", "country": "NL"}
    assert len(fibula.Table.build("gen:v4:2014:1000:1")) == 1000


def test_damage_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(NETWORKS + "10.0.0.300/32,x,1\n10.0.0.1/8,x,1\n")
    with pytest.warns(fibula.DamageWarning, match=r"2 damaged records skipped:\n.*bad.csv.*"):
        table = fibula.Table.build(path)
    assert found(table) == FOUND
    assert table.report is not None
    assert (table.report["damaged"], len(table.report["damage"])) == (2, 2)
    assert table.report["sources"][0]["records"] >= 5 and table.report["sources"][0]["routes"] == 3
    with pytest.raises(fibula.SourceError, match="bad.csv"):
        fibula.Table.build(path, strict=True)
    rows = [*PAIRS, ("10.0.0.1/8", {}), ("x", {}), (None, {})]
    with pytest.warns(fibula.DamageWarning, match="rows, row 3: prefix \"10.0.0.1/8\": bits beyond"):
        table = fibula.Table.build(rows)
    assert found(table) == FOUND and table.report is not None and table.report["damaged"] == 3
    with pytest.raises(fibula.SourceError, match="row 3"):
        fibula.Table.build(rows, strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(fibula.Table.build(rows[:4], mask_host_bits=True)) == 3


def test_sources_that_are_none(tmp_path: Path, csv: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere.csv"):
        fibula.Table.build(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match="no file has such a name"):
        fibula.Table.build(str(tmp_path / "*.mmdb"))
    binary = tmp_path / "binary"
    binary.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(fibula.SourceError, match="binary"):
        fibula.Table.build(binary)
    with pytest.raises(fibula.SourceError, match="no routes at all"):
        fibula.Table.build([])
    for options in ({"engine": "no-such"}, {"format": "no-such"}, {"peer": "x"}, {"delimiter": "ab"}, {"kinds": {"a": list}}):
        with pytest.raises(fibula.ColumnError):
            fibula.Table.build(csv, **options)
    with pytest.raises(fibula.SourceError, match="no column x"):
        fibula.Table.build(csv, columns=["x"])
    for wrong in (7, b"x", object()):
        with pytest.raises(TypeError, match="is no source"):
            fibula.Table.build(wrong)


def test_snapshots(csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.fib"
    built = fibula.Table.build(csv, output=path, engine="radix")
    assert built.path == path and built.stats()["v4"]["engine"] == "radix"
    monkeypatch.chdir(tmp_path)
    opened = fibula.Table.open("table.fib")
    assert opened.path == path and opened.report is None
    assert found(opened) == found(built) == FOUND
    assert repr(opened).startswith(f"<fibula.Table {path}: 3 prefixes")
    copy = tmp_path / "copy.fib"
    memory = fibula.Table.build([path, {"10.30.0.0/16": {"site": "bern"}}])
    assert memory.path is None
    memory.save(copy)
    assert memory.path == copy and len(fibula.Table.open(copy)) == 4
    assert fibula.Table.open(copy).stats()["digest"] == memory.stats()["digest"]


def test_snapshots_that_are_none(csv: Path, tmp_path: Path) -> None:
    path = tmp_path / "table.fib"
    fibula.Table.build(csv, output=path)
    data = path.read_bytes()
    with pytest.raises(fibula.SnapshotError, match="not a fibula snapshot; give a file that `fibula build` wrote"):
        fibula.Table.open(csv)
    (tmp_path / "cut.fib").write_bytes(data[: len(data) // 2])
    with pytest.raises(fibula.SnapshotError, match="cut.fib"):
        fibula.Table.open(tmp_path / "cut.fib")
    (tmp_path / "bit.fib").write_bytes(data[:-70] + bytes([data[-70] ^ 1]) + data[-69:])
    with pytest.raises(fibula.SnapshotError, match="bit.fib.*section"):
        fibula.Table.open(tmp_path / "bit.fib")
    with pytest.raises(FileNotFoundError):
        fibula.Table.open(tmp_path / "nowhere")
    with pytest.raises(OSError):
        fibula.Table.open(tmp_path)
    nowhere = tmp_path / "no" / "folder.fib"
    for write in (lambda: fibula.Table.build(csv, output=nowhere), lambda: fibula.Table.build(csv).save(nowhere)):
        with pytest.raises(FileNotFoundError) as missing:
            write()
        assert (missing.value.errno, missing.value.filename) == (errno.ENOENT, str(nowhere))
    with pytest.raises(IsADirectoryError):
        fibula.Table.build(csv).save(tmp_path)
    with pytest.raises(PermissionError, match="read-only, so it is not replaced"):
        csv.chmod(0o444)
        fibula.Table.build(csv).save(csv)


def test_tables_of_several_dates() -> None:
    path = Path(__file__).parents[3] / "testdata/snapshots/three-days.fib"
    with pytest.raises(fibula.SnapshotError, match="several dates .*choose one of its dates"):
        fibula.Table.open(path)
    zone = datetime.timezone(datetime.timedelta(hours=2))
    for at, asn in [
        ("2024-05-01", 64501),
        ("2024-05-01T23:59:59Z", 64501),
        (datetime.date(2024, 5, 2), 64503),
        (datetime.datetime(2024, 5, 3, 1, 59, 59, tzinfo=zone), 64503),
        (datetime.datetime(2024, 5, 3), 64501),
        (datetime.date(2030, 1, 1), 64501),
    ]:
        table = fibula.Table.open(path, at=at)
        found = table.lookup("10.1.2.3")
        assert found is not None and found["asn"] == asn, at
        assert table.path is None
    with pytest.raises(fibula.SourceError, match="its first table is that of 2024-05-01"):
        fibula.Table.open(path, at="2024-04-30")
    with pytest.raises(ValueError, match="a time is"):
        fibula.Table.open(path, at="soon")


def test_what_is_wrong_with_rows_is_said() -> None:
    with pytest.raises(fibula.SourceError, match=r"1 of 1 records.*10\.0\.0\.1/8"):
        fibula.Table.build([("10.0.0.1/8", {"site": "hq"})])
    for source in ("10.0.0.0/8", ["10.0.0.0/8", "10.1.0.0/16"], ["2001:db8::"]):
        with pytest.raises(TypeError, match="is a prefix.*pairs"):
            fibula.Table.build(source)
    assert fibula.Table.build([("10.0.0.0/8", None)]).lookup("10.1.2.3") is not None


def test_damaged_archives_and_empty_sources(tmp_path: Path) -> None:
    lines = "".join(f"10.{i}.0.0/16 {i}\n" for i in range(200))
    whole = gzip.compress(lines.encode())
    cut = tmp_path / "cut.txt.gz"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(fibula.SourceError, match="cut.txt.gz"):
        fibula.Table.build(cut)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert 0 < len(fibula.Table.build(cut, salvage=True)) < 200
    page = tmp_path / "list.csv"
    page.write_text("<!DOCTYPE html>\n<html><body>Not found</body></html>\n")
    with pytest.raises(fibula.SourceError):
        fibula.Table.build(page)
    empty = tmp_path / "empty.txt"
    empty.write_text("# no networks this week\n")
    with pytest.raises(fibula.SourceError):
        fibula.Table.build(empty)
    assert len(fibula.Table.build(empty, allow_empty=True)) == 0


def test_what_is_replaced_is_counted_and_named(tmp_path: Path) -> None:
    later = tmp_path / "later.txt"
    later.write_text("# lists\n10.20.0.0/16\n")
    rows: list[Any] = [("10.0.0.0/8", {"site": "a"}), ("10.20.0.0/16", {"site": "b"}), ("10.0.0.0/8", {"site": "c"})]
    table = fibula.Table.build([rows, later])
    report = table.report
    assert report is not None
    assert (report["repeated"], report["replaced"]) == (1, 1)
    first, second = report["replacements"]
    assert first.startswith("10.0.0.0/8: row 2 of ") and " replaces row 0 of " in first
    assert second.startswith(f"10.20.0.0/16: line 2 of {later} replaces row 1 of ")
    assert table.lookup("10.1.1.1") == {"prefix": "10.0.0.0/8", "site": "c"}
    with pytest.raises(fibula.SourceError, match=r"10\.0\.0\.0/8 occurs twice, on row 0 and on row 2"):
        fibula.Table.build(rows, strict=True)


def test_tags_list_the_values_of_all_sources(tmp_path: Path) -> None:
    drop = tmp_path / "drop.txt"
    drop.write_text("10.0.0.0/8\n192.0.2.0/24\n")
    rows: list[Any] = [("10.0.0.0/8", {"list": "botnet", "score": 1}), ("10.0.0.0/8", {"list": "spam", "score": 2})]
    table = fibula.Table.build([drop, rows], tags="list")
    assert table.columns == {"list": str, "score": int}
    assert table.lookup("10.1.1.1") == {"prefix": "10.0.0.0/8", "list": "drop;botnet;spam", "score": 2}
    assert table.lookup("192.0.2.1") == {"prefix": "192.0.2.0/24", "list": "drop", "score": None}
    assert table.report is not None
    assert table.report["notes"] == [f"{drop}: no column list, its values are the file's name: drop"]
    # Rows that repeat a prefix are what tags are for.
    assert len(fibula.Table.build(rows, tags="list", strict=True)) == 1
    with pytest.raises(fibula.SourceError, match='tags="origin_as"'):
        fibula.Table.build(drop, peer="all")


def test_snapshots_are_mapped_or_read_as_asked(tmp_path: Path) -> None:
    path = tmp_path / "table.fib"
    fibula.Table.build(PAIRS, output=path, load="read")
    for load in ["auto", "map", "read"]:
        assert found(fibula.Table.open(path, load=load)) == FOUND
        assert found(fibula.Table.build([path, {}], load=load)) == FOUND
    with pytest.raises(ValueError, match="auto, map or read"):
        fibula.Table.open(path, load="mmap")


def test_parquet_is_read_as_its_frame(tmp_path: Path) -> None:
    columns = {"prefix": ["10.0.0.0/8", "2001:db8::/32"], "asn": [64500, None], "latitude": [47.25, -8.5]}
    frame = pa.table({**columns, "day": [datetime.date(2024, 6, 1), None], "tag": ["007", "1"]})
    pyarrow.parquet.write_table(frame, tmp_path / "t.parquet")
    from_file, from_frame = fibula.Table.build(tmp_path / "t.parquet"), fibula.Table.build(frame)
    assert list(from_file) == list(from_frame)
    assert from_file.columns == from_frame.columns
