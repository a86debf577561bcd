"""Columns of every kind, against the oracle."""

from __future__ import annotations

import ipaddress
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import fibula
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

Answers = list[dict[str, Any] | None]
ADD = ["prefix", "asn", "name"]


def packed(texts: list[str]) -> list[bytes]:
    return [ipaddress.ip_address(text).packed for text in texts]


TEXTS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": iter,
    "objects": lambda texts: [ipaddress.ip_address(text) for text in texts],
    "bytes": packed,
    "pyarrow string": lambda texts: pa.array(texts),
    "pyarrow large_string": lambda texts: pa.array(texts, pa.large_string()),
    "pyarrow string_view": lambda texts: pa.array(texts, pa.string_view()),
    "pyarrow dictionary": lambda texts: pa.array(texts).dictionary_encode(),
    "pyarrow binary": lambda texts: pa.array(packed(texts)),
    "pyarrow large_binary": lambda texts: pa.array(packed(texts), pa.large_binary()),
    "pyarrow slice": lambda texts: pa.array(["x", *texts, "y"]).slice(1, len(texts)),
    "pyarrow chunks": lambda texts: pa.chunked_array([texts[:1], [], texts[1:70], texts[70:]], pa.string()),
    "polars String": lambda texts: pl.Series(texts),
    "polars Categorical": lambda texts: pl.Series(texts, dtype=pl.Categorical),
    "polars Binary": lambda texts: pl.Series(packed(texts)),
    "polars Object": lambda texts: pl.Series([ipaddress.ip_address(text) for text in texts], dtype=pl.Object),
    "pandas str": lambda texts: pd.Series(texts),
    "pandas object": lambda texts: pd.Series(texts, dtype=object),
    "pandas objects": lambda texts: pd.Series([ipaddress.ip_address(text) for text in texts]),
    "pandas string": lambda texts: pd.Series(texts, dtype="string"),
    "pandas category": lambda texts: pd.Series(texts, dtype="category"),
    "pandas category of objects": lambda texts: pd.Series([ipaddress.ip_address(t) for t in texts]).astype("category"),
    "pandas Index": lambda texts: pd.Index(texts),
    "pandas ArrowDtype": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
    "NumPy U": lambda texts: np.array(texts),
    "NumPy object": lambda texts: np.array(texts, dtype=object),
    "NumPy StringDType": lambda texts: np.array(texts, dtype=np.dtypes.StringDType()),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_text_and_bytes(table: fibula.Table, addresses: list[str], answers: Answers, kind: str) -> None:
    found = table.lookup_many(TEXTS[kind](addresses), add=ADD).to_pydict()
    for name in ADD:
        expected = [answer and answer[name] for answer in answers]
        assert found[name] == expected, name


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "ints": lambda numbers: numbers.tolist(),
    "NumPy uint32": lambda numbers: numbers.astype(np.uint32),
    "NumPy uint64": lambda numbers: numbers.astype(np.uint64),
    "NumPy int64": lambda numbers: numbers.astype(np.int64),
    "NumPy big-endian": lambda numbers: numbers.astype(">u4"),
    "NumPy every other": lambda numbers: np.repeat(numbers.astype(np.uint32), 2)[::2],
    "NumPy backwards": lambda numbers: numbers.astype(np.uint32)[::-1].copy()[::-1],
    "NumPy read-only": lambda numbers: np.frombuffer(numbers.astype(np.uint32).tobytes(), dtype=np.uint32),
    "NumPy unaligned": lambda numbers: np.frombuffer(b"x" + numbers.astype("<u4").tobytes(), dtype="<u4", offset=1),
    "NumPy rows of 4": lambda numbers: numbers.astype(">u4").view(np.uint8).reshape(-1, 4),
    "NumPy masked": lambda numbers: np.ma.MaskedArray(numbers.astype(np.uint32)),
    "pyarrow uint32": lambda numbers: pa.array(numbers.astype(np.uint32)),
    "pyarrow int64": lambda numbers: pa.array(numbers.astype(np.int64)),
    "pyarrow slice": lambda numbers: pa.array(np.append(7, numbers).astype(np.uint32)).slice(1),
    "polars UInt32": lambda numbers: pl.Series(numbers.astype(np.uint32)),
    "pandas uint32": lambda numbers: pd.Series(numbers.astype(np.uint32)),
    "pandas UInt32": lambda numbers: pd.Series(numbers.astype(np.uint32), dtype="UInt32"),
    "pandas int64": lambda numbers: pd.Series(numbers.astype(np.int64)),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers(table: fibula.Table, addresses: list[str], answers: Answers, kind: str) -> None:
    v4 = [(int(ipaddress.ip_address(t)), answer) for t, answer in zip(addresses, answers) if "." in t and ":" not in t]
    numbers = np.array([number for number, _ in v4], dtype=np.uint64)
    found = table.lookup_many(NUMBERS[kind](numbers), add=ADD).to_pydict()
    for name in ADD:
        assert found[name] == [answer and answer[name] for _, answer in v4], name


@pytest.mark.parametrize("kind", ["rows of 16", "void", "pyarrow fixed_size_binary", "pyarrow fixed_size_list"])
def test_sixteen_bytes(table: fibula.Table, addresses: list[str], answers: Answers, kind: str) -> None:
    v6 = [(ipaddress.IPv6Address(text).packed, answer) for text, answer in zip(addresses, answers) if ":" in text]
    rows = np.frombuffer(b"".join(one for one, _ in v6), dtype=np.uint8).reshape(-1, 16)
    column: Any = {
        "rows of 16": lambda: rows,
        "void": lambda: rows.copy().view("V16").reshape(-1),
        "pyarrow fixed_size_binary": lambda: pa.array([one for one, _ in v6], pa.binary(16)),
        "pyarrow fixed_size_list": lambda: pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 16).slice(3),
    }[kind]()
    expected = [answer and answer["prefix"] for _, answer in v6][-len(column) :]
    assert table.lookup_many(column, add="prefix").to_pylist() == expected


BYTES = [[10, 20, 0, 1], [10, None, 0, 1], None, [None] * 4, [10, 1, 1, 1]]
GAPS: dict[str, Any] = {
    "pyarrow": pa.array(BYTES, pa.list_(pa.uint8(), 4)),
    "pyarrow slice": pa.array([[None] * 4, *BYTES], pa.list_(pa.uint8(), 4)).slice(1),
    "polars": pl.Series(BYTES, dtype=pl.Array(pl.UInt8, 4)),
    "NumPy masked": np.ma.masked_equal(
        np.array([[7 if byte is None else byte for byte in row or [None] * 4] for row in BYTES], np.uint8), 7
    ),
}


@pytest.mark.parametrize("kind", GAPS)
def test_bytes_that_are_missing(kind: str) -> None:
    table = fibula.Table.build({"10.0.0.0/8": {"n": 1}, "10.20.0.0/16": {"n": 2}, "a00::/16": {"n": 3}})
    found = table.lookup_many(GAPS[kind], add=["n"])
    assert found["n"].to_pylist() == [2, None, None, None, 1]
    assert (found.matched, found.unparsable, found.empty) == (2, 1, 2)
    assert found.first_unparsable is not None and found.first_unparsable[0] == 1
    with pytest.raises(fibula.AddressError, match=r"row 2, .*10, (null|None), "):
        table.lookup_many(GAPS[kind], add=["n"], strict=True)


def test_bytes_that_are_missing_of_sixteen(small: fibula.Table) -> None:
    # Four that are left are no IPv4 address.
    rows: Any = [[10, 20, 0, 1] + [None] * 12, [0x20, 1, 0x0D, 0xB8] + [0] * 12]
    masked = np.ma.MaskedArray([[b or 0 for b in row] for row in rows], [[b is None for b in row] for row in rows], np.uint8)
    for column in (pa.array(rows, pa.list_(pa.uint8(), 16)), masked):
        found = small.lookup_many(column, add=["site"])
        assert (found["site"].to_pylist(), found.unparsable) == ([None, "hq"], 1)


MISSING: dict[str, Any] = {
    "list": ["10.20.0.1", None, "x", "", float("nan"), "10.1.1.1"],
    "pandas object": pd.Series(["10.20.0.1", None, "x", "", pd.NA, "10.1.1.1"], dtype=object),
    "pandas str": pd.Series(["10.20.0.1", None, "x", "", None, "10.1.1.1"]),
    "polars": pl.Series(["10.20.0.1", None, "x", " ", None, "10.1.1.1"]),
    "pyarrow": pa.array(["10.20.0.1", None, "x", "", None, "10.1.1.1"]),
    "pyarrow dictionary": pa.array(["10.20.0.1", None, "x", "", None, "10.1.1.1"]).dictionary_encode(),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_and_bad(small: fibula.Table, kind: str) -> None:
    found = small.lookup_many(MISSING[kind], add=["vlan"])
    assert found["vlan"].to_pylist() == [20, None, None, None, None, 1]
    assert (len(found), found.matched, found.unmatched, found.unparsable, found.empty) == (6, 2, 0, 1, 3)
    assert found.first_unparsable == (2, "x")
    with pytest.raises(fibula.AddressError, match=r'row 3, .*"x" is not an address'):
        small.lookup_many(MISSING[kind], add=["vlan"], strict=True)


def test_numbers_out_of_range_are_no_addresses(small: fibula.Table) -> None:
    column = small.lookup_many(np.array([0x0A140001, 2**32, -1]), add=["vlan"])
    assert (column["vlan"].to_pylist(), column.unparsable) == ([20, None, None], 2)
    # A list can hold both families: numbers from 2**32 on are IPv6.
    listed = small.lookup_many([int(ipaddress.ip_address("2001:db8::1")), -1, 2**128, b"abc"], add=["site"])
    assert (listed["site"].to_pylist(), listed.unparsable) == (["hq", None, None, None], 3)


@pytest.mark.parametrize(
    "empty",
    [
        [],
        (),
        pa.array([], pa.string()),
        pa.array([None, None]).slice(0, 0),
        pa.chunked_array([], pa.string()),
        pl.Series([], dtype=pl.String),
        pd.Series([], dtype="str"),
        np.array([], dtype=np.uint32),
        np.empty((0, 16), dtype=np.uint8),
    ],
)
def test_empty(small: fibula.Table, empty: Any) -> None:
    found = small.lookup_many(empty)
    assert len(found) == 0 and found.names == ["site", "vlan"]
    assert pa.table(found).num_rows == 0 and pa.record_batch(found).num_columns == 2
    assert pl.DataFrame(found).shape == (0, 2) and found.to_pandas().shape == (0, 2)
    assert small.lookup_many(empty, add="prefix").to_pylist() == []


def test_only_nulls(small: fibula.Table) -> None:
    for column in (pa.nulls(3), [None] * 3, pl.Series([None] * 3), pd.Series([None] * 3)):
        assert small.lookup_many(column, add="vlan").to_pylist() == [None] * 3


@pytest.mark.parametrize(
    "wrong",
    [
        "10.0.0.1",
        b"1234",
        {"a": 1},
        7,
        None,
        [1.5],
        [["10.0.0.1"]],
        [True],
        [np.array([1, 2])],
        np.array([1.5]),
        np.array([True]),
        np.zeros((2, 3), dtype=np.uint8),
        np.zeros((2, 16), dtype=np.uint32),
        np.array(["2020-01-01"], dtype="M8[D]"),
        np.array([b"10.0.0.1"]),
        pa.array([1.5]),
        pa.array([1], pa.int32()),
        pa.table({"a": ["10.0.0.1"]}),
        pl.Series([1.5]),
        pl.DataFrame({"a": ["10.0.0.1"]}),
        pd.Series([1.5]),
        pd.Series([True]),
    ],
)
def test_what_is_no_column(small: fibula.Table, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"addresses are|a column is|holds no addresses"):
        small.lookup_many(wrong)


def test_what_is_added(small: fibula.Table) -> None:
    ips = ["10.20.0.1", "192.0.2.1", None, "2001:db8::1"]
    assert small.lookup_many(ips).names == ["site", "vlan"]
    assert small.lookup_many(ips, add="covering").to_pylist() == [["10.20.0.0/16", "10.0.0.0/8"], [], None, ["2001:db8::/32"]]
    binary = small.lookup_many(ips, add=["prefix"], prefix_form="binary").to_pydict()
    v6 = ipaddress.ip_address("2001:db8::").packed
    assert binary == {"prefix": [bytes([10, 20, 0, 0]), None, None, v6], "prefix_len": [16, None, None, 32]}
    assert small.lookup_many(ips, add="vlan", default=0).to_pylist() == [20, 0, None, None]
    defaults = small.lookup_many(ips, default={"site": "nowhere", "vlan": 7}).to_pydict()
    assert defaults == {"site": ["zurich", "nowhere", None, "hq"], "vlan": [20, 7, None, None]}
    # `text` tells dictionaries from plain text, to Arrow and all that is made of it.
    assert pa.types.is_dictionary(pa.table(small.lookup_many(ips))["site"].type)
    assert pa.table(small.lookup_many(ips, text="plain"))["site"].type == pa.string()


def test_options_that_do_not_fit(small: fibula.Table) -> None:
    for error, options in (
        (fibula.ColumnError, {"add": "asn"}),
        (fibula.ColumnError, {"add": ["vlan", "vlan"]}),
        (fibula.ColumnError, {"add": "prefix", "prefix_form": "binary"}),
        (fibula.ColumnError, {"add": "prefix", "default": "none"}),
        (fibula.ColumnError, {"add": ["vlan"], "default": {"vlan": "x"}}),
        (fibula.ColumnError, {"add": ["vlan"], "default": {"site": "x"}}),
        (fibula.ColumnError, {"default": 0}),
        (fibula.ColumnError, {"default": {"vlan": 1.5}}),
        (fibula.ColumnError, {"default": {"vlan": True}}),
        (TypeError, {"default": {"vlan": [1]}}),
        (TypeError, {"add": [1]}),
        (ValueError, {"prefix_form": "cidr"}),
        (ValueError, {"text": "utf-8"}),
        (ValueError, {"threads": 0}),
    ):
        with pytest.raises(error):
            small.lookup_many(["10.0.0.1"], **options)  # type: ignore[arg-type]
    with pytest.raises(fibula.ColumnError, match="no value column \"asn\"; it has: site, vlan"):
        small.lookup_many(["10.0.0.1"], add="asn")


def test_results_are_arrow(small: fibula.Table) -> None:
    column = pa.chunked_array([["10.20.0.1"], [], ["10.1.1.1", None]])
    found = small.lookup_many(column, add=["prefix", "vlan"])
    table = pa.table(found)
    assert table.schema == pa.schema({"prefix": pa.string(), "vlan": pa.uint32()})
    assert [len(chunk) for chunk in table["vlan"].chunks] == [1, 0, 2]
    assert pa.record_batch(found).to_pydict() == table.to_pydict() == found.to_pydict()
    assert pa.array(found["vlan"]).to_pylist() == pa.chunked_array(found["vlan"]).to_pylist() == [20, 1, None]
    assert pl.Series(found["vlan"]).to_list() == [20, 1, None]
    assert pl.DataFrame(found).equals(found.to_polars())
    assert found.to_pyarrow() == table
    assert pa.array(found["vlan"], type=pa.int64()).type == pa.int64()
    assert pd.Series.from_arrow(found["vlan"]).tolist()[:2] == [20, 1]
    assert (found["vlan"].name, found["vlan"].type, len(found[1]), found[-1].name) == ("vlan", "UInt32", 3, "vlan")
    assert repr(found) == '<fibula.Columns ["prefix", "vlan"], 3 rows, 2 matched>'
    assert repr(found[0]) == '<fibula.Column "prefix": Utf8, 3 rows>'
    for error, key in ((KeyError, "asn"), (IndexError, 2), (IndexError, -3), (TypeError, 1.5)):
        with pytest.raises(error):
            found[key]  # type: ignore[index]


def test_pandas_types_with_and_without_pyarrow(small: fibula.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    found = small.lookup_many(["10.20.0.1", None], add=["prefix", "site", "vlan", "covering"])
    frames = [found.to_pandas()]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frames.append(found.to_pandas())
    for frame in frames:
        assert [str(dtype) for dtype in frame.dtypes] == ["str", "category", "UInt32", "object"]
        assert frame["vlan"].tolist() == [20, pd.NA] and frame["prefix"].isna().tolist() == [False, True]
    assert small.lookup_many(pd.Series(["10.20.0.1", None]), add="vlan").to_pylist() == [20, None]


def test_integers_are_as_wide_as_the_table_needs() -> None:
    table = fibula.Table.build({"10.0.0.0/8": {"id": 2**40}, "11.0.0.0/8": {"id": 2**64 - 1}})
    found = table.lookup_many(["10.0.0.1", "11.0.0.1"], add="id")
    assert found.type == "UInt64" and found.to_pylist() == [2**40, 2**64 - 1]
    assert table.lookup("11.0.0.1") == {"prefix": "11.0.0.0/8", "id": 2**64 - 1}


def test_threads_change_nothing(table: fibula.Table, addresses: list[str]) -> None:
    texts = (addresses * (400_000 // len(addresses) + 1))[:400_000]
    texts[333_333] = "x"
    chunks = pa.chunked_array([texts[:10], texts[10:150_000], texts[150_000:300_000], texts[300_000:], [], [None]])
    one, many = (table.lookup_many(chunks, add=[*ADD, "covering"], threads=threads) for threads in (1, 4))
    assert pa.table(one).equals(pa.table(many))
    assert [len(chunk) for chunk in pa.table(many)["asn"].chunks] == [10, 149_990, 150_000, 100_000, 0, 1]
    assert one.first_unparsable == many.first_unparsable == (333_333, "x")
    assert (one.matched, one.unmatched, one.empty) == (many.matched, many.unmatched, many.empty)
    for threads in (1, 4):
        with pytest.raises(fibula.AddressError, match="row 333334"):
            table.lookup_many(chunks, add=ADD, threads=threads, strict=True)


def test_long_arrays_come_out_in_pieces(table: fibula.Table) -> None:
    numbers = np.arange(2**21 + 5, dtype=np.uint32) * np.uint32(2039)
    found = table.lookup_many(numbers, add=["asn", "prefix"], threads=2)
    chunks = pa.table(found)["prefix"].chunks
    assert [len(chunk) for chunk in chunks] == [2**20, 2**20, 5]
    whole = pa.array(found["prefix"])
    assert len(whole) == len(numbers) and found.matched > 0
    for start in (0, 2**20 - 50, 2**21 - 50):
        part = table.lookup_many(numbers[start : start + 100], add="prefix")
        assert whole.slice(start, 100).to_pylist() == part.to_pylist()


def test_no_library_is_needed() -> None:
    """With nothing but Python's own: lists in, lists out."""
    code = """
import sys
for name in ("pyarrow", "polars", "pandas", "numpy", "duckdb"):
    sys.modules[name] = None
import fibula
table = fibula.Table.build({"10.0.0.0/8": {"site": "hq"}})
assert table.lookup_many(["10.1.1.1", None]).to_pydict() == {"site": ["hq", None]}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lists_of_addresses(small: fibula.Table) -> None:
    lists = [["10.20.0.1", "192.0.2.1"], None, [], ["x", None, "10.0.0.1"]]
    expected = [[20, None], None, [], [None, None, 1]]
    for column in (
        pa.array(lists, pa.list_(pa.string())),
        pa.chunked_array([lists[:1], lists[1:]], pa.list_(pa.string())),
        pl.Series(lists, dtype=pl.List(pl.String)),
    ):
        found = small.lookup_many(column, add=["vlan", "prefix"])
        assert found["vlan"].to_pylist() == expected
        assert found.to_pydict()["prefix"][0] == ["10.20.0.0/16", None]
        assert (found.matched, found.unmatched, found.unparsable) == (2, 1, 1)
    frame = small.annotate(pa.table({"hops": pa.array(lists, pa.list_(pa.string()))}), columns="hops", add="vlan")
    assert frame["hops_vlan"].to_pylist() == expected


def test_types_that_are_asked_for() -> None:
    table = fibula.Table.build({"10.0.0.0/8": {"asn": 4_200_000_000, "name": "a"}, "11.0.0.0/8": {"asn": 7, "name": "b"}})
    found = table.lookup_many(["10.0.0.1", "11.0.0.1", "12.0.0.1"], add=["asn", "name"])
    numbers, names = [4_200_000_000, 7, None], ["a", "b", None]
    for make in (pa.array, pa.chunked_array):
        for kind in (pa.int64(), pa.uint64(), pa.float64(), pa.uint32()):
            column = make(found["asn"], type=kind)
            assert column.type == kind and column.to_pylist() == numbers
        assert make(found["name"], type=pa.large_string()).to_pylist() == names
        # A null in place of a number that does not fit would be another answer.
        for kind in (pa.int32(), pa.int8(), pa.float32()):
            with pytest.raises(ValueError, match="column \"asn\" cannot be .*, as was asked for"):
                make(table.lookup_many(["10.0.0.1", "255.0.0.1"], add=["asn"], default={"asn": 4_199_999_999})["asn"], type=kind)
    schema = pa.schema([("asn", pa.int64()), ("name", pa.string())])
    for make in (pa.table, pa.record_batch):
        whole = make(found, schema=schema)
        assert whole.schema == schema and whole.to_pydict() == {"asn": numbers, "name": names}
        with pytest.raises(ValueError, match="column \"asn\" cannot be Int32"):
            make(found, schema=pa.schema([("asn", pa.int32()), ("name", pa.string())]))


def test_a_column_called_as_the_lengths() -> None:
    table = fibula.Table.build({"10.0.0.0/8": {"prefix_len": 99}})
    add = ["prefix", "prefix_len"]
    assert table.lookup_many(["10.0.0.1"], add=add).to_pydict() == {"prefix": ["10.0.0.0/8"], "prefix_len": [99]}
    frame = pd.DataFrame({"ip": ["10.0.0.1"]})
    for look in (
        lambda: table.lookup_many(["10.0.0.1"], add=add, prefix_form="binary"),
        lambda: table.annotate(frame, "ip", add, prefix_form="binary"),
        lambda: table.annotate(pl.DataFrame(frame).lazy(), "ip", add, prefix_form="binary"),
    ):
        with pytest.raises(fibula.ColumnError, match='two of the added columns would be called "prefix_len"'):
            look()


def test_text_that_has_no_utf_8(small: fibula.Table) -> None:
    texts = ["10.20.0.1", "\udcff", "10.1.1.1\ud800"]
    for column in (texts, pd.Series(texts, dtype=object), np.array(texts, dtype=object)):
        found = small.lookup_many(column, add=["vlan"])
        assert (found["vlan"].to_pylist(), found.unparsable) == ([20, None, None], 2)
    for ask in (small.lookup, small.covering, small.covered, small.__getitem__, small.__contains__):
        for text in ("\udcff", "10.0.0.0/8\udcff"):
            with pytest.raises(fibula.AddressError, match="\ufffd"):
                ask(text)
    with pytest.raises(fibula.ColumnError, match="in no column of text are half"):
        small.annotate(pd.DataFrame({"a": pd.Series(["\udcff"], dtype=object)}))
