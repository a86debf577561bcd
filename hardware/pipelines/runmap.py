"""runmap: the number of a block's record, its bitmap, the value of the run that the population count finds."""

from amaranth.hdl import Cat, Const

from .component import Pipeline, bits


def population(m):
    """The number of bits set."""
    return sum(m[i] for i in range(len(m)))


class Runmap(Pipeline):
    """The output: the code of the hop (bit clear), or the record of a network that longer routes divide (bit set)."""

    faulty_read = 3

    def __init__(self, memories, value_bits, fault=None):
        self.value_bits = value_bits
        super().__init__(memories, fault)

    @classmethod
    def of_tables(cls, tables, fault=None):
        memories = [(memory.name, memory.width, memory.depth) for memory in tables.on_chip()]
        return cls(memories, tables.parameters["value_bits"], fault)

    def stages(self, lookup):
        (_, _, records), (_, _, values) = self.memories[1:]
        word, lookup = self.read("root", lookup["key"][14:], lookup)
        word, lookup = self.read("records", word[: bits(records)], lookup)
        runs = word[:64] >> lookup["key"][8:14]
        lookup = self.register({**lookup, "runs": runs, "base": word[64 : 64 + bits(values)]})
        # Two clocks: bits of each quarter, then their sum.
        quarters = [population(lookup["runs"][at : at + 16]) for at in range(0, 64, 16)]
        lookup = self.register(
            {
                "valid": lookup["valid"],
                "key": lookup["key"],
                "base": lookup["base"],
                "quarters": Cat(quarters),
            }
        )
        size = len(quarters[0])
        count = sum(lookup["quarters"][at * size : (at + 1) * size] for at in range(4))
        place = (lookup["base"] + count - 1)[: bits(values)]
        lookup = self.register({"valid": lookup["valid"], "key": lookup["key"], "place": place})
        word, lookup = self.read("values", lookup["place"], lookup)
        return {
            "valid": lookup["valid"],
            "key": lookup["key"],
            "level": Const(0, 5),
            "bit": word[self.value_bits],
            "address": word[: self.value_bits],
        }
