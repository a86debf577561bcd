"""Draws the ports of SAIL_L clock by clock, for docs/hardware.md: `python tests/waves.py`. Three keys go in; the output
is not taken for two clocks; the word of level 16 that the second and the third key read is written between them."""

import os
import sys
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

SIGNALS = (
    "in_valid",
    "in_key",
    "write_enable",
    "write_word",
    "out_ready",
    "in_ready",
    "out_valid",
    "out_key",
    "out_level",
    "out_bit",
    "out_address",
)
# Which signal says that a field holds something.
FIELDS = {
    "in_key": "in_valid",
    "write_word": "write_enable",
    "out_key": "out_valid",
    "out_level": "out_valid",
    "out_bit": "out_valid",
    "out_address": "out_valid",
}
KEYS = {1: 0x0A020304, 2: 0x0A010909, 4: 0x0A010909}
CLOCKS = 12


@cocotb.test()
async def waves(dut):
    rows = {name: [] for name in SIGNALS}
    for name in (
        "in_valid",
        "in_key",
        "write_enable",
        "write_memory",
        "write_address",
        "write_word",
        "out_ready",
        "rst",
    ):
        getattr(dut, name).value = 0
    cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
    dut.rst.value = 1
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    await FallingEdge(dut.clk)
    for clock in range(CLOCKS):
        dut.in_valid.value = clock in KEYS
        dut.in_key.value = KEYS.get(clock, 0)
        dut.write_enable.value = clock == 2
        dut.write_memory.value = 0
        dut.write_address.value = 0x0A01 if clock == 2 else 0
        dut.write_word.value = 0x10000 if clock == 2 else 0
        dut.out_ready.value = clock not in (6, 7)
        await RisingEdge(dut.clk)
        for name in SIGNALS:
            value = getattr(dut, name).value
            # A field that nobody reads at this clock is not drawn.
            by = FIELDS.get(name)
            rows[name].append("" if by and not int(getattr(dut, by).value) else f"{int(value):x}")
        await FallingEdge(dut.clk)
    with open(os.environ["WAVES"], "w") as out:
        print(f"{'clock':13}" + "".join(f"{clock:>8}" for clock in range(CLOCKS)), file=out)
        for name, values in rows.items():
            print(f"{name:13}" + "".join(f"{value or '.':>8}" for value in values), file=out)


def main():
    from cocotb_tools.runner import get_runner

    here = Path(__file__).parent
    sys.path.insert(0, str(here.parent))
    from pipelines import SCHEMES, verilog

    build = Path(os.environ.get("HARDWARE_BUILD", here.parent / "build")) / "waves"
    runner = get_runner("icarus")
    sources = verilog.write(SCHEMES["sail-l"](16), build / "pipeline.v")
    runner.build(sources=sources, hdl_toplevel="pipeline", build_dir=build, timescale=("1ns", "1ns"), always=True)
    runner.test(
        hdl_toplevel="pipeline",
        test_module="waves",
        build_dir=build,
        test_dir=build,
        log_file=build / "log.txt",
        extra_env={"WAVES": str(build / "waves.txt"), "PYTHONPATH": os.pathsep.join([str(here), *sys.path])},
    )
    print((build / "waves.txt").read_text())


if __name__ == "__main__":
    main()
