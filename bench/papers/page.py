"""The generated parts of pages: the table of figures, each paper's claims beside our records, tables of records."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from grids import grid_of, grids
from records import ROOT, Figure, Record, Wrong, newest, select

HERE = Path(__file__).resolve().parent
DOCS = ROOT / "docs"
PAGES = [DOCS / name for name in ("papers.md", "results.md", "performance.md")]
STATES = {"whole": "repeated", "part": "in part", "none": "not repeated"}
PART = re.compile(
    r"<!-- (figures|claims of [^:]+|table [^:]+): written by ./dev papers --table -->\n.*?<!-- end of \1 -->", re.DOTALL
)

Claim = dict[str, Any]


def claims(figures: list[Figure], path: Path = HERE / "claims.toml") -> dict[str, Any]:
    """Claims and pictures by paper."""
    with open(path, "rb") as file:
        found = tomllib.load(file)
    names = {figure["id"] for figure in figures}
    for paper, of_paper in found.items():
        for name in of_paper.get("pictures", []):
            if name not in names:
                raise Wrong(f"{path.name}: {paper}: no figure {name}")
        for claim in of_paper["claim"]:
            if claim.get("figure", "") not in names | {""} or not {"claim", "theirs", "ours"} <= set(claim):
                raise Wrong(f"{path.name}: {paper}: a claim has claim, theirs, ours, and a figure that exists: {claim}")
            if ("{" in claim["ours"]) != ("figure" in claim):
                raise Wrong(f"{path.name}: {paper}: numbers come from a figure, and only they do: {claim['ours']}")
    return found


def base(figures: list[Figure], name: str) -> str:
    """The figure in whose run this one is measured."""
    return str(next(figure for figure in figures if figure["id"] == name).get("with", name))


def link(path: Path) -> str:
    return os.path.relpath(path, DOCS)


def filled(claim: Claim, record: Record) -> str:
    """What a claim says of ours, with the record's numbers."""

    def value(match: re.Match[str]) -> str:
        try:
            return select(record.rows, match[1])
        except Wrong as error:
            where = record.path.relative_to(ROOT) if record.path.is_relative_to(ROOT) else record.path
            raise Wrong(f"claim {claim['claim']!r}: {where}: {{{match[1]}}}: {error}") from None

    return re.sub(r"\{([^}]*)\}", value, claim["ours"])


def claims_of(of_paper: dict[str, Any], figures: list[Figure], read: dict[str, Record | None], wrong: list[str]) -> str:
    """The table of a paper's claims, where its records were made, and its pictures. What is wrong is added to `wrong`."""
    lines = ["| claim | theirs | ours | why they differ |", "|---|---|---|---|"]
    used: dict[str, Record] = {}
    for claim in of_paper["claim"]:
        ours = claim["ours"]
        if "figure" in claim:
            name = base(figures, claim["figure"])
            record = read[name]
            if record:
                used[name] = record
                try:
                    ours = f"{filled(claim, record)} ([{name}]({link(record.path)}))"
                except Wrong as error:
                    wrong.append(str(error))
                    ours = f"its row is missing in the record ([{name}]({link(record.path)}))"
            else:
                ours = f"no record of `{name}` yet"
        lines.append(f"| {claim['claim']} | {claim['theirs']} | {ours} | {claim.get('why', '')} |")
    made: dict[str, list[str]] = {}
    for name, record in used.items():
        made.setdefault(f"{record.machine()}, {record.date()}, commit {record.commit()}", []).append(f"`{name}`")
    lines += ["", *(f"Measured on {where}: {', '.join(names)}." for where, names in made.items())]
    for name in of_paper.get("pictures", []):
        figure = next(figure for figure in figures if figure["id"] == name)
        record = read[base(figures, name)]
        if record and (picture := record.path.with_name(f"{name}.svg")).exists():
            title = f"{figure['paper']}, {figure['number'].lower()}: {figure['shows']}"
            lines += ["", f"![{title}]({link(picture)})"]
    return "\n".join(lines).rstrip("\n")


def table(figures: list[Figure], read: dict[str, Record | None]) -> str:
    """The table of all figures."""
    lines = ["| figure | shows | state | what differs | newest record |", "|---|---|---|---|---|"]
    for figure in figures:
        cells = [f"{figure['paper']} {figure['number'].lower()}, `{figure['id']}`", figure["shows"]]
        record = read[base(figures, figure["id"])]
        where = f"[{record.path.parts[-3]}, {record.path.parts[-2]}]({link(record.path)})" if record else ""
        if record and (picture := record.path.with_name(f"{figure['id']}.svg")).exists():
            where += f", [picture]({link(picture)})"
        cells += [STATES[figure["state"]], figure.get("differs", ""), where]
        lines.append(f"| {' | '.join(cells)} |")
    states = [figure["state"] for figure in figures]
    counts = ", ".join(f"{states.count(state)} {text}" for state, text in STATES.items())
    return f"{len(states)} entries: {counts}.\n\n" + "\n".join(lines)


def grid(name: str, figures: list[Figure], shown: set[Path], wrong: list[str]) -> str:
    """A table of rows of its newest record, with a link to that, and a figure's picture, once."""
    found = grids()[name]
    path = newest(found["record"])
    if not path:
        return f"No record of `{found['record']}` yet."
    record = Record(path)
    try:
        lines = grid_of(found, record)
    except Wrong as error:
        wrong.append(str(error))
        lines = f"`{path.name}` has no such rows."
    text = f"{lines}\n\n[Record]({link(path)}): {record.machine()}, {record.date()}, commit {record.commit()}."
    title = next((figure["shows"] for figure in figures if figure["id"] == found["record"]), None)
    picture = path.with_suffix(".svg")
    if title and picture not in shown and picture.exists():
        shown.add(picture)
        text += f"\n\n![{title}]({link(picture)})"
    return text


def generated(pages: dict[str, str], figures: list[Figure]) -> tuple[dict[str, str], list[str]]:
    """The pages, by name, with all of their generated parts as they should be, and what is wrong with claims."""
    of_papers = claims(figures)
    parts = {"figures", *(f"claims of {paper}" for paper in of_papers), *(f"table {name}" for name in grids())}
    paths = {figure["id"]: newest(figure["id"]) for figure in figures}
    read = {name: Record(path) if path else None for name, path in paths.items()}
    wrong: list[str] = []
    seen: list[str] = []
    shown: set[Path] = set()

    def part(match: re.Match[str]) -> str:
        name = match[1]
        seen.append(name)
        if name not in parts:
            return match[0]
        if name == "figures":
            text = table(figures, read)
        elif name.startswith("table "):
            text = grid(name.removeprefix("table "), figures, shown, wrong)
        else:
            text = claims_of(of_papers[name.removeprefix("claims of ")], figures, read, wrong)
        return f"<!-- {name}: written by ./dev papers --table -->\n{text}\n<!-- end of {name} -->"

    found = {name: PART.sub(part, page) for name, page in pages.items()}
    if sorted(seen) != sorted(parts):
        differing = sorted(parts.symmetric_difference(seen)) or "one of them twice"
        raise Wrong(f"pages have generated parts that are not defined, or lack some that are: {differing}")
    return found, wrong
