"""Messages name Python's parameters, not the options of the command."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import fibula
import pandas as pd
import pytest


def plain(text: str) -> str:
    """Without commands, which stand between backquotes."""
    return re.sub(r"`[^`]*`", "", text)


def messages(source: object, **options: object) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            report = fibula.Table.build(source, **options).report  # type: ignore[arg-type]
        except fibula.FibulaError as error:
            return [str(error)]
    assert report is not None
    return [*report["notes"], *report["damage"], *(str(warning.message) for warning in seen)]


CASES = {
    "a,b\n192.0.2.0/24,10.0.0.0/8\n": "(key=COLUMN takes another)",
    "a;b\n192.0.2.0;192.0.2.255\n192.0.3.0;192.0.3.255\n": "(key=COLUMN takes the addresses alone)",
    "from it,to it,n\n1,20,x\n30,40,x\n": 'key=("from it", "to it") takes them as ranges',
    "prefix,v\n192.0.2.0/24,1\n" + "192.0.3.0/24,2\n" * 150_000 + "198.51.100.0/24,--key x\n": 'not one: "--key x"; kinds={"v": str} makes',
    "prefix,v\n192.0.2.1/24,1\n192.0.3.0/24,1\n": "(mask_host_bits=True clears them)",
    "deny,192.0.2.0/24\ndeny,192.0.3.0/24\n": 'key="2" takes column 2',
}


@pytest.mark.parametrize("text", CASES, ids=[text.split("\n")[0] for text in CASES])
def test_tables(text: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    found = messages(path)
    assert any(CASES[text] in message for message in found), found
    assert not any("--" in plain(message).replace('"--key x"', "") for message in found), found


def test_frames() -> None:
    found = messages(pd.DataFrame({"a": ["10.0.0.0", "10.0.1.0"], "b": ["10.0.0.255", "10.0.1.255"], "v": [1, 2]}))
    assert any("key=COLUMN" in message for message in found), found
    assert not any("--" in message for message in found), found


def test_options_of_building() -> None:
    twice = [("192.0.2.0/24", {"n": 1}), ("192.0.2.0/24", {"n": 2})]
    (error,) = messages(twice, strict=True)
    assert "(without strict=True)" in error
    assert "(tags=COLUMN)" in error
    report = messages([("10.0.0.0/8", {"list": "a"}), ("10.1.0.0/16", {"list": "b"})], tags="list")
    assert any("Table.covering" in note for note in report)
    assert not any("--" in plain(note) for note in report)
