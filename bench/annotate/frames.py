"""Rivals that take a column: joins of Polars and DuckDB, and NumPy, over intervals that do not overlap.

IPv4 only: none of them has 128-bit joins of text. Text becomes a number by the quickest expression that each was
found to have; that is timed, since logs hold text.
"""

from pathlib import Path

import duckdb
import numpy
import polars as pl
import pyarrow
import pyarrow.parquet

OUTPUTS = {"v4-asn": ["asn"], "v4-asn-prefix": ["asn", "matched"], "u32-asn": ["asn"]}


def intervals(data: Path, case: str) -> pyarrow.Table:
    """start, end (both inclusive), asn, and the prefix where it is asked for."""
    name = "v4-named.parquet" if case == "v4-asn-prefix" else "v4.parquet"
    table = pyarrow.parquet.read_table(data / name, columns=["start", "end", *OUTPUTS[case]])
    types = {"matched": pyarrow.string()}
    fields = [pyarrow.field(name, types.get(name, pyarrow.uint32())) for name in table.column_names]
    return table.cast(pyarrow.schema(fields))


class Frame:
    rows = None  # all
    cases = ("v4-asn", "v4-asn-prefix", "u32-asn")

    def arrow(self, answers, outputs):
        return [answers[name].cast(kind).combine_chunks() for name, kind in zip(self.outputs, outputs.values())]


class PolarsJoin(Frame):
    """The interval join: join_asof wants sorted keys, and the rows go back into their order."""

    name = "Polars, join_asof"
    package = "polars"

    def __init__(self, data: Path, case: str):
        self.intervals = pl.from_arrow(intervals(data, case)).rename({"start": "key"}).set_sorted("key")
        self.outputs = OUTPUTS[case]
        self.text = case != "u32-asn"

    def take(self, column):
        return pl.from_arrow(column).rename("ip").to_frame().lazy()

    def keys(self, frame):
        ip = pl.col("ip")
        if not self.text:
            return frame.select(ip.alias("key"))
        octets = frame.select(ip.str.split(".").cast(pl.List(pl.UInt32)).alias("octet"))
        octet = [pl.col("octet").list.get(i) for i in range(4)]
        return octets.select((octet[0] * 2**24 + octet[1] * 2**16 + octet[2] * 2**8 + octet[3]).alias("key"))

    def run(self, frame):
        keys = self.keys(frame).with_row_index().sort("key")
        joined = keys.join_asof(self.intervals.lazy(), on="key", strategy="backward")
        inside = [pl.when(pl.col("key") <= pl.col("end")).then(pl.col(name)).alias(name) for name in self.outputs]
        return joined.select("index", *inside).sort("index").drop("index").collect()

    def arrow(self, answers, outputs):
        return super().arrow(answers.to_arrow(compat_level=pl.CompatLevel.oldest()), outputs)


class PolarsSearch(PolarsJoin):
    """Not a join, and no sorting: a binary search for each row."""

    name = "Polars, search_sorted and gather"

    def run(self, frame):
        key = self.keys(frame).collect()["key"]
        start = self.intervals["key"]
        # What lies below the first interval gathers it, and is refused by `at > 0`.
        at = start.search_sorted(key, side="right")
        found = self.intervals.select("end", *self.outputs)[(at.cast(pl.Int64) - 1).clip(0)]
        inside = (key <= found["end"]) & (at > 0)
        return found.select(pl.when(inside).then(pl.col(name)).alias(name) for name in self.outputs)


class DuckDb(Frame):
    """Out comes an Arrow table with the rows' numbers, in the join's order: putting it in order is not timed."""

    name = "DuckDB, ASOF LEFT JOIN"
    package = "duckdb"

    def __init__(self, data: Path, case: str):
        self.db = duckdb.connect(config={"threads": 1})
        self.db.register("from_arrow", intervals(data, case))
        self.db.sql("CREATE TABLE intervals AS FROM from_arrow")
        self.outputs = OUTPUTS[case]
        octets = " + ".join(f"octet[{i + 1}] * {2 ** (24 - 8 * i)}::UINTEGER" for i in range(4))
        keys = "SELECT row, ip AS key FROM logs"
        if case != "u32-asn":
            split = "SELECT row, string_split(ip, '.')::UINTEGER[] AS octet FROM logs"
            keys = f"SELECT row, {octets} AS key FROM ({split})"
        values = ", ".join(f'CASE WHEN l.key <= r."end" THEN r.{name} END AS {name}' for name in self.outputs)
        self.sql = f"SELECT row, {values} FROM ({keys}) l ASOF LEFT JOIN intervals r ON l.key >= r.start"

    def take(self, column):
        rows = pyarrow.array(numpy.arange(len(column), dtype=numpy.uint32))
        self.db.register("from_arrow", pyarrow.table({"row": rows, "ip": column}))
        self.db.sql("CREATE OR REPLACE TABLE logs AS FROM from_arrow")

    def run(self, _):
        return self.db.sql(self.sql).to_arrow_table()

    def arrow(self, answers, outputs):
        return super().arrow(answers.sort_by("row"), outputs)


class NumPy(Frame):
    """What many write by hand; -1 is no route."""

    name = "NumPy, searchsorted"
    package = "numpy"
    cases = ("u32-asn",)

    def __init__(self, data: Path, case: str):
        table = intervals(data, case)
        self.start, self.end, self.asn = (column.to_numpy() for column in table.columns)
        self.asn = self.asn.astype(numpy.int64)

    def take(self, column):
        return column.to_numpy()

    def run(self, keys):
        at = numpy.searchsorted(self.start, keys, side="right") - 1
        return numpy.where((at >= 0) & (keys <= self.end[at]), self.asn[at], -1)

    def arrow(self, answers, outputs):
        return [pyarrow.array(answers, mask=answers < 0).cast(pyarrow.uint32())]


FRAMES = [PolarsJoin, PolarsSearch, DuckDb, NumPy]
