"""What is done with the columns that were added: by pandas, NumPy, Polars, and by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import fibula
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

ADDRESSES = ["10.20.0.1", "192.0.2.1", None, "10.1.1.1", "2001:db8::1", "10.20.9.9"]
VLANS = [20, None, None, 1, None, 20]
SITES = ["zurich", None, None, "hq", "hq", "zurich"]
DATED = Path(__file__).parents[3] / "testdata/snapshots/three-days.fib"


def missing_as_none(values: Any) -> list[Any]:
    return [None if value is None or value is pd.NA or value != value else value for value in values]


def flows() -> pd.DataFrame:
    """Every second row of a frame: its index is 0, 2, 4, ..."""
    twice = [address for address in ADDRESSES for _ in range(2)]
    return pd.DataFrame({"src": twice}).iloc[::2].copy()


@pytest.mark.parametrize("with_pyarrow", [True, False])
def test_the_result_has_the_index_of_the_series(
    small: fibula.Table, with_pyarrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not with_pyarrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = flows()
    frame["src"] = frame["src"].astype(object)
    found = small.lookup_many(frame["src"], add=["vlan", "site"]).to_pandas()
    assert found.index.equals(frame.index)
    frame["vlan"] = found["vlan"]
    frame["site"] = small.lookup_many(frame["src"], add="site").to_pandas()
    assert missing_as_none(frame["vlan"]) == VLANS and missing_as_none(frame["site"]) == SITES
    assert str(found["vlan"].dtype) == "UInt32" and str(found["site"].dtype) == "category"
    named = frame.set_index(pd.Index(list("aabbcc"), name="odd"))
    assert small.lookup_many(named["src"], add=["vlan"]).to_pandas().index.equals(named.index)
    # The values of an index have that index, as those of `Index.to_series`.
    index = pd.Index(["10.20.0.1", "10.1.1.1"], name="ip")
    assert small.lookup_many(index, add="vlan").to_pandas().to_dict() == {"10.20.0.1": 20, "10.1.1.1": 1}
    # What has no index gets a new one.
    assert list(small.lookup_many(frame["src"].tolist(), add="vlan").to_pandas().index) == list(range(6))


def test_the_result_of_dated_tables_has_the_index_too() -> None:
    tables = fibula.DatedTable.open(DATED)
    frame = pd.DataFrame({"ip": ["10.1.2.3"] * 2, "ts": ["2024-05-01", "2024-05-02"]}, index=[7, 3])
    frame["asn"] = tables.lookup_many(frame["ip"], frame["ts"], add=["asn"]).to_pandas()["asn"]
    assert frame["asn"].tolist() == [64501, 64503]


def test_a_column_is_assigned_by_place(small: fibula.Table) -> None:
    frame = flows()
    vlan, site = (small.lookup_many(frame["src"], add=name) for name in ("vlan", "site"))
    frame["vlan"], frame["site"] = vlan, site
    frame = frame.assign(again=vlan, plain=small.lookup_many(frame["src"], add="site", text="plain"))
    frame.insert(0, "first", vlan)
    frame.loc[:, "here"] = vlan
    for name in ("vlan", "again", "first", "here"):
        assert missing_as_none(frame[name]) == VLANS, name
    assert missing_as_none(frame["site"]) == missing_as_none(frame["plain"]) == SITES
    both = flows()
    both[["vlan", "site"]] = small.lookup_many(both["src"], add=["vlan", "site"]).to_pandas()
    assert missing_as_none(both["vlan"]) == VLANS and missing_as_none(both["site"]) == SITES
    both[["v", "s"]] = small.lookup_many(both["src"], add=["vlan", "site"])
    assert missing_as_none(both["v"]) == VLANS and missing_as_none(both["s"]) == SITES
    with pytest.raises(ValueError):
        both["one"] = small.lookup_many(both["src"], add=["vlan", "site"])
    assert missing_as_none(pd.Series(vlan)) == VLANS
    made = pd.DataFrame({"vlan": vlan, "site": site})
    assert missing_as_none(made["vlan"]) == VLANS and missing_as_none(made["site"]) == SITES
    other = pl.DataFrame({"src": ADDRESSES}).with_columns(vlan=vlan.to_polars())
    assert other["vlan"].to_list() == VLANS
    assert pl.Series(vlan).to_list() == VLANS
    assert pa.table({"src": ADDRESSES}).append_column("site", site.to_pyarrow())["site"].to_pylist() == SITES


def test_arrays_of_numpy(small: fibula.Table) -> None:
    column = small.lookup_many(["10.20.0.1", "10.1.1.1"], add="vlan")
    assert np.asarray(column).dtype == np.uint32 and np.asarray(column).tolist() == [20, 1]
    assert np.array(column, dtype=np.int64).dtype == np.int64 and (np.asarray(column) == 20).tolist() == [True, False]
    column = small.lookup_many(ADDRESSES, add="vlan")
    assert np.asarray(column).dtype == np.float64 and missing_as_none(np.asarray(column)) == VLANS
    for text in ("dictionary", "plain"):
        array = np.asarray(small.lookup_many(ADDRESSES, add="site", text=text))
        assert array.dtype == object and array.tolist() == SITES
    covering = np.asarray(small.lookup_many(["10.20.0.1", "10.20.0.2"], add="covering"))
    assert covering.shape == (2,) and covering[0] == ["10.20.0.0/16", "10.0.0.0/8"]
    with pytest.raises(ValueError, match="copy=False"):
        np.array(column, copy=False)
    columns = small.lookup_many(ADDRESSES[:2], add=["vlan", "site", "covering"])
    assert np.asarray(columns).tolist() == [[20, "zurich", ["10.20.0.0/16", "10.0.0.0/8"]], [None, None, []]]
    assert [column.name for column in columns] == ["vlan", "site", "covering"]
    assert np.asarray(small.lookup_many(["10.20.0.1"], add=["vlan"])).dtype == np.uint32
    # Fractions would round large numbers.
    large = fibula.Table.build({"10.0.0.0/8": {"id": 2**63 + 1, "on": True, "share": 1.5}})
    assert np.asarray(large.lookup_many(["10.0.0.1"], add="id")).dtype == np.uint64
    assert np.asarray(large.lookup_many(["10.0.0.1", "::"], add="id")).tolist() == [2**63 + 1, None]
    assert np.asarray(large.lookup_many(["10.0.0.1"], add="on")).tolist() == [True]
    assert np.asarray(large.lookup_many(["10.0.0.1", "::"], add="on")).tolist() == [True, None]
    chunks = small.lookup_many(pa.chunked_array([ADDRESSES[:2], [], ADDRESSES[2:]]), add="vlan")
    assert missing_as_none(np.asarray(chunks)) == VLANS
    assert np.asarray(small.lookup_many([], add="vlan")).shape == (0,)


def test_a_column_is_a_sequence(small: fibula.Table) -> None:
    for addresses in (ADDRESSES, pa.chunked_array([ADDRESSES[:2], [], ADDRESSES[2:]])):
        column = small.lookup_many(addresses, add="vlan")
        assert list(column) == VLANS and len(column) == 6 and 20 in column and 7 not in column
        for at in range(-6, 6):
            assert column[at] == VLANS[at]
        assert column[np.int64(3)] == 1
        for at in (6, -7):
            with pytest.raises(IndexError, match=f"row {at} of 6"):
                column[at]
        for part in (slice(2), slice(1, 4), slice(-3, None), slice(None, None, 2), slice(None, None, -1), slice(4, 2)):
            assert isinstance(column[part], fibula.Column) and list(column[part]) == VLANS[part]
            assert pa.chunked_array(column[part]).to_pylist() == VLANS[part]
        with pytest.raises(TypeError, match="by slice"):
            column["vlan"]  # type: ignore[call-overload]
    frame = flows()
    part = small.lookup_many(frame["src"], add="vlan")[1:3].to_pandas()
    assert list(part.index) == [2, 4]
    assert small.lookup_many(ADDRESSES, add="site").to_pyarrow().to_pylist() == SITES
    assert small.lookup_many(ADDRESSES, add="site").to_polars().name == "site"


def test_columns_are_compared_by_rows(small: fibula.Table) -> None:
    frame = pd.DataFrame({"src": ["10.20.0.1", "192.0.2.1", "10.1.1.1"]}, index=[3, 3, 9])
    vlan = small.lookup_many(frame["src"], add="vlan")
    site = small.lookup_many(frame["src"], add="site")
    assert (vlan == 20).tolist() == [True, False, False] and (vlan != 20).tolist() == [False, True, True]
    assert (site == "hq").tolist() == [False, False, True]
    assert (site == site).all() and (site == ["zurich", None, "hq"]).all()
    assert frame[vlan == 20].equals(frame.iloc[:1]) and frame[site == "hq"].equals(frame.iloc[2:])
    assert pl.DataFrame({"n": [1, 2, 3]}).filter(vlan == 20)["n"].to_list() == [1]
    assert {vlan: 1}[vlan] == 1
    assert np.array_equal(vlan.to_numpy(), np.asarray(vlan), equal_nan=True)


def test_one_value_of_one_address(small: fibula.Table) -> None:
    assert small.lookup("10.20.0.1", "vlan") == 20 and small.lookup("10.20.0.1", add="site") == "zurich"
    assert small.lookup("10.20.0.1", "prefix") == "10.20.0.0/16"
    assert small.lookup("2001:db8::1", "vlan") is None and small.lookup("192.0.2.1", "vlan") is None
    for address in ("10.20.0.1", "192.0.2.1"):
        with pytest.raises(fibula.ColumnError, match='no column "asn"; it has: prefix, site, vlan'):
            small.lookup(address, "asn")
    with pytest.raises(TypeError):
        small.lookup("10.20.0.1", ["vlan"])  # type: ignore[call-overload]
    tables = fibula.DatedTable.open(DATED)
    assert tables.lookup("10.1.2.3", "2024-05-02", "asn") == 64503
    assert tables.lookup("10.1.2.3", "2024-04-30", "asn") is None
    with pytest.raises(fibula.ColumnError, match='no column "site"'):
        tables.lookup("10.1.2.3", "2024-05-02", "site")


def test_columns_with_names_that_are_ours_keep_their_values() -> None:
    values = {"prefix": "mine", "covering": "all", "asn": 7}
    table = fibula.Table.build({"10.0.0.0/8": values})
    found = {"prefix": "10.0.0.0/8", "prefix_2": "mine", "covering_2": "all", "asn": 7}
    assert table.columns == {"prefix_2": str, "covering_2": str, "asn": int}
    assert table.lookup("10.0.0.1") == table["10.0.0.0/8"] == table.covering("10.0.0.1")[0] == found
    assert table.where(prefix_2="mine") == [found] and table.prefixes(prefix_2="other") == []
    assert table.lookup("10.0.0.1", "prefix") == "10.0.0.0/8" and table.lookup("10.0.0.1", "prefix_2") == "mine"
    many = table.lookup_many(["10.0.0.1"], add=["prefix", *table.columns])
    assert many.to_pydict() == {name: [value] for name, value in found.items()}
    assert table.lookup_many(["10.0.0.1"]).names == list(table.columns)


IMPORTS = """
import sys, threading
import pyarrow
import fibula

table = fibula.Table.build([("10.0.0.0/8", {"vlan": 1})])
failed, looked, done = [], [0], threading.Event()

def look():
    try:
        while not done.is_set():
            # pyarrow imports pandas when it makes its first array of a list.
            for column in (["10.0.0.1"], pyarrow.array(["10.0.0.1"])):
                assert table.lookup_many(column, add="vlan").to_pylist() == [1]
                looked[0] += 1
            assert table.annotate(pyarrow.table({"ip": ["10.0.0.1"]}), "ip")["ip_vlan"].to_pylist() == [1]
            assert len(fibula.Table.build(pyarrow.table({"prefix": ["10.0.0.0/8"]}))) == 1
    except BaseException as error:
        failed.append(repr(error))

threads = [threading.Thread(target=look) for _ in range(8)]
for thread in threads:
    thread.start()
for name in sys.argv[1:]:
    __import__(name)
while looked[0] < 1000 and not failed:
    done.wait(0.01)
done.set()
for thread in threads:
    thread.join()
assert not failed, f"{len(failed)} threads died: {failed[0]}"
assert looked[0]
"""


@pytest.mark.parametrize("libraries", [["pandas"], ["polars", "duckdb"], ["numpy"]])
def test_threads_look_up_while_another_imports_libraries(libraries: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS, *libraries], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
