"""Each pipeline against the engine whose tables it has, simulated by Icarus; and planted faults, which must be
found."""

import ipaddress
import os
import random
import sys
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner

from pipelines import FAULTS, of_map, programs, verilog
from pipelines.tables import Tables

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("HARDWARE_BUILD", HERE.parent / "build"))
FIBULA = os.environ.get("FIBULA_BIN", "fibula")
# Engine, family, and prefixes. Small tables, which Icarus holds; whole ones are replayed by Verilator.
CASES = {
    "sail-l": ("sail-l", 4, 300),
    "sail-u": ("sail-u", 4, 300),
    "sail-b": ("sail-b", 4, 300),
    "planb": ("planb", 4, 1500),
    "planb-v6": ("planb", 6, 1500),
    "dxr": ("dxr18", 4, 300),
    "runmap": ("runmap", 4, 300),
}
# Wrong orders of the words of an update, which are planted by the bench.
ORDERS = ("reversed", "no-wait")


def nested(path, family, count, has_default):
    """A table of prefixes of all lengths from 12 bits on in a part of the space, some of them inside of others, so that
    an update often divides a block of the schemes, or leaves it whole."""
    choose, width = random.Random(1), 32 if family == 4 else 128
    block = (10 << (width - 8), 8)
    known = {block: 1}
    if has_default:
        known[0, 0] = 0
    while len(known) < count:
        address, length = choose.choice([block, block, block, choose.choice(list(known))])
        longer = min(width, max(12, length + choose.randrange(1, width * 3 // 4)))
        address |= choose.randrange(1 << width) >> max(10, length) & ~((1 << (width - longer)) - 1)
        known.setdefault((address, longer), choose.randrange(200))
    write(path, known)


def sparse(path):
    """An IPv4 table whose changes often take a chunk and give one back: most prefixes are alone in their /16, with one
    of few hops, which the shorter ones around them have, too."""
    choose = random.Random(1)
    known = {(10 << 24, 8): 1}
    for length, count in ((12, 6), (14, 8), *((length, 4) for length in range(17, 33))):
        for _ in range(count):
            address = 10 << 24 | choose.randrange(1 << 24) >> (32 - length) << (32 - length)
            known[address, length] = choose.randrange(4)
    write(path, known)


def write(path, known):
    network = ipaddress.IPv6Address if max(known)[0] >> 32 else ipaddress.IPv4Address
    lines = [f"{network(address)}/{length},{hop}" for (address, length), hop in known.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["prefix,hop", *lines, ""]))


def export(name):
    """The folder of a case's memories, keys and updates."""
    engine, family, count = CASES[name]
    folder = BUILD / "small" / name
    # A default route is all 2^18 words of DXR's direct table to load, and all of level 16 to update in SAIL_L.
    nested(folder / "table.csv", family, count, engine in ("planb", "runmap"))
    command(folder, engine, keys=600, updates=40 if engine.startswith("sail") else None)
    return folder


def command(folder, engine, **numbers):
    """Runs `fibula export` on the table in the folder."""
    options = [word for name, n in numbers.items() if n is not None for word in (f"--{name}", str(n))]
    arguments = [folder / "table.csv", "--to", "memory", "--engine", engine, *options, "-o", folder]
    programs.run([FIBULA, "export", *arguments])


def simulate(name, folder, fault="", only=None, bank="bank.v", registered=False, **environment):
    """(tests, failures) of the bench around a pipeline."""
    build = BUILD / "icarus" / "-".join([name, fault, *environment.values(), *[Path(bank).stem] * registered])
    pipeline = of_map(Tables(folder), fault)
    pipeline.registered = registered
    sources = [*verilog.write(pipeline, build / "pipeline.v", bank), HERE / "dp16kd.v"]
    runner = get_runner("icarus")
    runner.build(sources=sources, hdl_toplevel="pipeline", build_dir=build, timescale=("1ns", "1ns"), always=True)
    environment |= {"TABLES": str(folder), "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    results = str(build / "results.xml")
    try:
        runner.test(
            hdl_toplevel="pipeline",
            test_module="bench",
            build_dir=build,
            test_dir=build,
            extra_env=environment,
            testcase=only,
            log_file=build / "log.txt",
            results_xml=results,
        )
    except SystemExit:
        pass  # a test failed, as the results say
    return get_results(Path(results))


@pytest.mark.parametrize("name", CASES)
def test_answers(name):
    tests, failures = simulate(name, export(name))
    assert tests >= 1 and failures == 0, f"{BUILD}/icarus/{name}-/log.txt says which"


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_found(name, fault):
    _, failures = simulate(name, export(name), fault, only="answers")
    assert failures == 1, f"a fault of kind {fault} was not found"


@pytest.mark.slow
# The others take more block RAMs than an ECP5 has, and minutes.
@pytest.mark.parametrize(
    "name, bank", [(name, "bank.v") for name in CASES] + [(name, "bank_ecp5.v") for name in ("sail-l", "planb", "planb-v6")]
)
def test_answers_with_output_registers(name, bank):
    tests, failures = simulate(name, export(name), bank=bank, registered=True)
    assert tests >= 1 and failures == 0, f"{BUILD}/icarus/{name}--{Path(bank).stem}/log.txt says which"


@pytest.fixture(scope="module", params=["sail-l", "sail-u", "sail-b"])
def storm(request):
    """An engine with updates that take chunks and give them back."""
    folder = BUILD / "storm" / request.param
    sparse(folder / "table.csv")
    command(folder, request.param, updates=150)
    return request.param, folder


@pytest.mark.slow
@pytest.mark.parametrize("order", ["as it is", *ORDERS])
def test_the_order_of_words_matters(storm, order):
    _, failures = simulate(*storm, only="updates", ORDER=order, LATENCY="150")
    assert failures == (order in ORDERS), f"{BUILD}/icarus/{storm[0]}--{order}-150/log.txt says what was found"
