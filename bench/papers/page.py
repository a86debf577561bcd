"""The generated parts of docs/papers.md: the table of figures, and for each paper its claims beside our records."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from records import ROOT, Figure, Record, Wrong, newest, select

HERE = Path(__file__).resolve().parent
PAGE = ROOT / "docs/papers.md"
STATES = {"whole": "repeated", "part": "in part", "none": "not repeated"}
PART = re.compile(
    r"<!-- (figures|claims of [^:]+): written by ./dev papers --table -->\n.*?<!-- end of \1 -->", re.DOTALL
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
    return os.path.relpath(path, PAGE.parent)


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


def generated(page: str, figures: list[Figure]) -> tuple[str, list[str]]:
    """The page with all of its generated parts as they should be, and what is wrong with claims."""
    of_papers = claims(figures)
    paths = {figure["id"]: newest(figure["id"]) for figure in figures}
    read = {name: Record(path) if path else None for name, path in paths.items()}
    wrong: list[str] = []
    seen: list[str] = []

    def part(match: re.Match[str]) -> str:
        name = match[1]
        seen.append(name)
        paper = name.removeprefix("claims of ")
        if name != "figures" and paper not in of_papers:
            return match[0]
        text = table(figures, read) if name == "figures" else claims_of(of_papers[paper], figures, read, wrong)
        return f"<!-- {name}: written by ./dev papers --table -->\n{text}\n<!-- end of {name} -->"

    found = PART.sub(part, page)
    if sorted(seen) != sorted(["figures", *(f"claims of {paper}" for paper in of_papers)]):
        raise Wrong(f"{PAGE.name} has the parts {seen}: it needs `figures`, and `claims of` each paper of claims.toml")
    return found, wrong
