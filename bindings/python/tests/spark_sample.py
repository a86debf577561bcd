"""Data of the tests of Spark and Sail: a table of nested prefixes, and a log of many rows."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

import fibula


def save_networks(path: Path, add: int = 0) -> Path:
    """Nested prefixes of both families, with text, a number (`add` more) and one that needs 64 bits."""
    random = numpy.random.default_rng(1)
    routes = {}
    for at in range(20_000):
        length = int(random.integers(8, 29))
        address = int(random.integers(1, 224)) << 24 | int(random.integers(2**24))
        network = ipaddress.ip_network((address, length), False)
        routes[str(network)] = {"asn": at + add, "site": f"s{at % 97}", "id": 2**63 + at}
    for at in range(5_000):
        six = ipaddress.ip_network((0x2001 << 112 | int(random.integers(2**24)) << 88, 40))
        routes[str(six)] = {"asn": at + add, "site": f"six{at % 7}", "id": at}
    fibula.Table.build(routes.items()).save(path)
    return path


@dataclass
class Log:
    """A file of Parquet in eight row groups: row, address as text, as a number, and other columns."""

    path: Path
    rows: int

    def __post_init__(self) -> None:
        self.null, self.bad, self.nowhere = self.rows // 4, self.rows // 3 * 2, self.rows - 1
        random = numpy.random.default_rng(2)
        v4 = random.integers(2**24, 224 << 24, self.rows, dtype=numpy.uint32)
        octets = [(v4 >> shift & 255).astype("U3") for shift in (24, 16, 8, 0)]
        text = pyarrow.compute.binary_join_element_wise(*map(pyarrow.array, octets), ".").to_pylist()
        groups = random.integers(2**24, size=-(-self.rows // 10))
        text[::10] = [f"2001:{group >> 8:x}:{group & 255:x}00::7" for group in groups.tolist()]
        text[self.null], text[self.bad], text[self.nowhere] = None, "10.0.0.256", "255.0.0.1"
        table = pyarrow.table(
            {
                "row": numpy.arange(self.rows),
                "ip": text,
                "number": v4.astype(numpy.int64),
                "when": pyarrow.array(numpy.arange(self.rows) * 1_000_003, pyarrow.timestamp("us", "UTC")),
                "share": random.random(self.rows),
                "tags": pyarrow.array([["a", None], None, []] * (self.rows // 3) + [["b"]] * (self.rows % 3)),
            }
        )
        pyarrow.parquet.write_table(table, self.path, row_group_size=self.rows // 8)

    def check(self, snapshot: Path, found: pyarrow.Table) -> None:
        """That these are all rows, with four columns as `Table.annotate` gives them (`ip_asn` is 7 by default)."""
        found = found.sort_by("row").combine_chunks()
        before = pyarrow.parquet.read_table(self.path)
        table, add = fibula.Table.open(snapshot), ["asn", "prefix", "site", "id"]
        want = table.annotate(before, "ip", add, default={"asn": 7}, text="plain")
        assert found.column_names == want.column_names
        assert found.num_rows == self.rows
        for name in want.column_names:
            assert found[name].cast(want[name].type).equals(want[name]), name
        added = want.column_names[-4:]
        for row in (self.null, self.bad):
            assert [found[name][row].as_py() for name in added] == [None] * 4
        assert [found[name][self.nowhere].as_py() for name in added] == [7, None, None, None]
        matched = self.rows - found["ip_prefix"].null_count
        assert self.rows // 10 < matched < self.rows, f"{matched} rows with a prefix test little"
