"""The function in SQL."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

import fibula
import fibula.duckdb
import pyarrow as pa
import pytest

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 2}) as con:
        yield con


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    return list(con.sql(sql).fetchall())


def test_one_value_and_several(small: fibula.Table, con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE flows AS FROM (VALUES (1, '10.20.0.1'), (2, NULL), (3, 'x'), (4, '2001:db8::1')) t(id, ip)")
    fibula.duckdb.register(con, small, "vlan_of", add="vlan")
    fibula.duckdb.register(con, small, add=["prefix", "site", "covering"])
    assert rows(con, "SELECT vlan_of(ip) FROM flows ORDER BY id") == [(20,), (None,), (None,), (None,)]
    assert rows(con, "SELECT typeof(vlan_of(ip)) FROM flows LIMIT 1") == [("UINTEGER",)]
    found = rows(con, "SELECT ip_lookup(ip).prefix, ip_lookup(ip).site FROM flows ORDER BY id")
    assert found == [("10.20.0.0/16", "zurich"), (None, None), (None, None), ("2001:db8::/32", "hq")]
    assert rows(con, "SELECT ip_lookup('10.20.0.1').covering") == [(["10.20.0.0/16", "10.0.0.0/8"],)]
    assert rows(con, "SELECT ip_lookup(ip).site AS site, count(*) FROM flows GROUP BY 1 ORDER BY 1 NULLS FIRST") == [
        (None, 2), ("hq", 1), ("zurich", 1),
    ]  # fmt: skip
    assert rows(con, "SELECT vlan_of(ip) FROM flows WHERE false") == []


def test_numbers_bytes_defaults(small: fibula.Table, con: duckdb.DuckDBPyConnection) -> None:
    fibula.duckdb.register(con, small, "vlan4", add="vlan", parameter="UINTEGER", default=0)
    # A million addresses with all of 10.20.0.0/16 among them; many batches, two threads.
    first = int(ipaddress.ip_address("10.10.0.0"))
    sql = f"SELECT vlan4(({first} + i)::UINTEGER) AS vlan, count(*) FROM range(1000000) t(i) GROUP BY 1 ORDER BY 1"
    assert rows(con, sql) == [(1, 1_000_000 - 65536), (20, 65536)]
    assert rows(con, "SELECT vlan4(1::UINTEGER)") == [(0,)]
    fibula.duckdb.register(con, small, "site6", add="site", parameter="BLOB")
    assert rows(con, r"SELECT site6(unhex('20010DB8000000000000000000000001'))") == [("hq",)]


def test_strict_and_names(small: fibula.Table, con: duckdb.DuckDBPyConnection) -> None:
    fibula.duckdb.register(con, small, "strict_vlan", add="vlan", strict=True)
    with pytest.raises(duckdb.Error, match="is not an address"):
        rows(con, "SELECT strict_vlan('x')")
    with pytest.raises(fibula.ColumnError):
        fibula.duckdb.register(con, small, "no", add="asn")
    odd = fibula.Table.build({"10.0.0.0/8": {'a "b", c': 1}})
    fibula.duckdb.register(con, odd, "odd", add=['a "b", c', "prefix"])
    assert rows(con, """SELECT odd('10.0.0.1')."a ""b"", c" """) == [(1,)]


def test_results_are_tables_to_duckdb(small: fibula.Table, con: duckdb.DuckDBPyConnection) -> None:
    found = small.lookup_many(pa.array(["10.20.0.1", None]), add=["prefix", "vlan"])
    assert con.sql("SELECT * FROM found").fetchall() == [("10.20.0.0/16", 20), (None, None)]
    assert len(found) == 2


def test_equal_to_the_oracle(
    table: fibula.Table, addresses: list[str], answers: list[Any], con: duckdb.DuckDBPyConnection
) -> None:
    fibula.duckdb.register(con, table, add=["prefix", "asn"])
    probes = pa.table({"id": range(len(addresses)), "ip": addresses})
    found = con.sql("SELECT r.prefix, r.asn FROM (SELECT id, ip_lookup(ip) AS r FROM probes) ORDER BY id").fetchall()
    assert found == [(answer["prefix"], answer["asn"]) if answer else (None, None) for answer in answers]
    assert probes.num_rows == len(found)


def test_relations_are_frames(small: fibula.Table, con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE flows AS FROM (VALUES (1, '10.20.0.1'), (2, NULL), (3, 'x'), (4, '2001:db8::1')) t(id, ip)")
    counts: dict[str, Any] = {}
    found = small.annotate(con.sql("FROM flows WHERE id <> 2 ORDER BY id DESC"), "ip", ["site", "prefix"], counts=counts)
    assert isinstance(found, duckdb.DuckDBPyRelation)
    assert found.columns == ["id", "ip", "ip_site", "ip_prefix"]
    assert found.fetchall() == [
        (4, "2001:db8::1", "hq", "2001:db8::/32"),
        (3, "x", None, None),
        (1, "10.20.0.1", "zurich", "10.20.0.0/16"),
    ]
    assert counts["ip"]["unparsable"] == 1
    # It is a relation of the same connection: it goes on in SQL.
    joined = found.query("annotated_flows", "SELECT count(*) FROM annotated_flows JOIN flows USING (id)").fetchall()
    assert joined == [(3,)]
    # Columns that begin with an address are found out.
    assert small.annotate(con.sql("FROM flows"), add="vlan").columns == ["id", "ip", "ip_vlan"]


def test_no_table_of_the_connection_is_taken_for_the_rows(small: fibula.Table, con: duckdb.DuckDBPyConnection) -> None:
    for name in ("annotated", "rows", "frame", "relation", "fibula_relation"):
        con.execute(f"CREATE VIEW {name} AS SELECT 'other' AS x")
    before = rows(con, "SELECT view_name FROM duckdb_views() ORDER BY 1")
    found = small.annotate(con.sql("SELECT '10.20.0.1' AS src"), "src", "vlan")
    assert found.fetchall() == [("10.20.0.1", 20)]
    assert rows(con, "SELECT view_name FROM duckdb_views() ORDER BY 1") == before
    con.execute("SET python_enable_replacements = false")
    with pytest.raises(fibula.FibulaError, match="SET python_enable_replacements = true"):
        small.annotate(con.sql("SELECT '10.20.0.1' AS src"), "src", "vlan")


def test_relations_are_sources(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("CREATE TABLE sites AS FROM (VALUES ('10.0.0.0/8', 'hq', 1), ('10.20.0.0/16', 'zurich', NULL)) t(net, site, vlan)")
    table = fibula.Table.build(con.sql("FROM sites"), key="net")
    assert list(table) == [
        {"prefix": "10.0.0.0/8", "site": "hq", "vlan": 1},
        {"prefix": "10.20.0.0/16", "site": "zurich", "vlan": None},
    ]
