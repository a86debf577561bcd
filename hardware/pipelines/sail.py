"""SAIL_L, SAIL_U and SAIL_B: the levels' bitmaps are on the chip, next hops and chunks off it."""

from amaranth.hdl import Cat, Const, Mux

from .component import NO_LEVEL, Pipeline


class SailL(Pipeline):
    """Level 16, then level 24. The output: level 16 and the address in `N16`; or level 24 and the address in `N24` (bit
    set: the search ends) or in `C24` (clear: it goes on in `N32`)."""

    def __init__(self, chunks=1 << 16, fault=None):
        super().__init__([("BC16", 17, 1 << 16), ("B24", 64, 4 * chunks)], fault)

    @classmethod
    def of_tables(cls, tables, fault=None):
        # Updates take more chunks: the engine's own array grows by a quarter and 16.
        chunks = tables.parameters["chunks24"]
        return cls(min(1 << 16, max(16, 2 * chunks)), fault)

    faulty_read = 2

    def stages(self, lookup):
        word, lookup = self.read("BC16", lookup["key"][16:], lookup)
        chunk, key = word[:16], lookup["key"]
        lookup = {**lookup, "goes_on": word[16], "chunk": chunk}
        word, lookup = self.read("B24", Cat(key[14:16], chunk), lookup)
        key, goes_on = lookup["key"], lookup["goes_on"]
        return {
            "valid": lookup["valid"],
            "key": key,
            "level": Mux(goes_on, Const(24, 5), Const(16, 5)),
            "bit": word.bit_select(key[8:14], 1),
            "address": Mux(goes_on, Cat(key[8:16], lookup["chunk"]), key[16:]),
        }


class Bitmaps(Pipeline):
    """A bitmap a level, the longest first. The output: `bit` is level 24's, whose chunk or hop is looked for first;
    `level` is the longest other level with a bit, and `address` the node there."""

    faulty_read = 2

    def __init__(self, levels, fault=None):
        self.levels = levels
        memories = [(f"B{level}", 64, 1 << (level - 6)) for level in levels]
        super().__init__(memories + self.SHORT, fault)

    SHORT = []

    @classmethod
    def of_tables(cls, tables, fault=None):
        return cls(fault)

    def stages(self, lookup):
        lookup = {**lookup, "bit": Const(0, 1), "level": Const(NO_LEVEL, 5), "address": Const(0, 24)}
        for level in self.levels:
            word, lookup = self.read(f"B{level}", lookup["key"][32 - level + 6 :], lookup)
            bit = word.bit_select(lookup["key"][32 - level : 32 - level + 6], 1)
            lookup = self.found(lookup, level, bit)
        return lookup

    @staticmethod
    def found(lookup, level, bit):
        if level == 24:
            return {**lookup, "bit": bit}
        first = bit & (lookup["level"] == NO_LEVEL)
        node = lookup["key"][32 - level :] if level else Const(0, 1)
        return {
            **lookup,
            "level": Mux(first, Const(level, 5), lookup["level"]),
            "address": Mux(first, node, lookup["address"]),
        }


class SailU(Bitmaps):
    """Levels 24, 18, 12 and 6."""

    def __init__(self, fault=None):
        super().__init__([24, 18, 12, 6], fault)


class SailB(Bitmaps):
    """Levels 24 to 1, and the bit of level 0 beside that of level 1. Levels 5 to 0 have 63 bits: one word, which each
    of their stages has a copy of."""

    SHORT = [("B0", 64, 1)]

    def __init__(self, fault=None):
        super().__init__(list(range(24, 5, -1)), fault)

    def stages(self, lookup):
        lookup = super().stages(lookup)
        for level in range(5, 0, -1):
            word, lookup = self.read("B0", Const(0, 1), lookup, copy=level)
            at = Cat(lookup["key"][32 - level :], Const(1, 1))
            lookup = self.found(lookup, level, word.bit_select(at, 1))
        return self.found(lookup, 0, word[1])
