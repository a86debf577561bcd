"""What is read off the chip to finish a lookup. Each function is a generator: it yields (memory, address), is sent the
word, and returns the code of the hop, so that a test can let time pass between the reads."""

from .component import NO_LEVEL

# The first node of each level in `N`: in SAIL_B 2^level, in SAIL_U the levels one behind the other.
STARTS = {
    "sail-b": {level: 1 << level for level in range(25)},
    "sail-u": {6: 0, 12: 64, 18: 64 + 4096, 24: 64 + 4096 + (1 << 18)},
}


def sail_l(tables, key, level, bit, address):
    if level == 16:
        return (yield "N16", address)
    if bit:
        return (yield "N24", address)
    chunk = yield "C24", address
    return (yield "N32", chunk << 8 | key & 0xFF)


def bitmaps(tables, key, level, bit, address):
    starts = STARTS[tables.scheme]
    if bit:
        chunk = yield "C24", key >> 8
        if chunk:
            code = yield "N32", (chunk - 1) << 8 | key & 0xFF
            if code:
                return code
        code = yield "N", starts[24] + (key >> 8)
        if code:
            return code
    if level == NO_LEVEL:
        return 0
    return (yield "N", starts[level] + address)


def planb(tables, key, level, bit, address):
    if not bit:
        return address
    block = (1 << tables.memories["values"].width) - 1 - address
    low = key & ((1 << 64) - 1)
    first, end = (yield "long_starts", block), (yield "long_starts", block + 1)
    while first < end:
        middle = (first + end) // 2
        if (yield "long_lasts", middle) < low:
            first = middle + 1
        else:
            end = middle
    return (yield "long_codes", first)


def dxr(tables, key, level, bit, address):
    return address
    yield


def runmap(tables, key, level, bit, address):
    if not bit:
        return address
    record = yield "networks", address
    runs = (record & ((1 << 256) - 1)) >> (key & 0xFF)
    return (yield "network_codes", (record >> 256) + runs.bit_count() - 1)


OF_SCHEME = {"sail-l": sail_l, "sail-u": bitmaps, "sail-b": bitmaps, "planb": planb, "dxr": dxr, "runmap": runmap}


def finish(tables, words, key, level, bit, address):
    """The code, with all reads at once."""
    reads = OF_SCHEME[tables.scheme](tables, key, level, bit, address)
    word = None
    try:
        while True:
            memory, at = reads.send(word)
            word = words[memory].get(at, 0)
    except StopIteration as end:
        return end.value
