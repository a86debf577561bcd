"""Routes by prefix, by number and by value, and tables written for other tools."""

from __future__ import annotations

import csv
import errno
import ipaddress
from pathlib import Path
from typing import Any

import fibula
import maxminddb
import numpy as np
import pyarrow.parquet
import pytest

Rows = dict[str, dict[str, Any]]


def order(prefix: str) -> tuple[int, int, int]:
    network = ipaddress.ip_network(prefix)
    return network.version, int(network.network_address), network.prefixlen


def records(rows: Rows) -> list[dict[str, Any]]:
    return [{"prefix": prefix, **rows[prefix]} for prefix in sorted(rows, key=order)]


def test_iteration_gives_all_routes(table: fibula.Table, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = records(rows)
    assert list(table) == expected
    # Pieces that end within a family, and at its end.
    four = sum(ipaddress.ip_network(prefix).version == 4 for prefix in rows)
    for size in (1, 7, four, len(rows), len(rows) + 1):
        monkeypatch.setattr("fibula._routes._AT_ONCE", size)
        assert list(table) == expected, size


def test_items(table: fibula.Table, rows: Rows, addresses: list[str], answers: list[Any]) -> None:
    for prefix, values in rows.items():
        assert prefix in table
        assert table[prefix] == {"prefix": prefix, **values}
        assert table[ipaddress.ip_network(prefix)]["prefix"] == prefix
        network = ipaddress.ip_network(prefix)
        if network.prefixlen > 0 and str(network.supernet()) not in rows:
            assert str(network.supernet()) not in table
            with pytest.raises(KeyError):
                table[str(network.supernet())]
    for text, answer in zip(addresses, answers):
        assert (text in table) == (answer is not None)
        if answer is not None:
            assert table[ipaddress.ip_address(text)] == answer


@pytest.mark.parametrize("bad", ["", "x", "10.0.0.1/8", "10.0.0.0/33", b"abc"])
def test_no_key(small: fibula.Table, bad: Any) -> None:
    with pytest.raises(fibula.AddressError):
        small[bad]
    with pytest.raises(fibula.AddressError):
        bad in small  # noqa: B015


def test_where(table: fibula.Table, rows: Rows) -> None:
    every = records(rows)
    assert table.where(asn=64500) == [record for record in every if record["asn"] == 64500]
    assert table.where({"asn": "AS64500"}) == table.where(asn=64500)
    assert table.where(asn=None) == [record for record in every if record["asn"] is None]
    some = [record for record in every if record["asn"] == 64500 and record["name"] in ("n7", "a, b")]
    assert some and table.where(asn=64500, name=["n7", "a, b"]) == some
    assert table.where({"asn": 64500}, name={"n7", "a, b"}) == some
    assert table.where() == every
    assert table.where(name="nobody") == []
    for bad in ({"nope": 1}, {"asn": "x"}, {"asn": ""}, {"asn": -1}, {"asn": []}):
        with pytest.raises(fibula.ColumnError):
            table.where(bad)


def test_no_value_and_empty_text() -> None:
    table = fibula.Table.build({"10.0.0.0/8": {"s": None}, "11.0.0.0/8": {"s": ""}, "12.0.0.0/8": {"s": "x"}})
    assert table.prefixes(s=None) == ["10.0.0.0/8"]
    assert table.prefixes(s="") == ["11.0.0.0/8"]
    assert table.prefixes(s=[None, "", "x"]) == table.prefixes()


def test_prefixes_of_an_as(table: fibula.Table, rows: Rows) -> None:
    of = [prefix for prefix in sorted(rows, key=order) if rows[prefix]["asn"] == 64500]
    assert len(of) > 100
    assert table.prefixes(asn=64500) == of
    networks = [ipaddress.ip_network(prefix) for prefix in of]
    for kind in (ipaddress.IPv4Network, ipaddress.IPv6Network):
        expected = ipaddress.collapse_addresses([network for network in networks if isinstance(network, kind)])
        merged = [ipaddress.ip_network(prefix) for prefix in table.prefixes(asn=64500, aggregate=True)]
        assert [network for network in merged if isinstance(network, kind)] == list(expected)
    assert table.prefixes() == sorted(rows, key=order)


def test_export(table: fibula.Table, rows: Rows, tmp_path: Path, addresses: list[str], answers: list[Any]) -> None:
    text = tmp_path / "table.csv"
    table.export(text)
    with text.open(newline="") as file:
        read = {row["prefix"]: row for row in csv.DictReader(file)}
    assert {prefix: row["asn"] for prefix, row in read.items()} == {
        prefix: "" if values["asn"] is None else str(values["asn"]) for prefix, values in rows.items()
    }
    parquet = tmp_path / "table.parquet"
    table.export(parquet)
    assert pyarrow.parquet.read_table(parquet).to_pylist() == records(rows)
    table.export(tmp_path / "table.mmdb", mmdb_type="test")
    with maxminddb.open_database(tmp_path / "table.mmdb") as reader:
        assert reader.metadata().database_type == "test"
        for address, answer in zip(addresses, answers):
            if ":" in address and address.startswith("::"):
                continue  # the format has IPv4 there
            found = reader.get(address)
            asn = found.get("asn") if isinstance(found, dict) else None
            assert asn == (answer or {}).get("asn"), address
    intervals = tmp_path / "v4.parquet"
    table.export(intervals, "intervals", family="v4")
    assert pyarrow.parquet.read_table(intervals).column_names == ["start", "end", "asn", "name"]
    for wrong in ({"format": "intervals"}, {"format": "nope"}, {"format": "intervals", "family": "v5"}):
        with pytest.raises(fibula.FibulaError):
            table.export(tmp_path / "x", **wrong)
    with pytest.raises(ValueError, match="ending"):
        table.export(tmp_path / "table.xyz")
    nowhere = tmp_path / "no" / "such" / "folder.csv"
    with pytest.raises(FileNotFoundError) as missing:
        table.export(nowhere)
    assert (missing.value.errno, missing.value.filename) == (errno.ENOENT, str(nowhere))


def test_fractions_and_booleans(tmp_path: Path) -> None:
    source = tmp_path / "sites.csv"
    source.write_text("prefix,lat,on,version\n10.0.0.0/8,47.25,true,1.10\n10.1.0.0/16,-8,false,2.0\n11.0.0.0/8,,,\n")
    table = fibula.Table.build(source)
    assert table.columns == {"lat": float, "on": bool, "version": str}
    assert table["10.1.2.3"] == {"prefix": "10.1.0.0/16", "lat": -8.0, "on": False, "version": "2.0"}
    assert table.where(on=True)[0]["prefix"] == "10.0.0.0/8"
    # As numbers, however they are written.
    for asked in (-8.0, -8, "-8.00", [1.5, -8.0], np.float64(-8)):
        assert [record["prefix"] for record in table.where(lat=asked)] == ["10.1.0.0/16"], asked
    assert [record["prefix"] for record in table.where(lat=47.25)] == ["10.0.0.0/8"]
    assert [record["prefix"] for record in table.where(lat=None, on=None)] == ["11.0.0.0/8"]
    assert table.where(version="2") == [], "text is text"
    found = table.lookup_many(["10.0.0.1", "10.1.0.1", "11.0.0.1", "x"], add=["lat", "on"], default={"lat": 0.5})
    assert found.to_pydict() == {"lat": [47.25, -8.0, None, None], "on": [True, False, None, None]}
    as_pyarrow = found.to_pyarrow()
    assert [str(field.type) for field in as_pyarrow.schema] == ["double", "bool"]
    assert fibula.Table.build(source, kinds={"lat": str}).columns["lat"] is str
    told = fibula.Table.build(source, kinds={"version": float})
    assert told["11.0.0.1"]["version"] is None and told["10.0.0.1"]["version"] == 1.1
