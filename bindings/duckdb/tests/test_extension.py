"""The extension in the real DuckDB, compared with `fibula.Table` and with an oracle of plain Python.

FIBULA_DUCKDB names the extension's file.
"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import pathlib
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import duckdb
import fibula
import pyarrow as pa
import pytest

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "duckdb.md"

_spec = importlib.util.spec_from_file_location("shared", HERE.parents[1] / "python" / "tests" / "conftest.py")
assert _spec is not None and _spec.loader is not None
shared = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(shared)


def connect(**config: Any) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": 2, **config})
    con.execute(f"LOAD '{os.environ['FIBULA_DUCKDB']}'")
    return con


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect() as con:
        yield con


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> list[Any]:
    return list(con.sql(sql).fetchall())


@pytest.fixture(scope="module")
def nested() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = shared.nested(1, 250)
    return found


@pytest.fixture(scope="module")
def file(nested: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tables") / "nested.fib"
    fibula.Table.build(nested).save(path)
    return str(path)


@pytest.fixture
def small(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "small.fib"
    fibula.Table.build(
        {
            "10.0.0.0/8": {"site": "hq", "vlan": 1},
            "10.20.0.0/16": {"site": "zürich", "vlan": 2**40},
            "2001:db8::/32": {"site": None, "vlan": None},
        }
    ).save(path)
    return str(path)


def test_answers_of_each_function(con: duckdb.DuckDBPyConnection, small: str) -> None:
    record = {"prefix": "10.20.0.0/16", "value": {"site": "zürich", "vlan": "1099511627776"}}
    assert rows(con, f"SELECT fibula('{small}', '10.20.0.1')") == [(record,)]
    assert rows(con, f"SELECT fibula('{small}', '10.20.0.1').value['vlan']::UBIGINT") == [(2**40,)]
    assert rows(con, f"SELECT fibula('{small}', '2001:db8::1')") == [({"prefix": "2001:db8::/32", "value": {}},)]
    assert rows(con, f"SELECT fibula_prefix('{small}', '10.1.2.3')") == [("10.0.0.0/8",)]
    assert rows(con, f"SELECT fibula_covering('{small}', '10.20.0.1')") == [(["10.20.0.0/16", "10.0.0.0/8"],)]
    assert rows(con, f"SELECT fibula_value('{small}', '10.20.0.1', 'site')") == [("zürich",)]
    assert rows(con, f"SELECT fibula_value('{small}', '2001:db8::1', 'site')") == [(None,)]
    assert rows(con, f"SELECT fibula_number('{small}', '10.20.0.1', 'vlan')") == [(2**40,)]
    assert rows(con, f"SELECT fibula_number('{small}', '2001:db8::1', 'vlan')") == [(None,)]
    for function in ("fibula", "fibula_prefix", "fibula_covering"):
        assert rows(con, f"SELECT {function}('{small}', '192.0.2.1') IS NULL") == [(True,)], function
    assert rows(con, f"SELECT fibula('{small}', '192.0.2.1').prefix, fibula('{small}', 'x').value['site']") == [(None, None)]


def test_types_of_addresses(con: duckdb.DuckDBPyConnection, small: str) -> None:
    found = "10.20.0.0/16"
    for address, expected in {
        "'10.20.0.1'": found, "' 10.20.0.1 '": found, "'10.20.0.1:443'": found, "'::ffff:10.20.0.1'": found,
        "169082881": found, "169082881::UINTEGER": found, "169082881::BIGINT": found, "169082881::UHUGEINT": found,
        "-1::BIGINT": None, "4294967296::BIGINT": None,
        "42540766411282592856903984951653826561::UHUGEINT": "2001:db8::/32",
        r"'\x0A\x14\x00\x01'::BLOB": found, r"'\x0A\x14\x00'::BLOB": None,
        "unhex('20010DB8000000000000000000000001')": "2001:db8::/32",
        "unhex('00000000000000000000FFFF0A140001')": found,
        "NULL": None, "''": None, "'10.20.0.0/16'": None, "'10.20.0.1/32'": found, "'[2001:db8::1]:53'": "2001:db8::/32",
    }.items():  # fmt: skip
        sql = f"SELECT fibula_prefix('{small}', {address}), fibula_prefix('{small}', a) FROM (SELECT {address} AS a)"
        assert rows(con, sql) == [(expected, expected)], address


def test_inet(con: duckdb.DuckDBPyConnection, small: str) -> None:
    """With the real type where its extension is installed, else with what that consists of."""
    texts = ["10.20.0.1", "2001:db8::1", "10.20.0.0/16", "ffff::1"]
    inet = importlib.util.find_spec("duckdb_extension_inet")
    files = [] if inet is None else list(pathlib.Path(str(inet.origin)).parent.rglob(f"v{duckdb.__version__}/*.duckdb_extension"))
    if files:
        con.execute(f"LOAD '{files[0]}'")
        values = [f"'{text}'::INET" for text in texts]
    else:
        con.execute("CREATE TYPE INET AS STRUCT(ip_type UTINYINT, address HUGEINT, mask USMALLINT)")
        values = []
        for network in map(ipaddress.ip_network, texts):
            number, family = int(network[0]), 1 if network.version == 4 else 2
            if family == 2:
                number = (number ^ 1 << 127) - (1 << 128 if not number >> 127 else 0)
            values.append(f"{{'ip_type': {family}, 'address': {number}, 'mask': {network.prefixlen}}}::INET")
    addresses = ", ".join(f"({n}, {value})" for n, value in enumerate([*values, "NULL::INET"]))
    sql = f"SELECT fibula_prefix('{small}', ip) FROM (VALUES {addresses}) t(n, ip) ORDER BY n"
    assert rows(con, sql) == [("10.20.0.0/16",), ("2001:db8::/32",), (None,), (None,), (None,)]


def test_equal_to_the_oracle(con: duckdb.DuckDBPyConnection, nested: dict[str, dict[str, Any]], file: str) -> None:
    oracle = shared.Oracle(nested)
    texts = shared.probes(nested)
    assert len(texts) > 1000
    con.register("probes", pa.table({"n": range(len(texts)), "ip": texts}))
    sql = f"SELECT ip, fibula('{file}', ip), fibula_covering('{file}', ip) FROM probes ORDER BY n"
    for ip, found, covering in rows(con, sql):
        expected = oracle.lookup(ip)
        assert (found is None) == (expected is None), ip
        if expected is not None:
            assert found["prefix"] == expected.pop("prefix"), ip
            assert found["value"] == {name: str(value) for name, value in expected.items() if value is not None}, ip
        address = ipaddress.ip_address(ip)
        address = getattr(address, "ipv4_mapped", None) or address
        assert (covering or []) == [str(network) for network in oracle.covering(address)], ip


def made(con: duckdb.DuckDBPyConnection, nested: dict[str, Any], count: int) -> None:
    """A table `flows` of addresses of both families: of the networks, of anywhere, NULL, and none."""
    con.register("ends", pa.table({"ip": shared.probes(nested)}))
    con.execute("CREATE TABLE many AS SELECT row_number() OVER () - 1 AS n, ip FROM ends")
    con.execute(f"""CREATE TABLE flows AS SELECT i, CASE WHEN i % 17 = 0 THEN NULL WHEN i % 19 = 0 THEN 'no ' || i
        WHEN i % 3 = 0 THEN concat_ws('.', hash(i) % 256, hash(i, 1) % 256, hash(i, 2) % 256, hash(i, 3) % 256)
        WHEN i % 3 = 1 THEN printf('%x:%x::%x', 8192 + hash(i) % 8192, hash(i, 1) % 65536, hash(i, 2) % 65536)
        ELSE ip END AS ip FROM range({count}) t(i) JOIN many ON n = hash(i) % {len(shared.probes(nested))}""")


def compared(con: duckdb.DuckDBPyConnection, nested: dict[str, Any], file: str, count: int) -> None:
    made(con, nested, count)
    table = fibula.Table.open(file)
    addresses = con.sql("SELECT ip FROM flows ORDER BY i").to_arrow_table().column("ip")
    expected = pa.table(table.lookup_many(addresses, add=["prefix", "covering", "asn", "name"]))
    con.register("expected", expected)
    wrong = f"""SELECT count(*), count(r.prefix), count(expected.name), sum((
            r.prefix IS DISTINCT FROM expected.prefix OR p IS DISTINCT FROM expected.prefix
            OR r.value['asn'] IS DISTINCT FROM expected.asn::VARCHAR OR a IS DISTINCT FROM expected.asn::VARCHAR
            OR u IS DISTINCT FROM expected.asn
            OR r.value['name'] IS DISTINCT FROM expected.name OR n IS DISTINCT FROM expected.name
            OR coalesce(c, []) IS DISTINCT FROM coalesce(expected.covering, []))::INT)
        FROM (SELECT fibula(f, ip) AS r, fibula_prefix(f, ip) AS p, fibula_covering(f, ip) AS c,
                fibula_value(f, ip, 'asn') AS a, fibula_number(f, ip, 'asn') AS u, fibula_value(f, ip, 'name') AS n
            FROM (SELECT '{file}' AS f, * FROM flows ORDER BY i)) POSITIONAL JOIN expected"""
    all_rows, prefixes, names, differ = con.sql(wrong).fetchall()[0]
    assert (all_rows, differ) == (count, 0)
    assert prefixes > count / 4 and names > count / 20


def test_rows_are_those_of_the_table(con: duckdb.DuckDBPyConnection, nested: dict[str, Any], file: str) -> None:
    compared(con, nested, file, 100_000)


@pytest.mark.heavy
def test_ten_million_rows(con: duckdb.DuckDBPyConnection, nested: dict[str, Any], file: str) -> None:
    compared(con, nested, file, 10_000_000)


def test_tables_may_vary(con: duckdb.DuckDBPyConnection, small: str, file: str, tmp_path: pathlib.Path) -> None:
    """By row, in any order, also more than are kept open."""
    for number in range(100):
        fibula.Table.build({"10.0.0.0/8": {"number": number}}).save(tmp_path / f"{number}.fib")
    sql = f"""SELECT i, fibula_value('{tmp_path}/' || hash(i) % 100 || '.fib', '10.1.1.1', 'number')::INT, hash(i) % 100
        FROM range(1000) t(i)"""
    assert all(found == number for _, found, number in rows(con, sql))
    sql = f"""SELECT t, fibula_prefix(t, '10.20.0.1'), fibula_value(t, '10.20.0.1', v) FROM (VALUES (1, '{small}', 'vlan'),
        (2, NULL, 'vlan'), (3, '{small}', NULL), (4, '{small}', 'site')) a(n, t, v) ORDER BY n"""
    site = [value for _, _, value in rows(con, sql)]
    assert site == ["1099511627776", None, None, "zürich"]


def test_a_replaced_table(small: str, con: duckdb.DuckDBPyConnection, tmp_path: pathlib.Path) -> None:
    """Under load, each answer is of the old table or of the new one, and the last one counts in the end."""
    path = tmp_path / "live.fib"

    def replace(version: int) -> None:
        new = tmp_path / "new.fib"
        fibula.Table.build({"0.0.0.0/0": {"version": version}, "::/0": {"version": version}}).save(new)
        os.replace(new, path)

    replace(0)
    done, seen, wrong = threading.Event(), set(), []

    def ask() -> None:
        with connect() as mine:
            while not done.is_set():
                sql = f"SELECT fibula_value('{path}', i::UINTEGER, 'version') AS v, count(*) FROM range(20000) t(i) GROUP BY v"
                for value, _ in rows(mine, sql):
                    seen.add(value)
                    if value is None:
                        wrong.append("a lost row")

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for version in range(1, 40):
        replace(version)
        time.sleep(0.02)
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong and len(seen) > 3
    assert rows(con, f"SELECT fibula_value('{path}', '1.2.3.4', 'version')") == [("39",)]


def test_routes_as_rows(con: duckdb.DuckDBPyConnection, nested: dict[str, dict[str, Any]], file: str) -> None:
    found = rows(con, f"SELECT prefix, asn, name FROM fibula_table('{file}')")
    assert sorted(found) == sorted((prefix, values["asn"], values["name"]) for prefix, values in nested.items())
    assert rows(con, f"SELECT typeof(asn), typeof(name) FROM fibula_table('{file}') LIMIT 1") == [("UBIGINT", "VARCHAR")]
    assert rows(con, f"SELECT count(*), count(name) FROM fibula_table('{file}')") == [
        (len(nested), sum(values["name"] is not None for values in nested.values()))
    ]
    joined = f"""SELECT count(*) FROM (SELECT fibula_prefix('{file}', prefix.split('/')[1]) AS p
        FROM fibula_table('{file}') WHERE prefix LIKE '%/32') JOIN fibula_table('{file}') t ON t.prefix = p"""
    assert rows(con, joined) == [(sum(prefix.endswith("/32") and ":" not in prefix for prefix in nested)
                                  + sum(prefix.endswith("/32") and ":" in prefix for prefix in nested),)]  # fmt: skip
    clash = pathlib.Path(file).with_name("clash.fib")
    fibula.Table.build({"10.0.0.0/8": {"prefix": "a", "n": 1}}).save(clash)
    assert rows(con, f"SELECT prefix, prefix_2, n FROM fibula_table('{clash}')") == [("10.0.0.0/8", "a", 1)]


def test_errors_are_those_of_sql(con: duckdb.DuckDBPyConnection, small: str, tmp_path: pathlib.Path) -> None:
    damaged = tmp_path / "damaged.fib"
    text = bytearray(pathlib.Path(small).read_bytes())
    text[len(text) // 2] ^= 0x40
    damaged.write_bytes(text)
    (tmp_path / "text.fib").write_text("10.0.0.0/8,hq\n")
    for sql, sentence in {
        f"SELECT fibula('{tmp_path}/absent.fib', '10.0.0.1')": "absent.fib: cannot open the snapshot: No such file",
        f"SELECT fibula('{tmp_path}/text.fib', '10.0.0.1')": "text.fib: not a fibula snapshot",
        f"SELECT fibula('{damaged}', '10.0.0.1')": "damaged",
        f"SELECT fibula('{tmp_path}', '10.0.0.1')": str(tmp_path),
        f"SELECT fibula_value('{small}', '10.0.0.1', 'asn')": 'no column "asn", but site, vlan',
        f"SELECT fibula_number('{small}', '10.0.0.1', 'site')": 'the column "site" has no integers',
        f"SELECT * FROM fibula_table('{tmp_path}/absent.fib')": "absent.fib: cannot open the snapshot: No such file",
        "SELECT * FROM fibula_table(NULL)": "the name of a table is missing",
        f"SELECT fibula('{small}', 1.5)": "No function matches",
        f"SELECT fibula('{small}', DATE '2026-01-01')": "",
    }.items():
        with pytest.raises(duckdb.Error) as raised:
            rows(con, sql)
        assert sentence in str(raised.value), sql
    # The connection goes on.
    assert rows(con, f"SELECT fibula_prefix('{small}', '10.0.0.1')") == [("10.0.0.0/8",)]


def test_two_databases_and_empty_columns(small: str) -> None:
    with connect() as one, connect() as two:
        for con in (one, two):
            assert rows(con, f"SELECT fibula_prefix('{small}', '10.0.0.1')") == [("10.0.0.0/8",)]
            assert rows(con, f"SELECT fibula('{small}', ip) FROM (SELECT '10.0.0.1' AS ip WHERE false)") == []
            assert rows(con, f"SELECT fibula_covering('{small}', NULL), fibula(NULL, '10.0.0.1')") == [(None, None)]


def test_the_page(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of the page run; what stands below a query is its answer."""
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    networks = re.search(r"^```csv\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert networks is not None
    fibula.Table.build(_written(tmp_path / "networks.csv", networks[1])).save("networks.fib")
    checked = 0
    with connect() as con:
        for block in re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            for statement, answer in re.findall(r"(.*?);\n((?:-- [^\n]*\n)*)", block, re.DOTALL):
                if statement.lstrip().startswith("LOAD"):
                    continue
                found = con.execute(statement).fetchall()
                if answer:
                    shown = [" | ".join("NULL" if value is None else str(value) for value in row) for row in found]
                    assert shown == [line.removeprefix("-- ") for line in answer.splitlines()], statement
                    checked += 1
    assert checked >= 5


def _written(path: pathlib.Path, text: str) -> pathlib.Path:
    path.write_text(text, encoding="utf-8")
    return path
