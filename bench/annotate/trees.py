"""Rivals that take one address after the other: Python extensions around a radix tree or an mmdb file.

Their column is a Python list of `str`, made outside of the timed part, and so is what they give back: none pays for
a conversion. Each loads the table in the way that answers quickest.
"""

from pathlib import Path
from socket import AF_INET6

import maxminddb
import maxminddb_rust
import pyarrow
import pyasn
import pytricia
import radix


def routes(data: Path):
    """(prefix, ASN) of the table."""
    with open(data / "table.tsv") as table:
        next(table)
        for line in table:
            prefix, asn = line.split()
            yield prefix, int(asn)


class Tree:
    """Half a million rows: the rate does not depend on how many there are."""

    rows = 500_000
    package: str
    cases: tuple[str, ...]

    def take(self, column: pyarrow.Array) -> list:
        return column.to_pylist()

    def arrow(self, answers, outputs):
        """What was answered as Arrow columns, for the comparison."""
        columns = zip(*answers) if len(outputs) > 1 else [answers]
        return [pyarrow.array(column, type=kind) for column, kind in zip(columns, outputs.values())]


class Pyasn(Tree):
    name = "pyasn"
    package = "pyasn"
    cases = ("v4-asn", "v4-asn-prefix", "mixed-prefix")

    def __init__(self, data: Path, case: str):
        # One by one: the reader of files refuses AS 0, which this table has.
        self.table = pyasn.pyasn(None, ipasn_string="192.0.2.0/24\t1\n")
        self.table.radix.delete("192.0.2.0", 24)
        for prefix, asn in routes(data):
            network, length = prefix.split("/")
            self.table.radix.add(network, int(length)).asn = asn
        self.run = {"v4-asn": self.asn, "v4-asn-prefix": self.both, "mixed-prefix": self.prefix}[case]

    def asn(self, column):
        lookup = self.table.lookup
        return [lookup(address)[0] for address in column]

    def both(self, column):
        return list(map(self.table.lookup, column))

    def prefix(self, column):
        lookup = self.table.lookup
        return [lookup(address)[1] for address in column]


class Pytricia(Tree):
    name = "pytricia"
    package = "pytricia"
    cases = ("v4-asn", "v4-asn-prefix", "mixed-prefix", "u32-asn")

    def __init__(self, data: Path, case: str):
        self.v4, self.v6 = pytricia.PyTricia(32), pytricia.PyTricia(128, AF_INET6)
        # The value is what is asked for, so that one search finds it.
        value = {"v4-asn-prefix": lambda prefix, asn: (asn, prefix), "mixed-prefix": lambda prefix, asn: prefix}
        value = value.get(case, lambda prefix, asn: asn)
        for prefix, asn in routes(data):
            (self.v6 if ":" in prefix else self.v4)[prefix] = value(prefix, asn)
        self.v4.freeze()
        self.v6.freeze()
        self.none = (None, None) if case == "v4-asn-prefix" else None
        self.run = self.mixed if case == "mixed-prefix" else self.one

    def one(self, column):
        get, none = self.v4.get, self.none
        return [get(address, none) for address in column]

    def mixed(self, column):
        v4, v6 = self.v4.get, self.v6.get
        return [v6(address) if ":" in address else v4(address) for address in column]


class PyRadix(Tree):
    name = "py-radix"
    package = "py-radix"
    cases = ("v4-asn", "v4-asn-prefix", "mixed-prefix")

    def __init__(self, data: Path, case: str):
        self.table = radix.Radix()
        for prefix, asn in routes(data):
            self.table.add(prefix).data["asn"] = asn
        self.run = {"v4-asn": self.asn, "v4-asn-prefix": self.both, "mixed-prefix": self.prefix}[case]

    def asn(self, column):
        nodes = map(self.table.search_best, column)
        return [node.data["asn"] if node else None for node in nodes]

    def both(self, column):
        nodes = map(self.table.search_best, column)
        return [(node.data["asn"], node.prefix) if node else (None, None) for node in nodes]

    def prefix(self, column):
        nodes = map(self.table.search_best, column)
        return [node.prefix if node else None for node in nodes]


class Mmdb(Tree):
    """The C extension, named as such so that it fails where only the slow Python reader is there."""

    name = "maxminddb (C)"
    package = "maxminddb"
    cases = ("v4-asn",)

    def __init__(self, data: Path, case: str):
        self.reader = maxminddb.open_database(data / "table.mmdb", maxminddb.MODE_MMAP_EXT)

    def run(self, column):
        return [record["asn"] if record else None for record in map(self.reader.get, column)]


class MmdbRust(Mmdb):
    name = "maxminddb-rust, get"
    package = "maxminddb-rust"

    def __init__(self, data: Path, case: str):
        self.reader = maxminddb_rust.open_database(str(data / "table.mmdb"))


class MmdbRustMany(MmdbRust):
    name = "maxminddb-rust, get_many_path"

    def run(self, column):
        return self.reader.get_many_path(column, ("asn",))


TREES = [Pyasn, Pytricia, PyRadix, Mmdb, MmdbRust, MmdbRustMany]
