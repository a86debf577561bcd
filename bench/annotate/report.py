"""Writes what measure.py found as one Markdown page, and says where fibula falls short of its aims.

    python report.py --data target/bench-annotate --out bench/records/CPU/DATE/annotate.md
"""

import argparse
import json
import os
import platform
from datetime import datetime, timezone
from pathlib import Path

TITLES = {
    "v4-asn": "IPv4 text to AS",
    "v4-asn-prefix": "IPv4 text to AS and matched prefix",
    "mixed-prefix": "text, half of it IPv6, to matched prefix",
    "u32-asn": "IPv4 addresses as `UInt32` to AS",
}
TRAFFIC = ["PFX", "ZIPF"]
NOTES = """\
One core, the tool and all of its threads; every round asks each tool once, and the median of {rounds} rounds stands
here. Ratios are fibula's rate to the tool's, within one run. Every answer of every tool was compared with fibula's
before, on these addresses and on random ones, of which many have no route.

PFX: prefixes of the table equally likely, with random bits behind them. ZIPF: a million such addresses by Zipf's law.

- Trees take and give Python lists; making them is not timed. Fibula takes and gives Arrow columns; with "from a list"
  the list is read by fibula, and that is timed.
- maxminddb gives the prefix of the file's tree, which may be longer than the route's, and wants text; py-radix and
  pyasn want text, too. Those jobs are left out, and so is IPv6 for the joins, which have no 128-bit keys.
- Polars and DuckDB join with {intervals} intervals that do not overlap and whose neighbours differ; with the prefix
  as a value they are {named}. Polars' rows are put back into order, DuckDB's are not.
"""
# How many times the tool's rate fibula's should be.
AIMS = {"trees": 10, "Polars, join_asof": 3}


def cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def aim(group: str, name: str):
    return None if name.startswith("fibula") else AIMS.get(group, AIMS.get(name))


def section(title: str, group: str, results: dict) -> tuple[list[str], list[str]]:
    """One group of rivals on one job: the table, and the aims that are missed."""
    lines = ["| tool | rows |" + "".join(f" {t}, M rows/s | ratio |" for t in TRAFFIC)]
    lines.append("|---|--:|" + "--:|--:|" * len(TRAFFIC))
    missed = []
    tools = {t: {tool["name"]: tool for tool in results[t]["tools"]} for t in TRAFFIC if t in results}
    for name, first in next(iter(tools.values())).items():
        line = f"| {name} | {first['rows']:,} |"
        for traffic in TRAFFIC:
            tool = tools.get(traffic, {}).get(name)
            line += f" {tool['rate'] / 1e6:.2f} | {tool['ratio']:.1f} |" if tool else " | |"
            if tool and (want := aim(group, name)) and tool["ratio"] < want:
                missed.append(f"{title}, {traffic}: {tool['ratio']:.1f} times {name}, not {want}")
        lines.append(line)
    return lines, missed


def page(data: Path) -> str:
    made = json.loads((data / "made.json").read_text())
    results: dict = {}
    versions: dict = {}
    rounds = set()
    for path in (data / "results").glob("*.json"):
        result = json.loads(path.read_text())
        results.setdefault((result["case"], result["group"]), {})[result["traffic"]] = result
        versions |= {tool["package"]: tool["version"] for tool in result["tools"]}
        rounds.add(result["rounds"])
    if not results:
        raise SystemExit(f"nothing was measured: {data / 'results'} is empty")
    now = datetime.now(timezone.utc)
    counts = made["counts"]
    lines = [
        "# Annotation beside other tools",
        "",
        f"{cpu()}, {os.cpu_count()} cores, {now:%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}.",
        f"Table: {', '.join(made['tables'])}: {counts['v4']:,} IPv4 and {counts['v6']:,} IPv6 prefixes.",
        "Versions: " + ", ".join(f"{name} {versions[name]}" for name in sorted(versions)) + ".",
        "",
        NOTES.format(
            rounds=", ".join(map(str, sorted(rounds))),
            intervals=f"{counts['intervals']:,}",
            named=f"{counts['named']:,}",
        ),
    ]
    missed: list[str] = []
    for case, title in TITLES.items():
        if any(of == case for of, _ in results):
            lines += [f"## {title[0].upper()}{title[1:]}", ""]
        for group in ("trees", "frames"):
            if (case, group) in results:
                table, short = section(title, group, results[case, group])
                lines += [*table, ""]
                missed += short
    lines.append("Aims: 10 times every tree, 3 times Polars' interval join. ")
    lines[-1] += "Missed: " + "; ".join(missed) + "." if missed else "All are met."
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    text = page(args.data)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
