"""Python's radix trees as contestants of the harness; bench/README.md has the protocol.

Addresses are `str`, made before the clock starts: no tree pays for a conversion.
"""

import array
import struct
import sys
import time
from importlib import metadata
from ipaddress import IPv4Address, IPv6Address
from socket import AF_INET6

NO_HOP = 0xFFFF_FFFF
# Keys that are looked up before the clock starts: other contestants have used the caches meanwhile.
WARM_UP = 1 << 18


def pyasn_tree(routes, bits):
    import pyasn

    # One by one: the reader of files refuses AS 0.
    table = pyasn.pyasn(None, ipasn_string="192.0.2.0/24\t1\n")
    table.radix.delete("192.0.2.0", 24)
    for address, length, hop in routes:
        table.radix.add(address, length).asn = hop
    lookup = table.lookup

    def look_up(keys):
        found = [lookup(key)[0] for key in keys]
        return [NO_HOP if hop is None else hop for hop in found]

    return look_up


def pytricia_tree(routes, bits):
    import pytricia

    table = pytricia.PyTricia(32) if bits == 32 else pytricia.PyTricia(128, AF_INET6)
    for address, length, hop in routes:
        table[f"{address}/{length}"] = hop
    table.freeze()
    get = table.get
    return lambda keys: [get(key, NO_HOP) for key in keys]


def radix_tree(routes, bits):
    import radix

    table = radix.Radix()
    for address, length, hop in routes:
        table.add(network=address, masklen=length).data["hop"] = hop
    search = table.search_best

    def look_up(keys):
        nodes = map(search, keys)
        return [node.data["hop"] if node else NO_HOP for node in nodes]

    return look_up


TREES = {"pyasn": pyasn_tree, "pytricia": pytricia_tree, "py-radix": radix_tree}


class Contestant:
    def __init__(self, name):
        self.tree = TREES[name]

    def load(self, family, path):
        self.bits = 32 if family == "v4" else 128
        routes = list(self.routes(path))
        started = time.perf_counter_ns()
        self.look_up = self.tree(routes, self.bits)
        return f"ok\t{time.perf_counter_ns() - started}\t-\taddresses as str, made before the clock starts"

    def routes(self, path):
        record = struct.Struct("<IB3xI" if self.bits == 32 else "<QQB3xI")
        with open(path, "rb") as file:
            for *words, length, hop in record.iter_unpack(file.read()):
                yield self.text(words), length, hop

    def text(self, words):
        """The address of words in little-endian order."""
        if len(words) == 1:
            return str(IPv4Address(words[0]))
        return str(IPv6Address(words[0] | words[1] << 64))

    def keys(self, path, threads, batch):
        if int(threads) != 1:
            raise ValueError("one thread only")
        self.batch = int(batch)
        with open(path, "rb") as file:
            words = struct.iter_unpack("<I" if self.bits == 32 else "<QQ", file.read())
            self.all = [self.text(address) for address in words]
        return "ok"

    def batches(self, keys):
        for at in range(0, len(keys), self.batch):
            yield self.look_up(keys[at : at + self.batch])

    def answer(self, path):
        hops = array.array("I")
        for batch in self.batches(self.all):
            hops.extend(batch)
        if sys.byteorder == "big":
            hops.byteswap()
        with open(path, "wb") as file:
            hops.tofile(file)
        return "ok"

    def run(self, rounds):
        return "\n".join(self.round() for _ in range(int(rounds)))

    def round(self):
        sum(map(sum, self.batches(self.all[:WARM_UP])))
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        total = sum(map(sum, self.batches(self.all)))
        cpu, wall = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
        return f"time\t{wall}\t{cpu}\t{total & 0xFFFF_FFFF}"


def main(name):
    version = f"{metadata.version(name)} (Python {sys.version.split()[0]})"
    print(f"fibula-bench 1 {name} {version}", flush=True)
    contestant = Contestant(name)
    for line in sys.stdin:
        request, *words = line.rstrip("\n").split("\t")
        if request == "end":
            return
        try:
            if request not in ("load", "keys", "answer", "run"):
                raise ValueError(f"{request}: not understood")
            print(getattr(contestant, request)(*words), flush=True)
        except Exception as error:  # the harness reports it
            print("error", str(error).replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
