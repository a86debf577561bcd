"""What all pipelines are made of: memories in banks, a write port for each, and clocks that stop together."""

from amaranth.hdl import Array, ClockSignal, Const, Elaboratable, Instance, Module, Signal

# Words of a bank: what one column of 36-kbit block RAMs holds, a bit each.
BANK = 1 << 15
# The level of an output that found none.
NO_LEVEL = 31
# Planted in a read of each pipeline's table, for the tests that must find them: a register that is missing, a shift by
# one too many, a register that does not wait.
FAULTS = ("register", "shift", "stall")


# Words and bits of a block RAM of 36 kbit (Xilinx 7-series), parity included.
SHAPES = [(1 << 15, 1), (1 << 14, 2), (1 << 13, 4), (1 << 12, 9), (1 << 11, 18), (1 << 10, 36), (1 << 9, 72)]
# Memories of fewer words lie in logic.
SMALL = 128


def block_rams(width, depth):
    """The block RAMs that a memory takes, at least."""
    return min(-(-width // columns) * -(-depth // rows) for rows, columns in SHAPES) if depth > SMALL else 0


def bits(values):
    """Bits of an address below `values`, at least one."""
    return max(1, (values - 1).bit_length())


class Pipeline(Elaboratable):
    """A lookup a clock: keys in, places of the answer out.

    `in_valid`, `in_key`, `in_ready`; `out_valid`, `out_ready` and with them `out_key`, and what remains to be read off
    the chip: `out_level`, `out_bit`, `out_address`. `write_enable`, `write_memory`, `write_address`, `write_word` write
    a word of a memory, also between the lookups. All registers stop while an output is not taken.

    A scheme lists its `memories` (name, width, depth), and `stages` reads them in turn.
    """

    KEY = 32
    # The read in which a fault is planted, counted from 1.
    faulty_read = 1
    # Whether a read takes a third clock: the block RAM's output register, which makes its word come sooner after the
    # clock.
    registered = False

    def __init__(self, memories, fault=None):
        self.memories = memories
        self.fault, self.reads = fault, 0
        self.clocks = self.block_rams = 0
        widths = {
            "in_valid": 1,
            "in_key": self.KEY,
            "in_ready": 1,
            "out_valid": 1,
            "out_ready": 1,
            "out_key": self.KEY,
            "out_level": 5,
            "out_bit": 1,
            "out_address": 32,
            "write_enable": 1,
            "write_memory": bits(len(memories)),
            "write_address": max(bits(depth) for _, _, depth in memories),
            "write_word": max(width for _, width, _ in memories),
        }
        self.ports = [Signal(width, name=name) for name, width in widths.items()]
        for port in self.ports:
            setattr(self, port.name, port)
        self.advance = Signal()

    def elaborate(self, platform):
        self.m = m = Module()
        m.d.comb += [self.advance.eq(self.out_ready | ~self.out_valid), self.in_ready.eq(self.advance)]
        self.reads, self.clocks, self.block_rams = 0, 0, 0
        # The write port's register: a word reaches its memory a clock later.
        write = {}
        for name in ("write_enable", "write_memory", "write_address", "write_word"):
            signal = getattr(self, name)
            write[name] = Signal(len(signal), name=name + "_held")
            m.d.sync += write[name].eq(signal)
        self.write = write
        out = self.stages({"valid": self.in_valid, "key": self.in_key})
        out = self.register(out)
        m.d.comb += [
            self.out_valid.eq(out["valid"]),
            self.out_key.eq(out["key"]),
            self.out_level.eq(out["level"]),
            self.out_bit.eq(out["bit"]),
            self.out_address.eq(out["address"]),
        ]
        return m

    def stages(self, lookup):
        """From a lookup with `valid` and `key` to one with `level`, `bit` and `address`, too."""
        raise NotImplementedError

    def register(self, lookup, waits=True):
        """The same lookup a clock later."""
        self.clocks += 1
        later = {}
        for name, value in lookup.items():
            later[name] = Signal(len(value), name=f"{name}_{self.clocks}")
            if waits:
                with self.m.If(self.advance):
                    self.m.d.sync += later[name].eq(value)
            else:
                self.m.d.sync += later[name].eq(value)
        return later

    def read(self, name, address, lookup, copy=0):
        """The word at this address of a memory, and the lookup that it belongs to, two clocks later: one in the block
        RAM, one to choose among banks, and one between them if `registered`. `copy` numbers the copies of a memory that
        several stages read."""
        number = next(i for i, memory in enumerate(self.memories) if memory[0] == name)
        _, width, depth = self.memories[number]
        self.reads += 1
        self.block_rams += block_rams(width, depth)
        fault = self.fault if self.reads == self.faulty_read else None
        if fault == "shift":
            address = address[1:] if len(address) > 1 else Const(0, 1)
        first = self.register(lookup, waits=fault != "stall")
        if fault == "register":
            self.clocks -= 1
            late = {**lookup, "valid": first["valid"]}
        else:
            late = first
        if self.registered:
            late = self.register(late)
        word = self.banks(f"{name}_{copy}", number, width, depth, address)
        return word, self.register(late)

    def banks(self, name, number, width, depth, address):
        m, count = self.m, -(-depth // BANK)
        rows = depth if count == 1 else BANK
        row_bits = bits(rows)
        row, bank = address[:row_bits], address[row_bits:]
        held = self.write
        words = []
        for index in range(count):
            data, enable = Signal(width, name=f"{name}_data{index}"), Signal(name=f"{name}_write{index}")
            here = (held["write_address"][row_bits:] == index) if count > 1 else 1
            m.d.comb += enable.eq(held["write_enable"] & (held["write_memory"] == number) & here)
            read_row = Signal(row_bits, name=f"{name}_row{index}")
            m.d.comb += read_row.eq(row)
            m.submodules[f"{name}_{index}"] = Instance(
                "bank",
                p_WIDTH=width,
                p_DEPTH=rows,
                p_ADDRESS=row_bits,
                p_REGISTERED=int(self.registered),
                i_clk=ClockSignal(),
                i_read_enable=self.advance,
                i_read_address=read_row,
                o_read_data=data,
                i_write_enable=enable,
                i_write_address=held["write_address"][:row_bits],
                i_write_data=held["write_word"][:width],
            )
            words.append(data)
        word = Signal(width, name=f"{name}_word")
        if count == 1:
            chosen = words[0]
        else:
            read_from = bank
            for later in range(1 + self.registered):
                earlier, read_from = read_from, Signal(bits(count), name=f"{name}_bank{later}")
                with m.If(self.advance):
                    m.d.sync += read_from.eq(earlier)
            chosen = Array(words)[read_from]
        with m.If(self.advance):
            m.d.sync += word.eq(chosen)
        return word
