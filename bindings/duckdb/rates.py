#!/usr/bin/env python3
"""Rates of the extension beside the function of the Python package and DuckDB's own join, in one run.

    FIBULA_DUCKDB=fibula.duckdb_extension rates.py [--rows N] [--prefixes N] [--threads N] [--rounds N] [--json]

The table has IPv4 prefixes that do not overlap, so that a join of intervals (ASOF, DuckDB's quickest) gives the same
answers; the addresses are text, half of them in prefixes. Each way aggregates its answers, so that no client has to take
them, and what comes out is compared before anything is timed. The ways run in turns; the median counts.
"""

import argparse
import ipaddress
import json
import os
import pathlib
import platform
import random
import statistics
import tempfile
import time

import duckdb
import fibula
import fibula.duckdb


def networks(count: int) -> list[tuple[int, int, int]]:
    """First address, length, value of prefixes that do not overlap, of the lengths that routing tables have."""
    source, found, at = random.Random(7), [], 1 << 24
    while len(found) < count and at < 223 << 24:
        length = source.choices([16, 19, 20, 21, 22, 23, 24], [1, 1, 2, 2, 6, 6, 30])[0]
        size = 1 << (32 - length)
        at = (at + size - 1) // size * size + size * source.randrange(3)
        found.append((at, length, source.randrange(1, 70000)))
        at += size
    return found


def ways(con: duckdb.DuckDBPyConnection, file: str) -> dict[str, str]:
    """Queries whose answers are the same: how many rows have a value, and their sum."""
    fibula.duckdb.register(con, fibula.Table.open(file), "by_function", add="asn")
    fibula.duckdb.register(con, fibula.Table.open(file), "prefix_by_function", add="prefix")
    octets = " + ".join(f"octet[{at + 1}] * {1 << (24 - 8 * at)}::UINTEGER" for at in range(4))
    keys = f"SELECT {octets} AS key FROM (SELECT string_split(ip, '.')::UINTEGER[] AS octet FROM flows)"
    inside = "CASE WHEN key <= last THEN"
    joined = f"FROM ({keys}) ASOF LEFT JOIN intervals ON key >= first"
    number = "SELECT count(v), sum(v::UINTEGER) FROM"
    text = "SELECT count(p), sum(length(p)) FROM"
    return {
        "value, extension": f"{number} (SELECT fibula_number('{file}', ip, 'asn') AS v FROM flows)",
        "value, Python function": f"{number} (SELECT by_function(ip) AS v FROM flows)",
        "value, ASOF join": f"{number} (SELECT {inside} asn END AS v {joined})",
        "prefix, extension": f"{text} (SELECT fibula_prefix('{file}', ip) AS p FROM flows)",
        "prefix, Python function": f"{text} (SELECT prefix_by_function(ip) AS p FROM flows)",
        "prefix, ASOF join": f"{text} (SELECT {inside} prefix END AS p {joined})",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--prefixes", type=int, default=500_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = str(pathlib.Path(folder) / "table.fib")
        con = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": args.threads})
        con.execute(f"LOAD '{os.environ['FIBULA_DUCKDB']}'")
        routes = networks(args.prefixes)
        text = [f"{ipaddress.IPv4Address(first)}/{length}" for first, length, _ in routes]
        fibula.Table.build([(prefix, {"asn": value}) for prefix, (_, _, value) in zip(text, routes)]).save(file)
        con.execute("CREATE TABLE intervals (first UINTEGER, last UINTEGER, asn UINTEGER, prefix VARCHAR)")
        with open(f"{folder}/intervals.csv", "w", encoding="ascii") as out:
            for prefix, (first, length, value) in zip(text, routes):
                out.write(f"{first},{first + (1 << (32 - length)) - 1},{value},{prefix}\n")
        con.execute(f"COPY intervals FROM '{folder}/intervals.csv'")
        con.execute(f"""CREATE TABLE flows AS SELECT concat_ws('.', k >> 24, k >> 16 & 255, k >> 8 & 255, k & 255) AS ip
            FROM (SELECT CASE WHEN i % 2 = 0 THEN hash(i) % (1::UBIGINT << 32) ELSE first + hash(i, 1) % 200 END AS k
            FROM range({args.rows}) t(i) JOIN (SELECT row_number() OVER () - 1 AS n, first FROM intervals)
            ON n = hash(i) % {len(routes)})""")
        queries = ways(con, file)
        answers = {name: con.sql(query).fetchall() for name, query in queries.items()}
        for kind in ("value", "prefix"):
            of_kind = {name: found for name, found in answers.items() if name.startswith(kind)}
            if len(set(map(str, of_kind.values()))) != 1:
                raise SystemExit(f"the answers differ, so nothing is timed: {of_kind}")
        seconds: dict[str, list[float]] = {name: [] for name in queries}
        for _ in range(args.rounds):
            for name, query in queries.items():
                begin = time.perf_counter()
                con.sql(query).fetchall()
                seconds[name].append(time.perf_counter() - begin)
        medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    if args.json:
        print(json.dumps({"duckdb": duckdb.__version__, "rows": args.rows, "prefixes": len(routes), "seconds": seconds}))
        return
    print(f"DuckDB {duckdb.__version__}, {platform.machine()}, {args.threads} threads, {args.rows:,} rows, {len(routes):,} prefixes")
    for name, median in medians.items():
        ratio = median / medians[f"{name.split(',')[0]}, extension"]
        print(f"{name:<26}{args.rows / median / 1e6:8.2f} M rows/s  {ratio:6.2f} times the extension's time")


if __name__ == "__main__":
    main()
