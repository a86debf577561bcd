"""Frames of ranges as sources."""

from __future__ import annotations

import ipaddress
import random
from pathlib import Path
from typing import Any

import fibula
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

RANGES: dict[str, Any] = {
    "start": ["10.0.0.0", "10.20.0.3", "2001:db8::"],
    "end": ["10.255.255.255", "10.20.0.12", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"],
    "site": ["hq", "zurich", "hq"],
    "vlan": [1, 20, None],
}


@pytest.mark.parametrize("kind", ["pyarrow", "polars", "pandas", "duckdb", "addresses", "named"])
def test_ranges(kind: str) -> None:
    frames: dict[str, Any] = {
        "pyarrow": pa.table(RANGES),
        "polars": pl.DataFrame(RANGES),
        "pandas": pd.DataFrame(RANGES),
        "addresses": pd.DataFrame({**RANGES, "end": [ipaddress.ip_address(end) for end in RANGES["end"]]}),
        "named": pa.table(RANGES).rename_columns(["a", "b", "site", "vlan"]),
    }
    if kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        rows = pa.table(RANGES)
        frames[kind] = duckdb.connect().from_arrow(rows)
    table = fibula.Table.build(frames[kind], key=("a", "b") if kind == "named" else None)
    assert table.columns == {"site": str, "vlan": int}
    assert table.report is not None and table.report["damaged"] == 0
    first, last = (int(ipaddress.ip_address(end)) for end in ("10.20.0.3", "10.20.0.12"))
    for address in range(first - 2, last + 3):
        found = table.lookup(str(ipaddress.ip_address(address)))
        assert found is not None
        assert (found["site"], found["vlan"]) == (("zurich", 20) if first <= address <= last else ("hq", 1))
    assert table.lookup("2001:db8::1") == {"prefix": "2001:db8::/32", "site": "hq", "vlan": None}


def test_ranges_that_are_none() -> None:
    rows = {"start": ["10.0.0.9", "10.0.0.1", "x", "10.0.0.0"], "end": ["10.0.0.1", "::1", "10.0.0.1", "10.0.0.3"]}
    with pytest.warns(fibula.DamageWarning, match="3 damaged records"):
        table = fibula.Table.build(pl.DataFrame(rows))
    assert table.prefixes() == ["10.0.0.0/30"]
    # The inner one counts, wherever it stands.
    nested = {"start": ["10.0.0.4", "10.0.0.1"], "end": ["10.0.0.7", "10.0.0.8"], "site": ["inner", "outer"]}
    inner = fibula.Table.build(pl.DataFrame(nested))
    assert [record["site"] for record in inner] == ["outer", "outer", "inner", "outer"]
    # Ranges come first, as in text, and a note says that there are prefixes beside them.
    both = fibula.Table.build(pa.table({"start": ["10.0.0.0"], "end": ["10.0.0.3"], "prefix": ["192.0.2.0/24"]}))
    assert both.prefixes() == ["10.0.0.0/30"]
    assert both.report is not None and len(both.report["notes"]) == 1
    with pytest.raises(fibula.ColumnError, match="no column 'to'"):
        fibula.Table.build(pl.DataFrame(rows), key=("start", "to"))


def test_ranges_that_overlap_in_part_are_read_as_in_text(tmp_path: Path) -> None:
    source = random.Random(5)
    first = int(ipaddress.ip_address("10.0.0.0"))
    for case in range(20):
        rows = []
        for name in range(source.randrange(2, 9)):
            start = first + source.randrange(60)
            rows.append((start, start + source.choice([0, 3, 9, 30, source.randrange(40)]), f"r{name}"))
        texts = [(str(ipaddress.ip_address(start)), str(ipaddress.ip_address(end)), name) for start, end, name in rows]
        path = tmp_path / f"{case}.csv"
        path.write_text("start,end,name\n" + "".join(",".join(row) + "\n" for row in texts))
        text = fibula.Table.build(path)
        for frame in (pd.DataFrame(texts, columns=["start", "end", "name"]), pa.table(dict(zip(("start", "end", "name"), zip(*rows))))):
            assert list(fibula.Table.build(frame)) == list(text), rows
        for address in range(first, first + 100):
            within = [(end - start, -at, name) for at, (start, end, name) in enumerate(rows) if start <= address <= end]
            found = text.lookup(address)
            assert (found and found["name"]) == (min(within)[2] if within else None), (address, rows)
    told = fibula.Table.build(pl.DataFrame({"start": ["10.0.0.0", "10.0.0.1"], "end": ["10.0.0.127", "10.0.1.0"], "w": ["narrow", "wide"]}))
    assert told.lookup("10.0.0.5") == {"prefix": "10.0.0.0/25", "w": "narrow"}
    assert told.report is not None and told.report["notes"] == [
        "frame: ranges that overlap an earlier one in part (the narrower counts, of two as wide the later): 1"
    ]


def test_damaged_ranges_have_the_numbers_of_their_rows() -> None:
    frame = pl.DataFrame({"start": ["10.0.0.1", "x", "10.0.0.9", "10.0.0.0"], "end": ["10.0.0.250", "10.0.0.1", "10.0.0.1", "::1"]})
    with pytest.warns(fibula.DamageWarning):
        table = fibula.Table.build(frame)
    assert table.report is not None
    assert table.report["damage"] == [
        'frame, row 1: not an address, a prefix or a range: "x" to "10.0.0.1"',
        'frame, row 2: the range ends before it starts: "10.0.0.9" to "10.0.0.1"',
        'frame, row 3: the range\'s ends are of different families: "10.0.0.0" to "::1"',
    ]
    assert table.report["sources"][0] == {"name": "frame", "format": "python", "records": 4, "routes": 1, "damaged": 3}
    with pytest.raises(fibula.SourceError, match="frame, row 1: "):
        fibula.Table.build(frame, strict=True)
    with pytest.raises(fibula.SourceError, match="on row 0 and on row 1"):
        fibula.Table.build(pl.DataFrame({"start": ["10.0.0.0"] * 2, "end": ["10.0.0.3"] * 2}), strict=True)
    # Mapped addresses are those that they stand for; a range around them is not.
    ends = pl.DataFrame({"start": ["::ffff:10.0.0.0", "::fffe:0:0"], "end": ["::ffff:10.0.0.3", "::ffff:9.255.255.255"], "n": [1, 2]})
    assert fibula.Table.build(ends[:1]).prefixes() == ["10.0.0.0/30"]
    assert fibula.Table.build(ends).prefixes(n=1) == ["10.0.0.0/30"]
