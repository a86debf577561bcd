"""What the command `fibula export` writes, read by those for whom it is written."""

from __future__ import annotations

import ipaddress
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import fibula
import maxminddb
import pytest
from conftest import Oracle

Run = Callable[..., str]


@pytest.fixture
def run(command: str) -> Run:
    return lambda *args: subprocess.run([command, *args], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def snapshot(table: fibula.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The table's file, in the directory that the test is in."""
    monkeypatch.chdir(tmp_path)
    table.save("table.fib")
    return "table.fib"


def values(answer: dict[str, Any] | None) -> dict[str, Any] | None:
    """An answer without its prefix and without nulls."""
    return answer and {name: value for name, value in answer.items() if name != "prefix" and value is not None}


def test_mmdb_by_maxmind(snapshot: str, oracle: Oracle, addresses: list[str], run: Run) -> None:
    run("export", snapshot, "-o", "table.mmdb")
    # To this format, what lies in ::/96 is IPv4, and mapped addresses are IPv6.
    addresses = [text for text in addresses if "." in text or int(ipaddress.ip_address(text)) >> 32]
    addresses.remove("::ffff:10.0.0.1")
    with maxminddb.open_database("table.mmdb") as reader:
        found = {text: reader.get(text) for text in addresses}
    want = {text: values(oracle.lookup(text)) for text in addresses}
    assert len(want) > 1000
    assert {text: (found[text], want[text]) for text in addresses if found[text] != want[text]} == {}


def test_intervals_by_the_sql_of_the_help(snapshot: str, oracle: Oracle, addresses: list[str], run: Run) -> None:
    """The SQL is the one that people are shown."""
    run("export", snapshot, "--to", "intervals", "--family", "v4", "-o", "v4.parquet")
    shown = re.search(r"SELECT l\.\*.*?;", run("export", "--help"), re.DOTALL)
    assert shown is not None
    v4 = [text for text in addresses if ":" not in text]
    with duckdb.connect() as con:
        con.execute("CREATE TABLE logs (ip UINTEGER)")
        con.executemany("INSERT INTO logs VALUES (?)", [[int(ipaddress.ip_address(text))] for text in v4])
        found = dict(con.sql(shown[0]).fetchall())
    assert len(found) == len(v4) > 500
    for text in v4:
        answer = oracle.lookup(text)
        assert found[int(ipaddress.ip_address(text))] == (answer and answer["asn"]), text
