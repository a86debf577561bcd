"""PlanB: a B+-tree of elementary intervals, a level a stage; the keys of a node are compared at once."""

from amaranth.hdl import Cat, Const

from .component import Pipeline


class PlanB(Pipeline):
    """The output: the code of the hop (bit clear), or the block of the intervals of the low bits (bit set)."""

    def __init__(self, lanes, nodes, values, blocks, value_bits=16, fault=None):
        self.KEY = 32 if lanes == 16 else 128
        self.lanes, self.blocks = lanes, blocks
        levels = [(f"level{level}", 512, count) for level, count in enumerate(nodes)]
        self.faulty_read = len(levels)
        super().__init__([*levels, ("values", value_bits, values)], fault)

    @classmethod
    def of_tables(cls, tables, fault=None):
        p = tables.parameters
        nodes = [tables.memories[f"level{level}"].depth for level in range(p["levels"])]
        values = tables.memories["values"]
        return cls(p["lanes"], nodes, values.depth, p["blocks"], values.width, fault)

    def stages(self, lookup):
        width = 512 // self.lanes
        levels = len(self.memories) - 1
        lookup = {**lookup, "node": Const(0, 1)}
        for level in range(levels):
            word, lookup = self.read(f"level{level}", lookup["node"], lookup)
            key = lookup["key"][-width:]
            below = Cat(word[lane * width : (lane + 1) * width] < key for lane in range(self.lanes))
            lookup = self.register({**lookup, "below": below})
            # The keys ascend, so a lane is below where all lanes before it are.
            rank = sum(lookup["below"][lane] for lane in range(self.lanes))
            node = lookup["node"]
            children = self.lanes if level + 1 == levels else self.lanes + 1
            child = node.shift_left(self.lanes.bit_length() - 1) + rank + (node if children > self.lanes else 0)
            address = self.memories[level + 1][2]
            lookup = self.register(
                {"valid": lookup["valid"], "key": lookup["key"], "node": child[: max(1, (address - 1).bit_length())]}
            )
        code, lookup = self.read("values", lookup["node"], lookup)
        block = ~code
        return {
            "valid": lookup["valid"],
            "key": lookup["key"],
            "level": Const(0, 5),
            "bit": block < self.blocks if self.blocks else Const(0, 1),
            "address": code,
        }
