"""The bench around a pipeline, which Icarus simulates: run by test_pipelines.py."""

import bisect
import collections
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge

from pipelines import offchip
from pipelines.tables import Tables

# Clocks between two reads off the chip, at most.
LATENCY = int(os.environ.get("LATENCY", "6"))
SEED = int(os.environ.get("SEED", "1"))


class Bench:
    """Drives keys with pauses, takes outputs with stalls, finishes lookups off the chip, and writes words."""

    def __init__(self, dut, tables):
        self.dut, self.tables = dut, tables
        self.random = random.Random(SEED)
        self.words = tables.off_chip()
        self.numbers = {memory.name: number for number, memory in enumerate(tables.on_chip())}
        self.clock = 0
        # Keys to look up, and those in the pipeline: (clock, key, note).
        self.waiting, self.inside = collections.deque(), collections.deque()
        # Reads off the chip: (clock of the next, generator, memory, address, lookup); at most one lookup's at a time in
        # order.
        self.reading = []
        self.done = []
        self.writes = collections.deque()
        self.write_done = 0

    async def start(self):
        dut = self.dut
        for name in (
            "in_valid",
            "in_key",
            "out_ready",
            "write_enable",
            "write_memory",
            "write_address",
            "write_word",
            "rst",
        ):
            getattr(dut, name).value = 0
        cocotb.start_soon(Clock(dut.clk, 2, "ns").start())
        dut.rst.value = 1
        for _ in range(3):
            await FallingEdge(dut.clk)
        dut.rst.value = 0
        await FallingEdge(dut.clk)

    async def load(self):
        """The words that are not zero, by the write port."""
        for memory in self.tables.on_chip():
            for address, word in memory.words.items():
                self.writes.append((memory.name, address, word))
        while self.writes:
            await self.step(stalls=0)
        await self.step(stalls=0)
        await self.step(stalls=0)

    async def step(self, stalls=0.2, pauses=0.2):
        """A clock: at its falling edge the inputs are set and the outputs looked at; the rising edge takes both."""
        dut = self.dut
        ready = self.random.random() >= stalls
        dut.out_ready.value = ready
        offer = bool(self.waiting) and self.random.random() >= pauses
        dut.in_valid.value = offer
        if offer:
            dut.in_key.value = self.waiting[0][0]
        self.write()
        await RisingEdge(dut.clk)
        # Values of just before the edge.
        if offer and dut.in_ready.value:
            key, note = self.waiting.popleft()
            self.inside.append((self.clock, key, note))
        if ready and dut.out_valid.value:
            self.take()
        self.read()
        self.clock += 1
        await FallingEdge(dut.clk)

    def write(self):
        dut = self.dut
        dut.write_enable.value = 0
        if not self.writes:
            return
        name, address, word = self.writes.popleft()
        if name in self.numbers:
            dut.write_enable.value = 1
            dut.write_memory.value = self.numbers[name]
            dut.write_address.value = address
            dut.write_word.value = word
            # A register before the memory.
            self.write_done = self.clock + 2
        else:
            self.words[name][address] = word

    def take(self):
        dut = self.dut
        begun, key, note = self.inside.popleft()
        out = int(dut.out_key.value)
        assert out == key, f"the output is for {out:x}, the next key was {key:x}"
        fields = [int(signal.value) for signal in (dut.out_level, dut.out_bit, dut.out_address)]
        reads = offchip.OF_SCHEME[self.tables.scheme](self.tables, key, *fields)
        self.go_on(reads, None, (begun, key, note))

    def go_on(self, reads, word, lookup):
        try:
            memory, address = reads.send(word)
        except StopIteration as end:
            self.done.append((*lookup, end.value, self.clock))
            return
        self.reading.append((self.clock + self.random.randrange(LATENCY), reads, memory, address, lookup))

    def read(self):
        """Reads off the chip whose time has come, with the words of now."""
        due, self.reading = (
            [r for r in self.reading if r[0] <= self.clock],
            [r for r in self.reading if r[0] > self.clock],
        )
        for _, reads, memory, address, lookup in due:
            self.go_on(reads, self.words[memory].get(address, 0), lookup)

    def is_busy(self):
        return bool(self.waiting or self.inside or self.reading)


@cocotb.test()
async def answers(dut):
    """Every key of the file, in order, with random pauses and stalls."""
    tables = Tables(os.environ["TABLES"])
    bench = Bench(dut, tables)
    await bench.start()
    await bench.load()
    expected = []
    for number, (key, code) in enumerate(tables.keys()):
        bench.waiting.append((key, number))
        expected.append(code)
    while bench.is_busy():
        await bench.step()
        for _, key, number, code, _ in bench.done:
            assert code == expected[number], f"{key:x}: {code:x} in place of {expected[number]:x}"
            expected[number] = None
        bench.done.clear()
    assert not any(code is not None for code in expected), "an answer is missing"
    dut._log.info("%d keys in %d clocks, 0 wrong", len(expected), bench.clock)


@cocotb.test(skip=not os.path.exists(os.path.join(os.environ["TABLES"], "updates.txt")))
async def updates(dut):
    """Lookups of the keys around the changed prefixes while their words are written, one update behind the other. A
    lookup has an answer of a time between its beginning and its end: that of before an update if it was over before the
    first word, that of after it if it began when the last was written, and beside the words either."""
    tables = Tables(os.environ["TABLES"])
    bench = Bench(dut, tables)
    await bench.start()
    await bench.load()
    changes = list(tables.updates())
    answers = tables.answers(changes)
    # For each number of updates: the clock at which so many had begun, and had been written.
    begun_at, written_at = [0], [0]
    steps, drained_from, beside = collections.deque(), None, 0
    while True:
        number = len(begun_at) - 1
        is_over = not steps and number == len(changes) and len(written_at) == len(begun_at)
        if len(bench.waiting) < 2 and not (is_over and bench.clock > written_at[-1] + 20):
            # Keys of this update, and at times of those beside it, whose chunks may become others'.
            of = min(len(changes), max(1, number + bench.random.choice((0, 0, 0, -1, -1, 1)))) - 1
            bench.waiting.append((bench.random.choice(changes[of].keys)[0], None))
        if drained_from is not None:
            oldest = [begun for begun, *_ in bench.inside] + [r[4][0] for r in bench.reading]
            if not oldest or min(oldest) >= drained_from:
                drained_from = None
        if drained_from is None and not bench.writes:
            if not any(steps) and len(written_at) < len(begun_at):
                written_at.append(max(bench.clock, bench.write_done))
            if steps and steps[0] is None:
                steps.popleft()
                drained_from = max(bench.clock, bench.write_done)
            elif steps and bench.random.random() < 0.7:
                bench.writes.append(steps.popleft())
            elif not steps and number < len(changes):
                steps = collections.deque(ordered(changes[number].steps))
                begun_at.append(bench.clock)
        await bench.step()
        for begun, key, _, code, ended in bench.done:
            first = bisect.bisect_right(written_at, begun) - 1
            last = bisect.bisect_right(begun_at, ended) - 1
            allowed = {answers[key][at] for at in range(first, last + 1)}
            beside += len(allowed) > 1
            told = f"{key:x} beside {[update.prefix for update in changes[first:last]]}"
            assert code in allowed, f"{told}: {code:x} is none of {[f'{a:x}' for a in allowed]}"
        bench.done.clear()
        if is_over and bench.clock > written_at[-1] + 20 and not bench.is_busy():
            break
    assert beside > 0, "no lookup was beside a change of its answer"
    dut._log.info("%d updates, %d lookups beside a change, in %d clocks", len(changes), beside, bench.clock)


def ordered(steps):
    """The steps of an update, or a wrong order of them that was planted."""
    fault = os.environ.get("ORDER")
    if fault == "reversed":
        return steps[::-1]
    if fault == "no-wait":
        return [step for step in steps if step]
    return steps
