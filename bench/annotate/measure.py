"""Measures one job on one kind of traffic, fibula beside its rivals, on one core.

    python measure.py --data target/bench-annotate --case v4-asn --traffic PFX --group trees

Every rival's every answer is compared with fibula's before anything is timed. Then each does the job once a round,
round after round, so that a change of the machine's pace meets all of them. The result is a JSON file in DATA/results.

FIBULA_QUIET may name a command that runs another one and keeps the machine quiet as long as that runs; it is used while
times are taken.
"""

import argparse
import gc
import json
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen

# job: (addresses, columns that are asked for)
CASES = {
    "v4-asn": ("v4", ["asn"]),
    "v4-asn-prefix": ("v4", ["asn", "prefix"]),
    "mixed-prefix": ("mixed", ["prefix"]),
    "u32-asn": ("v4", ["asn"]),
}
GROUPS = ["trees", "frames"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="what prepare.py has made")
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--traffic", choices=["PFX", "ZIPF"], required=True)
    parser.add_argument("--group", choices=GROUPS, required=True, help="the rivals: of trees.py or of frames.py")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, help="take no more rows than these")
    return parser.parse_args()


def one_core() -> None:
    """This process and its threads stay on the last core; libraries that count cores see one."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    os.environ["POLARS_MAX_THREADS"] = "1"
    os.environ["OMP_NUM_THREADS"] = "1"


@contextmanager
def quiet() -> Iterator[None]:
    command = os.environ.get("FIBULA_QUIET")
    if not command:
        yield
        return
    # It says that it runs, and does so until its input is closed.
    held = [*shlex.split(command), "sh", "-c", "echo; cat"]
    with Popen(held, stdin=PIPE, stdout=PIPE, preexec_fn=ALL_CORES) as holder:
        if holder.stdout.readline() != b"\n":
            raise SystemExit(f"FIBULA_QUIET: {command} did not run what it was given")
        yield


args = arguments()
CORES = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
ALL_CORES = (lambda: os.sched_setaffinity(0, CORES)) if CORES else None
one_core()
# Only now: Polars and Arrow start their threads when they are imported.
import pyarrow  # noqa: E402
import pyarrow.compute  # noqa: E402
import pyarrow.feather  # noqa: E402

import fibula  # noqa: E402

pyarrow.set_cpu_count(1)


class Fibula:
    name = "fibula"
    package = "fibula"
    rows = None

    def __init__(self, data: Path, case: str):
        self.table = fibula.Table.open(data / "table.fib")
        self.add = CASES[case][1]

    def take(self, column):
        return column

    def run(self, column):
        return self.table.lookup_many(column, add=self.add, threads=1)

    def arrow(self, answers, outputs):
        table = pyarrow.table(answers)
        return [table[name].cast(kind).combine_chunks() for name, kind in outputs.items()]


class FibulaList(Fibula):
    """From a Python list, as the trees have it; what comes out is an Arrow column all the same."""

    name = "fibula, from a list"
    rows = 1_000_000
    cases = ("v4-asn", "v4-asn-prefix", "mixed-prefix")

    def take(self, column):
        return column.to_pylist()


def addresses(traffic: str, case: str) -> pyarrow.Array:
    column = pyarrow.feather.read_table(args.data / f"{traffic}-{CASES[case][0]}.arrow")["ip"].combine_chunks()
    if case == "u32-asn":
        octets = pyarrow.compute.split_pattern(column, ".").flatten().cast(pyarrow.uint8())
        column = pyarrow.array(octets.to_numpy().view(">u4").astype("u4"))
    return column


def rivals():
    if args.group == "trees":
        from trees import TREES

        return [FibulaList, *TREES]
    from frames import FRAMES

    return FRAMES


def differing(want, found, column) -> int:
    """Rows in which two answers differ; the first are printed."""
    differs = None
    for a, b in zip(want, found, strict=True):
        same = pyarrow.compute.fill_null(pyarrow.compute.equal(a, b), False)
        both_null = pyarrow.compute.and_(a.is_null(), b.is_null())
        unequal = pyarrow.compute.invert(pyarrow.compute.or_(same, both_null))
        differs = unequal if differs is None else pyarrow.compute.or_(differs, unequal)
    rows = pyarrow.compute.indices_nonzero(differs).to_pylist()
    for row in rows[:5]:
        print(f"  {column[row]}: fibula {[a[row].as_py() for a in want]}, here {[b[row].as_py() for b in found]}")
    return len(rows)


def check(tool, work, want, column, outputs) -> None:
    found = tool.arrow(tool.run(work), outputs)
    rows = len(column)
    assert all(len(answers) == rows for answers in found), f"{tool.name} gave {len(found[0])} answers for {rows} rows"
    wrong = differing([answers.slice(0, rows) for answers in want], found, column)
    print(f"  {tool.name}: {rows:,} answers compared, {wrong} differ", flush=True)
    if wrong:
        raise SystemExit(f"{tool.name} {version(tool.package)}: {wrong} of {rows} answers differ; nothing was timed")


def main() -> None:
    random = addresses("random", args.case)
    column = addresses(args.traffic, args.case)
    if args.rows:
        column = column.slice(0, args.rows)
    kinds = {"asn": pyarrow.uint32(), "prefix": pyarrow.string()}
    outputs = {name: kinds[name] for name in CASES[args.case][1]}
    subject = Fibula(args.data, args.case)
    want_random, want = (subject.arrow(subject.run(part), outputs) for part in (random, column))
    print(f"{args.case} {args.traffic} {args.group}: {len(column):,} rows, {want[0].null_count:,} without a route; "
          f"{len(random):,} random ones, {want_random[0].null_count:,} without")  # fmt: skip
    tools = [(subject, column, len(column))]
    for make in rivals():
        if args.case not in make.cases:
            continue
        tool = make(args.data, args.case)
        check(tool, tool.take(random), want_random, random, outputs)
        part = column.slice(0, min(tool.rows or len(column), len(column)))
        work = tool.take(part)
        check(tool, work, want, part, outputs)
        tools.append((tool, work, len(part)))
    del want, want_random
    gc.collect()
    gc.disable()  # as timeit does: lists of a million tuples would be searched for cycles again and again
    rates = {tool.name: [] for tool, _, _ in tools}
    with quiet():
        for _ in range(args.rounds):
            for tool, work, rows in tools:
                started = time.perf_counter()
                answers = tool.run(work)
                rates[tool.name].append(rows / (time.perf_counter() - started))
                del answers
    write(tools, rates)


def write(tools, rates) -> None:
    ours = median(rates["fibula"])
    result = {"case": args.case, "traffic": args.traffic, "group": args.group, "rounds": args.rounds, "tools": []}
    for tool, _, rows in tools:
        rate = rates[tool.name]
        result["tools"].append(
            {"name": tool.name, "package": tool.package, "version": version(tool.package), "rows": rows,
             "rate": median(rate), "least": min(rate), "most": max(rate), "ratio": ours / median(rate)}
        )  # fmt: skip
        print(f"  {tool.name:32} {median(rate) / 1e6:8.2f} M rows/s   {ours / median(rate):6.1f}", flush=True)
    results = args.data / "results"
    results.mkdir(exist_ok=True)
    (results / f"{args.case}-{args.traffic}-{args.group}.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
