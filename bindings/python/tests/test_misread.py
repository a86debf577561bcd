"""The cases of testdata/misread: tables that are easily misread, as files, and those with columns as frames, too."""

from __future__ import annotations

import csv
import json
import re
import warnings
from pathlib import Path
from typing import Any

import fibula
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

FOLDER = Path(__file__).parents[3] / "testdata/misread"
CASES: dict[str, Any] = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


def columns(case: Any) -> dict[str, list[str | None]] | None:
    """The columns of a CSV whose rows are as wide as its header, which names each of them once."""
    if not case["name"].endswith(".csv") or "lines" not in case or case.get("header") is False:
        return None
    names, *rows = csv.reader(case["lines"])
    is_table = rows and len(set(names)) == len(names) > 1 and all(len(row) == len(names) for row in rows)
    words = all(name and not name[0].isdigit() and ":" not in name for name in names)
    return {name: [row[at] or None for row in rows] for at, name in enumerate(names)} if is_table and words else None


def check(case: Any, source: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fibula.DamageWarning)
        if "records are damaged" in case.get("refused", "") and not isinstance(source, Path):
            # Rows of Python that are damaged are a warning, however many.
            report = fibula.Table.build(source).report
            assert report is not None and report["damaged"] == 3
            return
        if "refused" in case:
            with pytest.raises(fibula.FibulaError) as refused:
                fibula.Table.build(source)
            assert in_python(case["refused"]) in str(refused.value), case["why"]
            return
        table = fibula.Table.build(source)
    assert table.report is not None
    read = {record.pop("prefix"): {name: text(value) for name, value in record.items()} for record in table}
    assert read == {prefix: {name: text(value) for name, value in values.items()} for prefix, values in case["reads"].items()}, case["why"]
    notes = table.report["notes"]
    assert len(notes) == len(case["notes"]) and all(in_python(part) in note for part, note in zip(case["notes"], notes)), notes
    assert table.report["damaged"] == case["damaged"]


def in_python(text: str) -> str:
    """What a case has as the command words it, with the names that options have in Python."""
    text = re.sub(r"--key (\w+),(\w+)", r'key=("\1", "\2")', text)
    return re.sub(r"--key (\w+)", r'key="\1"', text).replace('"COLUMN"', "COLUMN")


def text(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("name", CASES)
def test_files(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    path = tmp_path / case["name"]
    data = bytes.fromhex(case["hex"]) if "hex" in case else "".join(line + "\n" for line in case["lines"]).encode()
    path.write_bytes(data)
    check(case, path)


FRAMES = [name for name, case in CASES.items() if columns(case) is not None]


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
def test_frames(name: str, make: Any) -> None:
    check(CASES[name], make(columns(CASES[name])))


def test_most_tables_are_frames_too() -> None:
    assert len(CASES) > 20 and len(FRAMES) > 8, FRAMES
