"""The folder that `fibula export --to memory` wrote: memories, keys with answers, updates."""

import ipaddress
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Memory:
    name: str
    width: int
    depth: int
    on_chip: bool
    # The words that are not zero.
    words: dict = field(default_factory=dict)


@dataclass
class Update:
    prefix: str
    # Of the hop that the prefix gets; 0 where it is withdrawn.
    code: int
    # (address, code before, code after)
    keys: list = field(default_factory=list)
    # (memory, address, word), or None where lookups that have begun must end first
    steps: list = field(default_factory=list)


class Tables:
    def __init__(self, folder):
        self.folder = Path(folder)
        try:
            parsed = json.loads((self.folder / "map.json").read_text())
        except FileNotFoundError:
            sys.exit(f"{folder} has no map.json: it is not a folder of `fibula export --to memory`")
        self.scheme, self.parameters, self.hops = parsed["scheme"], parsed["parameters"], parsed["hops"]
        self.family = parsed["family"]
        self.memories = {}
        for entry in parsed["memories"]:
            words = read_hex(self.folder / entry["file"])
            memory = Memory(entry["name"], entry["width"], entry["depth"], entry["on_chip"], words)
            self.memories[memory.name] = memory

    def on_chip(self):
        return [memory for memory in self.memories.values() if memory.on_chip]

    def off_chip(self):
        """The memories off the chip, by name; they change with the updates."""
        return {name: dict(memory.words) for name, memory in self.memories.items() if not memory.on_chip}

    def keys(self):
        """(address, code) of each line of keys.txt."""
        with open(self.folder / "keys.txt") as lines:
            for line in lines:
                key, code = line.split()
                yield int(key, 16), int(code, 16)

    def updates(self):
        names = list(self.memories)
        update = None
        with open(self.folder / "updates.txt") as lines:
            for line in lines:
                kind, *rest = line.split()
                if kind == "u":
                    if update:
                        yield update
                    update = Update(rest[0], int(rest[1], 16))
                elif kind == "k":
                    update.keys.append(tuple(int(word, 16) for word in rest))
                elif kind == "w":
                    update.steps.append((names[int(rest[0])], int(rest[1], 16), int(rest[2], 16)))
                else:
                    update.steps.append(None)
        if update:
            yield update

    def answers(self, updates):
        """For each key of the updates, its answers before the first of them, and after each: from the routes in
        table.csv beside the memories, and not from the engine, whose answers they must be, too."""
        width = 32 if self.family == "v4" else 128
        routes = {}
        with open(self.folder / "table.csv") as table:
            for line in list(table)[1:]:
                prefix, hop = line.strip().split(",")
                routes[bits_of(prefix)] = int(hop)
        # Hops are numbered as the prefixes come in order.
        in_order = sorted(routes, key=lambda prefix: (prefix[0] << (width - prefix[1]), prefix[1]))
        codes = {hop: code for code, hop in enumerate(dict.fromkeys(map(routes.get, in_order)), 1)}
        routes = {prefix: codes[hop] for prefix, hop in routes.items()}

        def find(key):
            prefixes = ((key >> (width - length), length) for length in range(width, -1, -1))
            return next((routes[prefix] for prefix in prefixes if prefix in routes), 0)

        found = {key: [find(key)] for update in updates for key, _, _ in update.keys}
        for update in updates:
            routes[bits_of(update.prefix)] = update.code
            if not update.code:
                del routes[bits_of(update.prefix)]
            for key, answers in found.items():
                answers.append(find(key))
            for key, before, after in update.keys:
                assert found[key][-2:] == [before, after], f"{update.prefix}, {key:x}: the engine's answers are wrong"
        return found


def bits_of(prefix):
    """The bits of a prefix as a number, and how many."""
    network = ipaddress.ip_network(prefix)
    return int(network.network_address) >> (network.max_prefixlen - network.prefixlen), network.prefixlen


def read_hex(path):
    """The words of a file as Verilog's $readmemh reads it."""
    words, address = {}, 0
    with open(path) as lines:
        for line in lines:
            if line.startswith("//"):
                continue
            if line.startswith("@"):
                address = int(line[1:], 16)
                continue
            words[address] = int(line, 16)
            address += 1
    return words
