#!/usr/bin/env python3
"""Rates of the functions in Spark, of its catalog and registered, beside `fibula.spark` and Spark's own join, and of the jar's calls, in one run.

    FIBULA_JAR=fibula.jar FIBULA_JVM_TESTS=classes FIBULA_FLINK=jars rates.py [--rows N] [--prefixes N] [--rounds N] [--only spark|flink|jar]

The table has IPv4 prefixes that do not overlap, so that a join can give the same answers: of Spark's ways the quickest is
a broadcast hash join by the first 16 bits, with the interval as a condition. The addresses are text, half of them in
prefixes. Spark runs two executors with a core each (local-cluster), and a task's rows go to its `noop` sink. The ways
run in turns, and the median counts; what comes out is compared before anything is timed. `RunFlinkRates` says what is
measured in Flink.
"""

import argparse
import ipaddress
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import fibula
import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

sys.path.insert(0, str(Path(__file__).parent / "tests"))
import conftest as shared


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


def addresses(routes: list[tuple[int, int, int]], rows: int) -> pyarrow.Array:
    source = numpy.random.default_rng(3)
    first = numpy.array([first for first, _, _ in routes], dtype=numpy.uint32)
    keys = first[source.integers(len(routes), size=rows)] + source.integers(200, size=rows, dtype=numpy.uint32)
    keys[::2] = source.integers(2**32, size=len(keys[::2]), dtype=numpy.uint32)
    octets = [pyarrow.array(keys >> shift & 255).cast(pyarrow.string()) for shift in (24, 16, 8, 0)]
    return pyarrow.compute.binary_join_element_wise(*octets, ".")


def processor_seconds() -> float:
    """What this process and all that came from it have used of the processors, of those that ended, too."""
    parents, used = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(process.name)], used[int(process.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    while more := {process for process, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(used[process] for process in mine) / os.sysconf("SC_CLK_TCK")


def in_turns(ways: dict[str, object], rounds: int) -> dict[str, tuple[float, float]]:
    """Medians of seconds, and of seconds of the processors: the latter say more where other programs run, too."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            begin = time.perf_counter(), processor_seconds()
            way()  # type: ignore[operator]
            if turn > 0:  # the first compiles
                seconds[name].append((time.perf_counter() - begin[0], processor_seconds() - begin[1]))
    return {name: tuple(map(statistics.median, zip(*taken))) for name, taken in seconds.items()}


def in_spark(folder: Path, snapshot: Path, routes: list[tuple[int, int, int]], rows: int, rounds: int) -> None:
    import pyspark.sql.functions as F
    from fibula.spark import annotate

    made = shared.spark.__wrapped__()  # the fixture's generator
    spark = next(made)
    try:
        flows = spark.read.parquet(str(folder / "rows.parquet"))
        flows.createOrReplaceTempView("flows")
        intervals = [
            (first, first + (1 << (32 - length)) - 1, value, f"{ipaddress.IPv4Address(first)}/{length}")
            for first, length, value in routes
        ]
        columns = pyarrow.table([list(column) for column in zip(*intervals)], names=["first", "last", "asn", "prefix"])
        pyarrow.parquet.write_table(columns, folder / "intervals.parquet", compression="none")
        part = F.shiftright("first", 16).alias("part")
        table = F.broadcast(spark.read.parquet(str(folder / "intervals.parquet")).select("*", part))
        octet = F.split("ip", r"\.")
        key = sum((octet[at].cast("long") * (1 << (24 - 8 * at)) for at in range(4)), F.lit(0))
        keyed = flows.withColumn("key", key).withColumn("at", F.shiftright("key", 16))
        joined = keyed.join(table, (keyed.at == table.part) & F.col("key").between(F.col("first"), F.col("last")), "left")
        spark.sparkContext.addFile(str(snapshot))
        frames = {}
        for kind, name, function, arguments in (("value", "asn", "number", ", 'asn'"), ("prefix", "prefix", "prefix", "")):
            for form, way in ((".", "catalog"), ("_", "registered")):
                call = f"fibula{form}{function}('{snapshot.name}', ip{arguments})"
                frames[f"{kind}, {way}"] = spark.sql(f"SELECT ip, {call} AS found FROM flows")
            frames[f"{kind}, fibula.spark"] = annotate(flows, "ip", snapshot, name).withColumnRenamed(f"ip_{name}", "found")
            frames[f"{kind}, join"] = joined.select("ip", F.col(name).alias("found"))
        for kind in ("value", "prefix"):
            sums = {
                name: frame.agg(F.count("found"), F.sum(F.xxhash64("ip", "found") % 1000)).first()
                for name, frame in frames.items()
                if name.startswith(kind)
            }
            if len({str(tuple(found)) for found in sums.values()}) != 1:
                raise SystemExit(f"the answers differ, so nothing is timed: {sums}")
        ways = {name: (lambda frame=frame: frame.write.format("noop").mode("overwrite").save()) for name, frame in frames.items()}
        ways["reading alone"] = lambda: flows.write.format("noop").mode("overwrite").save()
        medians = in_turns(ways, rounds)
        print(f"Spark {spark.version}, local-cluster[2,1], {rows:,} rows, {len(routes):,} prefixes")
        for name, (median, used) in medians.items():
            catalog = medians.get(f"{name.split(',')[0]}, catalog", (median, used))
            times = f"{median / catalog[0]:6.2f} and {used / catalog[1]:6.2f} times the catalog's"
            print(f"{name:<24}{rows / median / 1e6:8.2f} M rows/s {used / rows * 1e9:8.0f} ns of a processor a row  {times}")
    finally:
        next(made, None)


def in_flink(folder: Path, snapshot: Path, routes: list[tuple[int, int, int]], rows: int, rounds: int) -> None:
    intervals = folder / "intervals.csv"
    lines = [f"{first},{first + (1 << (32 - length)) - 1},{value}\n" for first, length, value in routes]
    intervals.write_text("".join(lines))
    print(f"Flink, one process with two tasks, {rows:,} rows, {len(routes):,} prefixes", flush=True)
    arguments = ["RunFlinkRates", str(snapshot), str(intervals), str(rows), str(rounds)]
    libraries = str(Path(os.environ["FIBULA_FLINK"]) / "*")
    print(shared.java(*shared.OPENED, *arguments, libraries=libraries), end="", flush=True)


def in_the_jar(folder: Path, snapshot: Path, texts: pyarrow.Array) -> None:
    lines = folder / "lines"
    lines.write_text("\n".join(texts[:1_000_000].to_pylist()) + "\n")
    print("the jar on one thread, million addresses a second")
    for name, command in shared.javas().items():
        classes = os.pathsep.join([shared.JAR, shared.PROGRAMS])
        print(f"{name}:", flush=True)
        subprocess.run([*command, "-Xmx2g", "-cp", classes, "RunRates", str(snapshot), str(lines)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--prefixes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=["spark", "flink", "jar"])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        routes = networks(args.prefixes)
        snapshot = folder / "table.fib"
        text = [(f"{ipaddress.IPv4Address(first)}/{length}", {"asn": value}) for first, length, value in routes]
        fibula.Table.build(text).save(snapshot)
        texts = addresses(routes, args.rows)
        pyarrow.parquet.write_table(pyarrow.table({"ip": texts}), folder / "rows.parquet", args.rows // 8, compression="none")
        if args.only in (None, "jar"):
            in_the_jar(folder, snapshot, texts)
        if args.only in (None, "spark"):
            in_spark(folder, snapshot, routes, args.rows, args.rounds)
        if args.only in (None, "flink"):
            in_flink(folder, snapshot, routes, args.rows, args.rounds)


if __name__ == "__main__":
    main()
