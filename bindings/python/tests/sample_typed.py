"""What users write, for mypy --strict."""

from ipaddress import ip_address

import fibula
import fibula.duckdb
import fibula.polars
import polars as pl
import pyarrow as pa
from typing_extensions import assert_type


def use(table: fibula.Table, frame: pa.Table, other: pl.DataFrame, lazy: pl.LazyFrame) -> None:
    record = table.lookup(ip_address("10.0.0.1"))
    if record is not None:
        print(record["prefix"])
    assert_type(table.annotate(other, columns=["src"], add=["asn"]), pl.DataFrame)
    assert_type(table.annotate(lazy, columns=["src"]), pl.LazyFrame)
    assert_type(table.lookup_many(["10.0.0.1"], add="asn"), fibula.Column)
    assert_type(table.lookup_many(["10.0.0.1"], add=["asn"]), fibula.Columns)
    assert_type(table.lookup_many(["10.0.0.1"]), fibula.Columns)
    print(table.columns["asn"] is int, table.covering("10.0.0.0/8")[0]["prefix"], len(table))
    expr = fibula.polars.lookup("ip", table, add="asn")
    print(other.select(expr), table.annotate(frame, "src"))
    assert_type(pl.col("ip").fibula.lookup(table, add="asn"), pl.Expr)
    pl.col("ip").fibula.lookup(table, add=7)  # type: ignore[arg-type]
    column = table.lookup_many(["10.0.0.1"], add="asn")
    assert_type(column[:10], fibula.Column)
    print(table.lookup("10.0.0.1", "asn") == column[0], list(column))
    assert_type(fibula.devices(), fibula.DeviceList)
    for name, description in fibula.devices():
        assert_type(name, str)
        print(description)
    assert_type(table.lookup_many(["10.0.0.1"], add="asn", device="cpu"), fibula.Column)
    assert_type(table.lookup_many(["10.0.0.1"], device="cpu").on_device, int)
    assert_type(table.annotate(other, device="cpu"), pl.DataFrame)
    table.lookup_many(["10.0.0.1"], device=0)  # type: ignore[call-overload]
