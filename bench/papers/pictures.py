"""The pictures of figures, from records and pictures.toml; `bench-harness chart` draws them."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from records import Figure, Record, Row, Wrong, matching

HERE = Path(__file__).resolve().parent
KNOWN = {"figure", "kind", "where", "x", "y", "places", "series", "names", "theirs", "band", "inverse", "scale"}
KNOWN |= {"x_label", "y_label", "x_log", "y_log", "x_number"}

Picture = dict[str, Any]


def pictures(figures: list[Figure]) -> list[Picture]:
    with open(HERE / "pictures.toml", "rb") as file:
        found: list[Picture] = tomllib.load(file)["picture"]
    names = {figure["id"] for figure in figures}
    for picture in found:
        if unknown := set(picture) - KNOWN:
            raise Wrong(f"pictures.toml: {picture['figure']}: unknown fields {sorted(unknown)}")
        if picture["figure"] not in names:
            raise Wrong(f"pictures.toml: no figure {picture['figure']}")
    return found


def short(value: Any) -> str:
    """A number of prefixes, bytes or the like, or a table, as the name of a place."""
    if isinstance(value, str) and "/" in value[:-2]:
        return Path(value).name.split(".")[0]
    if not isinstance(value, int) or value < 1000:
        return str(value)
    for unit, name in ((2**20, " Mi"), (2**10, " Ki"), (10**6, "M"), (1000, "k")):
        if value % unit == 0:
            return f"{value // unit}{name}"
    return f"{value / 1000:.0f}k" if value >= 10_000 else str(value)


def ours(picture: Picture, rows: list[Row]) -> list[tuple[str, Any, Row]]:
    """Name of the series, place, and row of each point."""
    chosen = matching(rows, shlex.split(picture.get("where", "")))
    names = picture.get("names", {})
    if "places" in picture:
        placed = [(place, row) for place, found in picture["places"] for row in matching(chosen, shlex.split(found))]
    else:
        placed = [(row[picture["x"]], row) for row in chosen if picture["x"] in row]
    if picture.get("x_number"):
        numbered = [(re.search(r"[0-9]+", str(place)), row) for place, row in placed]
        placed = [(int(number[0]), row) for number, row in numbered if number]
    found = []
    for place, row in placed:
        values = {column: names.get(str(value), short(value)) for column, value in row.items()}
        found.append((picture["series"].format_map(values), names.get(str(place), place), row))
    return found


def chart(figure: Figure, picture: Picture, record: Record) -> dict[str, Any]:
    """The description that the harness draws."""
    points = [point for point in ours(picture, record.rows) if scaled(picture, point[2].get(picture["y"])) is not None]
    if not points:
        raise Wrong("the record has no row for the picture")
    named = picture["kind"] == "bars"
    theirs = picture.get("theirs", [])
    names = list(dict.fromkeys(place for _, place, _ in points)) if named else []
    names += [point[0] for series in theirs for point in series["points"] if named and point[0] not in names]
    colours: dict[str, int] = {}
    series: dict[str, dict[str, Any]] = {}
    y: str = picture["y"]
    # The paper's error bars, where the record has them.
    has_intervals = all(f"{y}_ci95" in row for _, _, row in points)
    for name, place, row in points:
        new = {"name": name, "colour": colours.setdefault(name, len(colours)), "points": []}
        value = row[y]
        spread = [row.get(f"{y}_min"), row.get(f"{y}_max")]
        if has_intervals:
            value, half = row[f"{y}_mean"], row[f"{y}_ci95"]
            spread = [value - half, value + half]
        ends = sorted(end for end in (scaled(picture, end) for end in spread) if end is not None)
        at = names.index(place) if named else place
        to = series.setdefault(name, new)["points"]
        if any(point["x"] == at for point in to):
            raise Wrong(f"two rows for {name!r} at {place}: their difference is in neither `series` nor `where`")
        to.append({"x": at, "y": scaled(picture, value), "range": ends if len(ends) == 2 else None})
    for each in theirs:
        colour = colours.setdefault(each.get("like", each["name"]), len(colours))
        to = [given(point, names) for point in each["points"]]
        series[f"theirs: {each['name']}"] = {
            "name": f"{each['name']} (paper)",
            "is_theirs": True,
            "colour": colour,
            "points": to,
        }
    for each in series.values():
        each["points"].sort(key=lambda point: point["x"])
    bands = [
        {
            "name": f"{band['name']} (paper)",
            "colour": colours.setdefault(band.get("like", band["name"]), len(colours)),
            "range": band["range"],
        }
        for band in picture.get("band", [])
    ]
    about = f"ours: {record.machine()}, {record.date()}, commit {record.commit()}"
    if any(point["range"] for each in series.values() if "is_theirs" not in each for point in each["points"]):
        about += (
            "; means with 95 % confidence intervals"
            if has_intervals
            else "; medians, thin lines from the slowest to the fastest round"
        )
    notes = [
        about,
        record.device(),
        "" if theirs or bands or figure["paper"] == "New" else "the paper's text gives no point of this figure",
    ]
    return {
        "title": f"{figure['paper']}, {figure['number'].lower()}: {figure['shows']}",
        "notes": [note for note in notes if note],
        "kind": picture["kind"],
        "x": {
            "label": picture["x_label"],
            "is_log": picture.get("x_log", False),
            "names": [short(name) for name in names],
        },
        "y": {"label": picture["y_label"], "is_log": picture.get("y_log", False)},
        "series": list(series.values()),
        "bands": bands,
    }


def scaled(picture: Picture, value: Any) -> float | None:
    if not isinstance(value, (int, float)) or value <= 0 and ("inverse" in picture or picture.get("y_log")):
        return None
    return float(picture["inverse"] / value if "inverse" in picture else value * picture.get("scale", 1.0))


def given(point: list[Any], names: list[str]) -> dict[str, Any]:
    """A paper's point: x and y, or x and a range."""
    at = names.index(point[0]) if names else point[0]
    return {"x": at, "y": point[1], "range": None} if len(point) == 2 else {"x": at, "y": None, "range": point[1:]}


def draw(figures: list[Figure], harness: Path, records: list[Path]) -> list[str]:
    """Draws the pictures of these records beside them; what went wrong."""
    wrong = []
    for picture in pictures(figures):
        figure = next(figure for figure in figures if figure["id"] == picture["figure"])
        for path in records:
            if path.stem != figure.get("with", figure["id"]):
                continue
            target = path.with_name(f"{figure['id']}.svg")
            try:
                with tempfile.TemporaryDirectory() as folder:
                    what = Path(folder) / f"{figure['id']}.json"
                    what.write_text(json.dumps(chart(figure, picture, Record(path))))
                    line = [str(harness), "chart", str(what), str(target)]
                    done = subprocess.run(line, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise Wrong(done.stderr.strip())
            except (Wrong, KeyError) as error:
                wrong.append(f"{target.name} of {path.parent.parent.name}/{path.parent.name}: {error}")
    return wrong
