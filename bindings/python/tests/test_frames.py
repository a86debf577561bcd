"""Frames: the same kind comes back, with columns behind its own."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import fibula
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

DATA = {"time": [1, 2, 3, 4], "src": ["10.20.0.1", None, "x", "192.0.2.1"], "dst": ["2001:db8::1", "", "::ffff:10.1.1.1", "10.20.0.1"]}
ADDED = {
    "src_prefix": ["10.20.0.0/16", None, None, None],
    "src_vlan": [20, None, None, None],
    "dst_prefix": ["2001:db8::/32", None, "10.0.0.0/8", "10.20.0.0/16"],
    "dst_vlan": [None, None, 1, 20],
}
COUNTS = {
    "src": {"rows": 4, "matched": 1, "unmatched": 1, "unparsable": 1, "empty": 1},
    "dst": {"rows": 4, "matched": 3, "unmatched": 0, "unparsable": 0, "empty": 1},
}
FRAMES: dict[str, Any] = {
    "pyarrow Table": pa.table(DATA),
    "pyarrow RecordBatch": pa.RecordBatch.from_pydict(DATA),
    "polars DataFrame": pl.DataFrame(DATA),
    "pandas DataFrame": pd.DataFrame(DATA),
    "pandas DataFrame of objects": pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in DATA.items()}),
}


def as_dict(frame: Any) -> dict[str, list[Any]]:
    if isinstance(frame, pd.DataFrame):
        found = {name: frame[name].astype(object).where(frame[name].notna(), None).tolist() for name in frame.columns}
        return {str(name): values for name, values in found.items()}
    found = frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()
    return dict(found)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("columns", [["src", "dst"], None], ids=["named", "found out"])
def test_every_kind(small: fibula.Table, kind: str, columns: list[str] | None) -> None:
    frame = FRAMES[kind]
    counts: dict[str, dict[str, int]] = {}
    found = small.annotate(frame, columns, add=["prefix", "vlan"], counts=counts)
    assert type(found) is type(frame)
    assert as_dict(found) == {**as_dict(frame), **ADDED}
    assert list(as_dict(found)) == [*DATA, *ADDED]
    assert counts == COUNTS
    # The one that was given is as it was.
    assert list(as_dict(frame)) == list(DATA)


@pytest.mark.parametrize("kind", FRAMES)
def test_what_is_refused(small: fibula.Table, kind: str) -> None:
    frame = FRAMES[kind]
    for columns, text in ((["ip"], "no column 'ip'; it has: time, src, dst"), (["src", "src"], "twice")):
        with pytest.raises(fibula.ColumnError, match=text):
            small.annotate(frame, columns)
    with pytest.raises(fibula.ColumnError, match="already has a column 'src_site'"):
        small.annotate(small.annotate(frame, "src"), "src")
    with pytest.raises(fibula.AddressError, match='row 3, column src: "x" is not an address'):
        small.annotate(frame, "src", strict=True)
    only_time = frame.select(["time"]) if not isinstance(frame, pd.DataFrame) else frame[["time"]]
    with pytest.raises(fibula.ColumnError, match="in no column of text are half of the first 1,000 values addresses"):
        small.annotate(only_time)


def test_other_frames_are_refused(small: fibula.Table) -> None:
    for frame in (DATA, [1], None, pa.array(["10.0.0.1"]), pl.Series(["10.0.0.1"])):
        with pytest.raises(TypeError, match="no frame that is known"):
            small.annotate(frame)


def test_pyarrow_types_chunks_and_metadata(small: fibula.Table) -> None:
    frame = pa.table({"ip": pa.chunked_array([["10.20.0.1"], ["10.1.1.1", None]]), "n": [1, 2, 3]})
    frame = frame.replace_schema_metadata({"from": "here"})
    found = small.annotate(frame, "ip")
    assert [len(chunk) for chunk in found["ip_vlan"].chunks] == [1, 2]
    assert found.schema.field("ip_site").type == pa.dictionary(pa.int32(), pa.string())
    assert found.schema.field("ip_vlan").type == pa.uint32()
    assert found.schema.metadata == {b"from": b"here"}
    assert found["ip"].chunk(0).buffers()[2].address == frame["ip"].chunk(0).buffers()[2].address
    assert small.annotate(frame, "ip", text="plain").schema.field("ip_site").type == pa.string()
    sliced = frame.slice(1, 2)
    assert small.annotate(sliced, "ip")["ip_vlan"].to_pylist() == [1, None]


def test_polars_types(small: fibula.Table) -> None:
    frame = pl.DataFrame(DATA)
    assert small.annotate(frame, "src").schema["src_site"] == pl.String
    assert small.annotate(frame, "src").schema["src_vlan"] == pl.UInt32
    assert isinstance(small.annotate(frame, "src", text="dictionary").schema["src_site"], pl.Categorical)
    assert small.annotate(frame[1:3], "dst")["dst_vlan"].to_list() == [None, 1]
    both = pl.concat([frame, frame], rechunk=False)
    assert small.annotate(both, "src")["src_vlan"].to_list() == ADDED["src_vlan"] * 2


def test_pandas_index_and_types(small: fibula.Table) -> None:
    frame = pd.DataFrame(DATA, index=pd.Index([7, 7, -1, 0], name="odd"))
    found = small.annotate(frame, "src")
    assert found.index.equals(frame.index) and found.index.name == "odd"
    assert [str(found[name].dtype) for name in ("src_site", "src_vlan")] == ["str", "UInt32"]
    assert str(small.annotate(frame, "src", text="dictionary")["src_site"].dtype) == "category"
    numbers = pd.DataFrame({"ip": np.array([0x0A140001, 1], dtype=np.uint32), 5: [1, 2]})
    assert small.annotate(numbers, "ip")["ip_vlan"].tolist() == [20, pd.NA]
    assert small.annotate(frame[::-1], "src")["src_vlan"].tolist() == [pd.NA, pd.NA, pd.NA, 20]


def test_names_twice(small: fibula.Table) -> None:
    frame = pa.table([pa.array(["10.0.0.1"]), pa.array([1])], names=["ip", "ip"])
    with pytest.raises(fibula.ColumnError, match="several columns 'ip'"):
        small.annotate(frame, "ip")


def test_columns_are_found_by_a_thousand_values_as_in_csv(small: fibula.Table) -> None:
    data = {
        "dash": ["-", "10.20.0.1", "10.1.1.1", None, ""],
        "host": ["10.0.0.1", "a.example", "b.example", "c.example", "d.example"],
        "half": ["x", "10.20.0.1", "", None, None],
    }
    frames = [pa.table(data), pl.DataFrame(data), pd.DataFrame(data)]
    for frame in frames:
        found = small.annotate(frame, add="vlan")
        assert list(as_dict(found)) == ["dash", "host", "half", "dash_vlan", "half_vlan"]
        assert as_dict(found)["dash_vlan"] == [None, 20, 1, None, None]
    late = pa.table({"src": ["-"] * 600 + ["10.20.0.1"] * 600})
    with pytest.raises(fibula.ColumnError, match="columns="):
        small.annotate(late)
    objects = pd.DataFrame({"ip": [ip_address("10.20.0.1"), pd.NA, 7], "n": [[1], [2], [3]]}, dtype=object)
    assert as_dict(small.annotate(objects, add="vlan"))["ip_vlan"] == [20, None, None]


def test_frames_without_rows(small: fibula.Table) -> None:
    for frame in FRAMES.values():
        none = frame[:0] if not isinstance(frame, (pa.Table, pa.RecordBatch)) else frame.slice(0, 0)
        found = small.annotate(none)
        assert type(found) is type(frame) and as_dict(found) == {"time": [], "src": [], "dst": []}
    for frame in (pa.table({"ip": pa.array([], pa.string())}), pl.DataFrame({"ip": []}, schema={"ip": pl.String}), pd.DataFrame({"ip": pd.Series([], dtype="str")})):
        found = small.annotate(frame, ["ip"])
        assert list(as_dict(found)) == ["ip", "ip_site", "ip_vlan"]
