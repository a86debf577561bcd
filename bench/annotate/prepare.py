"""Makes what is measured with: one table in the form that each tool reads, and addresses that hit it.

    python prepare.py --fibula target/release/fibula --out target/bench-annotate [TABLE...]

TABLE is anything of the form PREFIX TAB ASN that `fibula build` reads, or gen:v4:YEAR:COUNT:SEED.
What lies there already, from the same tables and as many rows, is used again.
"""

import argparse
import json
import os
import subprocess
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet

REAL = ["ipfire-libloc-20221029-v4-asn.tsv.xz", "ipfire-libloc-20221029-v6-asn.tsv.xz"]
GENERATED = ["gen:v4:2024:900000:1", "gen:v6:2024:200000:1"]
TRAFFIC = ["PFX", "ZIPF"]


def default_tables() -> list[str]:
    """The real table where it is there, else a generated one in the shape of the Internet's."""
    real = [Path(os.environ.get("FIBULA_SHARED", "../shared")) / "data/tables" / name for name in REAL]
    return [str(path) for path in real] if all(path.exists() for path in real) else GENERATED


def make_table(fibula, out: Path, tables: list[str]) -> None:
    sources = []
    for at, table in enumerate(tables):
        if table.startswith("gen:"):
            text = out / f"generated-{at}.tsv"
            fibula("gen", "table", table, "-o", text)
            table = str(text)
        sources.append(table)
    fibula("build", "--names", "prefix,asn", *sources, "-o", out / "table.fib")
    fibula("export", out / "table.fib", "-o", out / "table.tsv")
    fibula("export", out / "table.fib", "-o", out / "table.mmdb")
    fibula("export", out / "table.fib", "--to", "intervals", "--family", "v4", "-o", out / "v4.parquet")
    # Intervals that tell the prefix: it is a value here as the AS is.
    with open(out / "table.tsv") as table, open(out / "named.tsv", "w") as named:
        next(table)
        for line in table:
            prefix, asn = line.rstrip("\n").split("\t")
            named.write(f"{prefix}\t{asn}\t{prefix}\n")
    names = ["--names", "prefix,asn,matched", "--header", "no"]
    fibula("export", *names, out / "named.tsv", "--to", "intervals", "--family", "v4", "-o", out / "v4-named.parquet")


def count(out: Path) -> dict[str, int]:
    with open(out / "table.tsv") as table:
        families = [":" in line for line in table][1:]
    intervals = {"intervals": "v4.parquet", "named": "v4-named.parquet"}
    counts = {what: pyarrow.parquet.read_metadata(out / name).num_rows for what, name in intervals.items()}
    return {"v4": families.count(False), "v6": families.count(True), **counts}


def make_addresses(fibula, out: Path, traffic: str, rows: int) -> None:
    columns = {}
    for family, count in [("v4", rows), ("v6", rows // 2)]:
        text = out / f"{traffic}.txt"
        fibula("gen", "traffic", "--table", out / "table.fib", "--traffic", traffic, "--family", family,
               "--count", count, "-o", text)  # fmt: skip
        columns[family] = text.read_text().split()
        text.unlink()
    write_addresses(out / traffic, columns["v4"], columns["v6"])


def write_addresses(path: Path, v4: list[str], v6: list[str]) -> None:
    """PATH-v4.arrow, and PATH-mixed.arrow: as many rows, half of them IPv6, in no order."""
    mixed = v4[: len(v4) - len(v6)] + v6
    order = numpy.random.default_rng(1).permutation(len(mixed))
    for name, column in [("v4", pyarrow.array(v4)), ("mixed", pyarrow.array(mixed).take(order))]:
        pyarrow.feather.write_feather(pyarrow.table({"ip": column}), f"{path}-{name}.arrow")


def make_random(out: Path, rows: int) -> None:
    """Addresses of the whole space, to be compared and not timed: many of them have no route."""
    random = numpy.random.default_rng(2)
    v4 = [str(IPv4Address(random.bytes(4))) for _ in range(rows)]
    v6 = [str(IPv6Address(b"\x20" + random.bytes(15))) for _ in range(rows // 2)]
    write_addresses(out / "random", v4, v6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--fibula", required=True, help="the command")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=10_000_000)
    args = parser.parse_args()
    tables = args.tables or default_tables()
    made = {"tables": [Path(table).name for table in tables], "rows": args.rows}
    note = args.out / "made.json"
    if note.exists() and made.items() <= json.loads(note.read_text()).items():
        return
    args.out.mkdir(parents=True, exist_ok=True)
    note.unlink(missing_ok=True)

    def fibula(*words) -> str:
        command = [args.fibula, *map(str, words)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    make_table(fibula, args.out, tables)
    for traffic in TRAFFIC:
        make_addresses(fibula, args.out, traffic, args.rows)
    make_random(args.out, min(args.rows, 200_000))
    note.write_text(json.dumps(made | {"counts": count(args.out)}))


if __name__ == "__main__":
    main()
