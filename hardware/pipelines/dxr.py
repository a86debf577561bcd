"""DXR: a direct table, then the bisection of a chunk of ranges, a step a stage. Each step has a copy of the range
table."""

from amaranth.hdl import Cat, Const, Mux

from .component import Pipeline, bits


class Dxr(Pipeline):
    """The output is the code of the hop."""

    faulty_read = 2

    def __init__(self, k, grain, steps, ranges, fault=None):
        self.k, self.grain, self.steps = k, grain, steps
        super().__init__([("lookup", 32, 1 << k), ("ranges", 32, ranges)], fault)

    @classmethod
    def of_tables(cls, tables, fault=None):
        p = tables.parameters
        return cls(p["k"], p["grain"], p["steps"], tables.memories["ranges"].depth, fault)

    def word_address(self, lookup, entry):
        ranges = bits(self.memories[1][2])
        return (lookup["base"] + Mux(lookup["long"], entry, entry >> 1))[:ranges]

    @staticmethod
    def entry(word, lookup):
        half = Mux(lookup["odd"], word[16:], word[:16])
        return Mux(lookup["long"], word, half)

    def stages(self, lookup):
        word, lookup = self.read("lookup", lookup["key"][32 - self.k :], lookup)
        local, size = lookup["key"][: 32 - self.k], word[19:31].shift_left(self.grain)
        is_long = word[31]
        lookup = self.register(
            {
                **lookup,
                "direct": word[19:] == 0,
                "code": word[:16],
                "long": is_long,
                "base": word[:19].shift_left(self.grain),
                "low": Const(0, len(size)),
                "high": size,
                # Entries compare as numbers with the local bits above a code of ones.
                "bound": Mux(is_long, Cat(Const(0xFFFF, 16), local), local | 0xFF),
            }
        )
        for step in range(self.steps):
            low, high = lookup["low"], lookup["high"]
            middle = (low + ((high - low) >> 1))[: len(low)]
            address = self.word_address(lookup, middle)
            lookup = self.register({**lookup, "middle": middle, "odd": middle[0], "word": address})
            word, lookup = self.read("ranges", lookup["word"], lookup, copy=step)
            low, high, middle = lookup["low"], lookup["high"], lookup["middle"]
            is_left = self.entry(word, lookup) > lookup["bound"]
            is_open = (high - low) > 1
            lookup = self.register(
                {
                    **lookup,
                    "low": Mux(is_open & ~is_left, middle, low),
                    "high": Mux(is_open & is_left, middle, high),
                }
            )
        low = lookup["low"]
        lookup = self.register({**lookup, "odd": low[0], "word": self.word_address(lookup, low)})
        word, lookup = self.read("ranges", lookup["word"], lookup, copy=self.steps)
        entry = self.entry(word, lookup)
        code = Mux(lookup["long"], entry[:16], entry[:8])
        return {
            "valid": lookup["valid"],
            "key": lookup["key"],
            "level": Const(0, 5),
            "bit": Const(0, 1),
            "address": Mux(lookup["direct"], lookup["code"], code),
        }
