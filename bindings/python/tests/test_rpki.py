"""Route origin validation: the columns of `rpki=`, and what is wrong with files of VRPs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import fibula
import pytest

VRPS = "ASN,IP Prefix,Max Length,Trust Anchor\nAS64500,192.0.2.0/24,24,ripe\nAS0,2001:db8::/32,32,ripe\n"
ROUTES: dict[str, dict[str, Any]] = {
    "10.0.0.0/8": {"origin_as": 64500},
    "192.0.2.0/24": {"origin_as": 64500},
    "192.0.2.0/25": {"origin_as": 64500},
    "192.0.2.128/25": {"origin_as": None},
    "2001:db8::/32": {"origin_as": 64501},
}
VALIDITY = {
    "10.0.0.0/8": ("not-found", None),
    "192.0.2.0/24": ("valid", "192.0.2.0/24-24 AS64500"),
    "192.0.2.0/25": ("invalid-length", "192.0.2.0/24-24 AS64500"),
    "192.0.2.128/25": ("invalid-origin", "192.0.2.0/24-24 AS64500"),
    "2001:db8::/32": ("invalid-origin", "2001:db8::/32-32 AS0"),
}


def validity(table: fibula.Table) -> dict[str, tuple[str, str | None]]:
    return {route["prefix"]: (route["rpki"], route["rpki_vrps"]) for route in table}


def test_columns(tmp_path: Path) -> None:
    vrps = tmp_path / "vrps.csv"
    vrps.write_text(VRPS)
    table = fibula.Table.build(ROUTES, rpki=vrps)
    assert table.columns == {"origin_as": int, "rpki": str, "rpki_vrps": str}
    assert validity(table) == VALIDITY
    assert table.prefixes(rpki="invalid-length") == ["192.0.2.0/25"]

    plain = fibula.Table.build(ROUTES)
    plain.save(tmp_path / "plain.fib")
    opened = fibula.Table.open(tmp_path / "plain.fib", rpki=[vrps])
    assert validity(opened) == VALIDITY
    # It is not what its file holds, so it is no reference to that.
    assert opened.path is None
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(opened)

    renamed = {prefix: {"asn": f"AS{values['origin_as'] or 0}"} for prefix, values in ROUTES.items()}
    assert validity(fibula.Table.build(renamed, rpki=str(vrps), origin="asn")) == VALIDITY
    stored = fibula.Table.build(ROUTES, rpki=vrps, output=tmp_path / "checked.fib")
    assert validity(stored) == validity(fibula.Table.open(tmp_path / "checked.fib")) == VALIDITY


def test_what_is_wrong(tmp_path: Path) -> None:
    vrps, bad, empty = tmp_path / "vrps.csv", tmp_path / "bad.json", tmp_path / "empty.json"
    vrps.write_text(VRPS)
    bad.write_text('{"roas": [\n{"asn": 1, "prefix": "192.0.2.0/24", "maxLength": 23}]}')
    empty.write_text('{"roas": []}')
    with pytest.raises(fibula.SourceError, match=r"bad\.json, line 2, byte \d+: VRP 1: the maximum length 23"):
        fibula.Table.build(ROUTES, rpki=bad)
    with pytest.raises(fibula.SourceError, match="no VRPs in it; .* set allow_empty=True"):
        fibula.Table.build(ROUTES, rpki=empty)
    assert {found for found, _ in validity(fibula.Table.build(ROUTES, rpki=empty, allow_empty=True)).values()} == {"not-found"}
    with pytest.raises(FileNotFoundError, match="none.csv"):
        fibula.Table.build(ROUTES, rpki=tmp_path / "none.csv")
    with pytest.raises(fibula.ColumnError, match="no column asn with the origin of routes; there are: origin_as; origin=... names the column"):
        fibula.Table.build(ROUTES, rpki=vrps, origin="asn")
    with pytest.raises(fibula.ColumnError, match='column origin_as: "CH" is no AS number'):
        fibula.Table.build({"10.0.0.0/8": {"origin_as": "CH"}}, rpki=vrps)
    with pytest.raises(TypeError, match="layer"):
        fibula.Table.build(layers={"a": ROUTES}, rpki=vrps)


def test_a_column_called_rpki_keeps_its_values(tmp_path: Path) -> None:
    vrps = tmp_path / "vrps.csv"
    vrps.write_text(VRPS)
    rows = {"192.0.2.0/24": {"origin_as": 64500, "rpki": "by hand"}}
    table = fibula.Table.build(rows, rpki=vrps)
    route = next(iter(table))
    assert route["rpki_2"] == "by hand" and route["rpki"] != "by hand"
    assert table.report is not None and any("rpki_2" in note for note in table.report["notes"])
