"""Repeats the papers' figures (figures.toml), keeps a record of each, and writes what pages in docs show of them.

  run.py run --programs target/dist --out bench/records/CPU/DATE [NAME...]
  run.py check --programs target/debug       every program once, with little to do, for its answers
  run.py table [--write]                     compares the generated parts of pages, or writes them
  run.py draw --harness bench-harness [RECORD...]   the pictures (pictures.toml) beside their records
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from page import PAGES, STATES, generated
from pictures import draw
from records import RECORDS, ROOT, Figure, Wrong

HERE = Path(__file__).resolve().parent


def figures() -> list[Figure]:
    with open(HERE / "figures.toml", "rb") as file:
        found: list[Figure] = tomllib.load(file)["figure"]
    known = {"id", "paper", "number", "shows", "program", "args", "small", "with", "state", "differs"}
    names = [figure["id"] for figure in found]
    for figure in found:
        name = figure["id"]
        assert set(figure) <= known, f"{name}: unknown fields {set(figure) - known}"
        assert names.count(name) == 1, f"{name}: twice"
        assert figure["state"] in STATES, f"{name}: state {figure['state']!r}"
        assert (figure["state"] == "whole") == ("differs" not in figure), f"{name}: what differs, unless it is whole"
        measured = "program" in figure or figure.get("with") in names
        assert measured == (figure["state"] != "none"), f"{name}: measured, or not repeated"
    return found


def command(figure: Figure, programs: Path, options: list[str], places: dict[str, str]) -> list[str]:
    folder, name = programs, figure["program"]
    if name.startswith("example:"):
        folder, name = programs / "examples", name.removeprefix("example:")
    return [str(folder / name), *(option.format(**places) for option in options)]


def rows(figure: Figure, text: str) -> Any:
    """The output of a program: JSON, CSV as a list of rows, or the lines of a text."""
    if text.startswith(("{", "[")):
        found = json.loads(text)
        # The stamp of the command; the record has one.
        return found["rows"] if isinstance(found, dict) and "stamp" in found else found
    lines = text.splitlines()
    programs = ("bloomfwd", "compressed", "displaced", "hpbf", "planb", "worst", "example:dpcpe", "example:sail_accesses")
    if figure["program"] in programs:
        return list(csv.DictReader(io.StringIO(text)))
    return lines


def run(figure: Figure, line: list[str]) -> tuple[Any, str, float]:
    """The rows of a program, what it said, and its seconds."""
    start = time.monotonic()
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(line)}: exit code {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    found = rows(figure, done.stdout)
    if not found:
        raise RuntimeError(f"{' '.join(line)}: no rows\n{done.stderr}")
    return found, done.stderr, time.monotonic() - start


def stamp(programs: Path) -> Any:
    """On which machine, of which commit and when: as `fibula bench` says it."""
    options = ["--table", "gen:v4:2024:10:1", "--engines", "lower-bound", "--runs", "1", "--keys", "1000"]
    line = [str(programs / "fibula"), "bench", *options, "--json"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["stamp"]


def machine() -> dict[str, str]:
    """What depends on this machine: numbers of threads, and the real tables that it has, each behind a comma."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    each = sorted({cores, *(1 << power for power in range(cores.bit_length()))})
    folder = Path(os.environ.get("FIBULA_SHARED", "../shared")) / "data/tables"
    real = {family: sorted(folder.glob(f"*-{family}-*")) for family in ("v4", "v6")}
    return {
        "threads": str(cores),
        "each": ",".join(map(str, each)),
        **{f"real_{family}": "".join(f",{path}" for path in paths) for family, paths in real.items()},
    }


def measure(args: argparse.Namespace) -> int:
    chosen = figures()
    names = {figure["id"] for figure in chosen}
    if unknown := set(args.names) - names:
        print(f"no figure {sorted(unknown)}; there are {', '.join(sorted(names))}", file=sys.stderr)
        return 2
    wanted = {figure.get("with", figure["id"]) for figure in chosen if not args.names or figure["id"] in args.names}
    given = {"addresses": args.addresses, "device": args.device}
    places = {**machine(), **{name: value or "" for name, value in given.items()}}
    args.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for figure in chosen:
        name = figure["id"]
        if name not in wanted or "program" not in figure:
            if name in args.names and figure["state"] == "none":
                print(f"{name}: not repeated: {figure['differs']}")
            continue
        needed = [option for option in given if f"{{{option}}}" in figure.get("args", [])]
        if lacking := [option for option in needed if not given[option]]:
            print(f"{name}: SKIPPED: it needs --{lacking[0]}")
            continue
        line = command(figure, args.programs, figure.get("args", []), places)
        print(f"{name}: {' '.join(line)}", flush=True)
        taken = stamp(args.programs)
        try:
            found, said, seconds = run(figure, line)
        except (OSError, RuntimeError, ValueError) as error:
            print(f"{name}: FAILED: {error}", file=sys.stderr)
            failed += 1
            continue
        taken["command"] = " ".join([Path(line[0]).name, *line[1:]])
        about = {key: figure[key] for key in ("id", "paper", "number", "shows", "state", "differs") if key in figure}
        record = {"figure": about, "stamp": taken, "seconds": round(seconds, 1), "said": said, "rows": found}
        path = args.out / f"{name}.json"
        part = path.with_suffix(".part")
        part.write_text(json.dumps(record, indent=1) + "\n")
        part.replace(path)
        if isinstance(found, list) and found and isinstance(found[0], dict):
            with open(args.out / f"{name}.csv", "w", newline="") as file:
                writer = csv.DictWriter(file, list(found[0]), extrasaction="ignore")
                writer.writeheader()
                writer.writerows(found)
    return 1 if failed else 0


def check(args: argparse.Namespace) -> int:
    places, start = {"threads": "2"}, time.monotonic()
    done = 0
    for figure in figures():
        if "small" not in figure:
            continue
        line = command(figure, args.programs, figure["small"], places)
        run(figure, line)
        done += 1
    print(f"{done} programs of figures ran, in {time.monotonic() - start:.0f} s")
    return 0


def write_table(args: argparse.Namespace) -> int:
    pages = {str(path.relative_to(ROOT)): path.read_text() for path in PAGES}
    written, wrong = generated(pages, figures())
    for name in pages:
        if written[name] == pages[name]:
            continue
        if args.write:
            (ROOT / name).write_text(written[name])
        else:
            wrong.append(f"{name} is not what bench/papers and the records give: run ./dev papers --table")
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


def draw_records(args: argparse.Namespace) -> int:
    records = args.records or sorted(RECORDS.glob("*/*/*.json"))
    wrong = draw(figures(), args.harness, [path.resolve() for path in records])
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("names", nargs="*", metavar="NAME")
    one.add_argument("--programs", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--addresses", metavar="FILE,...", help="files of real addresses, for Bloomfwd's figure 4")
    one.add_argument("--device", metavar="NAME", help="an accelerator, for the figures that need one: opencl:0, cuda:0")
    one.set_defaults(run=measure)
    two = commands.add_parser("check")
    two.add_argument("--programs", type=Path, required=True)
    two.set_defaults(run=check)
    three = commands.add_parser("table")
    three.add_argument("--write", action="store_true")
    three.set_defaults(run=write_table)
    four = commands.add_parser("draw")
    four.add_argument("records", nargs="*", type=Path, metavar="RECORD", help="default: all records of figures")
    four.add_argument("--harness", type=Path, required=True, help="the program bench-harness")
    four.set_defaults(run=draw_records)
    args = parser.parse_args()
    try:
        return int(args.run(args))
    except Wrong as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
