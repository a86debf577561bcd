"""The records of figures as rows, and one number out of a row.

A selection is `COLUMN CONDITION...`, and gives the number in that column of the only row for which all conditions hold:
`mlps engine=dxr18 traffic=RND`. A condition is `column=value`, `column=value|value`, `column!=value`, or `column=max`
and `column=min` for the rows with the largest or smallest number. Before the column may stand

  min, max, range   of all rows for which the conditions hold
  best NAME         the column NAME of the row with the largest number
  ratio             of two rows, with `/` between their conditions: `ratio mlps engine=a / engine=b`
  ratio ... by X    for each value of the column X: a range, or with min or max before it one number

and after the conditions `as KiB`, `as MiB`, `as MB`, `as %`, `as int`, or `as 4` for so many decimals. Conditions after
`where` hold on both sides of a ratio.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "bench/records"
UNITS = {"KiB": 1 / 1024, "MiB": 1 / 2**20, "MB": 1e-6, "%": 100.0, "int": 1.0}

Figure = dict[str, Any]
Row = dict[str, Any]


class Wrong(Exception):
    """What is wrong with a claim, a picture or a record, for a person."""


class Record:
    """A record of a figure: where it is, its stamp, and its rows, with numbers as numbers."""

    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text())
        self.path, self.stamp = path, content["stamp"]
        self.rows: list[Row] = as_rows(path.stem, content["rows"])
        self.said: str = content.get("said", "")

    def machine(self) -> str:
        processor = self.stamp["processor"]
        vendor = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}.get(processor["vendor"], processor["vendor"])
        return f"{vendor} family {processor['family']} model {processor['model']}, {processor['cores']} cores"

    def device(self) -> str:
        """The accelerator in words, as the program named it; empty if there was none."""
        names = {f"{row['device']} is " for row in self.rows if row.get("device")}
        return next((line for line in self.said.splitlines() if any(line.startswith(name) for name in names)), "")

    def commit(self) -> str:
        commit = self.stamp["commit"]
        return f"{commit['id'][:8]}{' with changes' if commit['is_dirty'] else ''}" if commit else "unknown"

    def date(self) -> str:
        return str(self.stamp["date"])[:10]


def newest(name: str, records: Path = RECORDS) -> Path | None:
    """The newest record of a figure."""
    found = sorted(records.glob(f"*/*/{name}.json"), key=lambda path: (path.parent.name, path))
    return found[-1] if found else None


def as_rows(name: str, rows: Any) -> list[Row]:
    readers = {
        "dxr-t1": of_dxr_paper_tables,
        "dxr-f2": of_stats,
        "dxr-f7": of_updates_by_length,
        "sail-f6": of_sail_on_chip,
    }
    found = readers[name](rows) if name in readers else rows
    # The shares of a cooperative run.
    found = [{**row, **share} for row in found for share in row.get("split") or [{}]]
    return [{column: value_of(value) for column, value in row.items()} for row in found]


def value_of(value: Any) -> Any:
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", value):
        return float(value) if re.search(r"[.e]", value) else int(value)
    return value


def of_stats(rows: Any) -> list[Row]:
    """`fibula stats`: a row a length."""
    return [{"length": int(length), "prefixes": count} for length, count in rows["v4"]["lengths"].items()]


def of_dxr_paper_tables(lines: list[str]) -> list[Row]:
    """The example dxr_paper_tables: rows of `what` sizes, steps and times, by table and k."""
    rows: list[Row] = []
    table = ""
    for line in lines:
        if title := re.fullmatch(r"(\S.*): [0-9]+ prefixes, [0-9]+ next hops", line):
            table = title[1].split(",")[0]
        elif times := re.match(r" (\d+) +(\d+) steps, *\d+ keys: +([\d.]+) +([\d.]+)", line):
            of_both = {"branching": times[3], "batches": times[4]}
            head = {"what": "times", "table": table, "k": times[1], "steps": times[2]}
            rows += [{**head, "search": search, "ns": ns} for search, ns in of_both.items()]
        elif cells := re.match(r" (\d+)  (paper|ours) +(\S.*)", line):
            numbers, head = cells[3].split(), {"table": table, "k": cells[1], "of": cells[2]}
            if len(numbers) == 8:
                rows += [{"what": "steps", **head, "steps": at, "share": share} for at, share in enumerate(numbers)]
            else:
                names = ("bytes", "full_chunks", "short", "long", "build_ms")
                rows.append({"what": "sizes", **head, **dict(zip(names, numbers, strict=True))})
        elif per := re.match(r" (\d+)  bytes a range in the range table: paper ([\d.]+), ours ([\d.]+)", line):
            for of, value in (("paper", per[2]), ("ours", per[3])):
                rows.append({"what": "bytes a range", "table": table, "k": per[1], "of": of, "bytes_per_range": value})
    return rows


def of_updates_by_length(lines: list[str]) -> list[Row]:
    """The example updates_by_length: a row a length and engine, and one over all lengths."""
    engines = next(line for line in lines if line.startswith("length changes")).split()[2:]
    rows: list[Row] = []
    for line in lines:
        if found := re.match(r" *(/\d+|all|most) +(\d+) +(\S.*)", line):
            of_each = zip(engines, found[3].split(), strict=True)
            rows += [{"length": found[1].lstrip("/"), "engine": engine, "us": us} for engine, us in of_each]
    return rows


def of_sail_on_chip(lines: list[str]) -> list[Row]:
    """The example sail_on_chip: a row a table and scheme, in megabytes of 2^20 bytes."""
    rows: list[Row] = []
    group = ""
    for line in lines:
        if found := re.match(r"(\S.*?) {2,}(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)$", line):
            of_each = dict(zip(("SAIL_L", "PBF", "SAIL_U", "SAIL_B"), found.groups()[2:6], strict=True))
            year = re.search(r"generated, (20\d\d)|_(20\d\d)\d{4}|-(20\d\d)\d{4}", found[1])
            head = {"group": group, "table": found[1], "year": next(filter(None, year.groups())) if year else ""}
            rows += [{**head, "prefixes": found[2], "scheme": name, "mb": mb} for name, mb in of_each.items()]
            rows.append({**head, "prefixes": found[2], "scheme": "probes of PBF", "probes": found[7]})
        elif line and not line.startswith(("on-chip", "at most", "paper")):
            group = line.split(":")[0]
    return rows


def matching(rows: list[Row], conditions: list[str]) -> list[Row]:
    """The rows for which all conditions hold."""
    found, extremes = rows, []
    for condition in conditions:
        parts = re.fullmatch(r"(\w+)(!?=)(.*)", condition)
        if not parts:
            raise Wrong(f"{condition!r} is no condition like column=value")
        column, sign, wanted = parts.groups()
        if not any(column in row for row in rows):
            raise Wrong(f"no column {column}")
        if wanted in ("min", "max"):
            extremes.append((column, min if wanted == "min" else max))
            continue
        values = wanted.lower().split("|")
        found = [row for row in found if column in row and (str(row[column]).lower() in values) == (sign == "=")]
    # Of the rows that the other conditions leave.
    for column, extreme in extremes:
        numbers = [row[column] for row in found if isinstance(row.get(column), (int, float))]
        found = [row for row in found if numbers and row.get(column) == extreme(numbers)]
    return found


def numbers(rows: list[Row], column: str, conditions: list[str]) -> list[tuple[float, Row]]:
    said = " ".join(conditions) or "no conditions"
    found = matching(rows, conditions)
    if not found:
        raise Wrong(f"no row for {said}")
    if absent := [row for row in found if not isinstance(row.get(column), (int, float))]:
        raise Wrong(f"no number {column!r} in a row for {said}: {absent[0]}")
    return [(float(row[column]), row) for row in found]


def only(rows: list[Row], column: str, conditions: list[str]) -> float:
    found = numbers(rows, column, conditions)
    if len(found) > 1:
        raise Wrong(f"{len(found)} rows for {' '.join(conditions) or 'no conditions'}, not one")
    return found[0][0]


def select(rows: list[Row], selection: str) -> str:
    """What a selection gives, as text."""
    words = shlex.split(selection)
    unit = words.pop() if len(words) > 2 and words[-2] == "as" else None
    if unit:
        words.pop()
        if unit not in UNITS and not unit.isdigit():
            raise Wrong(f"{unit} is no unit ({', '.join(UNITS)}) and no number of decimals")
    fold = words.pop(0) if words[0] in ("min", "max", "range") else None
    if words[0] == "best":
        _, name, column, *conditions = words
        # Cases that were refused have no number.
        measured = [row for row in rows if isinstance(row.get(column), (int, float))]
        return str(max(numbers(measured, column, conditions), key=lambda found: found[0])[1][name])
    if words[0] == "ratio":
        found = ratios(rows, words[1:])
        fold = fold or ("range" if "by" in words else None)
    elif fold:
        found = [value for value, _ in numbers(rows, words[0], words[1:])]
    else:
        found = [only(rows, words[0], words[1:])]
    factor = UNITS.get(unit or "int", 1.0)
    after = f" {unit}" if unit in ("KiB", "MiB", "MB", "%") else ""
    decimals = 0 if unit == "int" else int(unit) if unit and unit.isdigit() else None
    texts = [text(value * factor, decimals) for value in (min(found), max(found))]
    if fold == "range" and texts[0] != texts[1]:
        return f"{texts[0]} to {texts[1]}{after}"
    return texts[0 if fold == "min" else 1] + after


def ratios(rows: list[Row], words: list[str]) -> list[float]:
    """The ratios of `COLUMN CONDITION... / CONDITION... [by COLUMN] [where CONDITION...]`."""
    by, both = "", []
    if "where" in words:
        at = words.index("where")
        words, both = words[:at], words[at + 1 :]
    if "by" in words:
        at = words.index("by")
        words, by = words[:at], words[at + 1]
    if words.count("/") != 1:
        raise Wrong("a ratio has one / between its conditions")
    at = words.index("/")
    column, above, below = words[0], words[1:at] + both, words[at + 1 :] + both
    if not by:
        return [only(rows, column, above) / only(rows, column, below)]
    keys = list(dict.fromkeys(row[by] for row in matching(rows, above) if by in row))
    if not keys:
        raise Wrong(f"no row with {by} for {' '.join(above)}")
    return [only(rows, column, [*above, f"{by}={key}"]) / only(rows, column, [*below, f"{by}={key}"]) for key in keys]


def text(value: float, decimals: int | None = None) -> str:
    """Three digits, or all of a whole number, or so many decimals; thousands have commas."""
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    if abs(value) >= 1000:
        return f"{round(value):,}"
    if value == int(value):
        return str(int(value))
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 4
    return f"{value:.{digits}f}"
