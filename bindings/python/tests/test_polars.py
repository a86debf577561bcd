"""The expression, in every way that Polars has to run it."""

from __future__ import annotations

from typing import Any

import fibula
import fibula.polars
import polars as pl
import pytest

FRAME = pl.DataFrame({"ip": ["10.20.0.1", None, "192.0.2.1", "x", "2001:db8::1"], "group": [1, 1, 2, 2, 2]})
VLANS, SITES = [20, None, None, None, None], ["zurich", None, None, None, "hq"]


def lookup(table: fibula.Table, add: Any = None, **options: Any) -> pl.Expr:
    expr: pl.Expr = pl.col("ip").fibula.lookup(table, add, **options)  # type: ignore[attr-defined]
    return expr


def test_one_column(small: fibula.Table) -> None:
    found = FRAME.with_columns(lookup(small, "vlan").alias("vlan"), lookup(small, "site").alias("site"))
    assert found["vlan"].to_list() == VLANS and found.schema["vlan"] == pl.UInt32
    assert found["site"].to_list() == SITES and found.schema["site"] == pl.String
    assert FRAME.select(lookup(small, "vlan", default=0))["ip"].to_list() == [20, None, 0, None, None]
    assert isinstance(FRAME.select(lookup(small, "site", text="dictionary")).schema["ip"], pl.Categorical)
    assert FRAME.select(fibula.polars.lookup("ip", small, "vlan"))["ip"].to_list() == VLANS


def test_struct(small: fibula.Table) -> None:
    found = FRAME.select(lookup(small, ["prefix", "vlan", "covering"]))
    assert found.schema["ip"] == pl.Struct({"prefix": pl.String, "vlan": pl.UInt32, "covering": pl.List(pl.String)})
    assert found.unnest("ip")["vlan"].to_list() == VLANS
    assert FRAME.select(lookup(small)).unnest("ip").columns == ["site", "vlan"]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazy(small: fibula.Table, engine: Any) -> None:
    lazy = FRAME.lazy().with_columns(lookup(small, "vlan").alias("vlan"))
    assert lazy.collect_schema()["vlan"] == pl.UInt32
    assert lazy.collect(engine=engine)["vlan"].to_list() == VLANS
    assert lazy.filter(lookup(small, "site") == "hq").collect(engine=engine)["ip"].to_list() == ["2001:db8::1"]
    found = small.annotate(FRAME.lazy(), ["ip"], ["prefix", "vlan"]).collect(engine=engine)
    assert found.equals(small.annotate(FRAME, ["ip"], ["prefix", "vlan"]))
    many = pl.concat([FRAME] * 5_000)
    streamed = many.lazy().select(lookup(small, "vlan")).collect(engine=engine)
    assert streamed["ip"].to_list() == VLANS * 5_000


def test_groups(small: fibula.Table) -> None:
    by = FRAME.group_by("group", maintain_order=True).agg(lookup(small, "site").alias("site"))
    assert by["site"].to_list() == [["zurich", None], [None, None, "hq"]]
    most = FRAME.with_columns(lookup(small, "vlan").max().over("group").alias("most"))
    assert most["most"].to_list() == [20, 20, None, None, None]
    counts = FRAME.group_by(lookup(small, "site").alias("site")).len().sort("site")
    assert counts.rows() == [(None, 3), ("hq", 1), ("zurich", 1)]


def test_other_types_and_no_rows(small: fibula.Table) -> None:
    numbers = pl.DataFrame({"ip": pl.Series([0x0A140001, None], dtype=pl.UInt32)})
    assert numbers.select(lookup(small, "vlan"))["ip"].to_list() == [20, None]
    assert FRAME.clear().select(lookup(small)).schema["ip"] == pl.Struct({"site": pl.String, "vlan": pl.UInt32})
    assert pl.DataFrame({"ip": [None, None]}).select(lookup(small, "vlan"))["ip"].to_list() == [None, None]


def test_what_is_refused(small: fibula.Table) -> None:
    with pytest.raises(fibula.ColumnError):
        lookup(small, "asn")
    with pytest.raises(fibula.ColumnError, match="two columns"):
        lookup(small, "prefix", prefix_form="binary")
    for columns in (None, ["nothing"], ["ip", "ip"]):
        with pytest.raises(fibula.ColumnError):
            small.annotate(FRAME.lazy(), columns)
    with pytest.raises(Exception, match='"x" is not an address'):
        FRAME.select(lookup(small, "vlan", strict=True))


def test_equal_to_the_oracle(table: fibula.Table, addresses: list[str], answers: list[Any]) -> None:
    frame = pl.DataFrame({"ip": addresses}).select(lookup(table, ["prefix", "asn"])).unnest("ip")
    assert frame["prefix"].to_list() == [answer and answer["prefix"] for answer in answers]
    assert frame["asn"].to_list() == [answer and answer["asn"] for answer in answers]


def test_a_lazy_frame_has_no_counts(small: fibula.Table) -> None:
    with pytest.raises(TypeError, match="a LazyFrame has no counts"):
        small.annotate(pl.LazyFrame({"ip": ["10.0.0.1"]}), "ip", counts={})
