#!/usr/bin/env python3
"""Makes the cuts of real files in this folder again. Usage: cut.py SHARED

SHARED is the folder with the whole files, as its data/README.md lists them. `bgpdump` (1.6.2) must be
installed. The archives hold no times, so a second run with the same zlib and liblzma changes no byte.
"""

import gzip
import ipaddress
import lzma
import shutil
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
WHOLE_MRT = [
    "bgpkit-ripe_rrc00_2000.01_updates.20000102.2014.gz",
    "bgpkit-ripe_rrc01_2000.11_updates.20001104.0124.gz",
    "bgpkit-ripe_rrc03_2010.02_updates.20100227.1600.first-796-records.gz",
    "bgpkit-ripe_rrc15_2010.02_updates.20100227.1610.gz",
    "pyasn-bview.20140112.1600_3samples.bz2",
]
# Bytes of archives of which only a beginning was kept in the first place.
FIRST_BYTES = [
    ("pyasn-rib.20080501.0644_firstMB.bz2", "pyasn-rib.20080501.0644_first{}.bz2"),
    ("pyasn-rib.20140523.0600_firstMB.bz2", "pyasn-rib.20140523.0600_first{}.bz2"),
    ("pyasn-rib6.20151101.0600_firstMB.bz2", "pyasn-rib6.20151101.0600_first{}.bz2"),
]
# What bgpdump cannot read; crates/ingest/tests/bgpdump.rs says why.
NOT_FOR_BGPDUMP = ("rrc00_2000.01", "bird_bgp", "bird6_bgp", "table-mp", "3samples")
HEADER = struct.Struct(">IHHI")  # time, type, subtype, length
BGP4MP, BGP4MP_ET = 16, 17


def records(mrt, more=0):
    """The records, header and body; `more`: bytes that the declared lengths leave out."""
    at = 0
    while at < len(mrt):
        end = at + HEADER.size + HEADER.unpack_from(mrt, at)[3] + more
        yield mrt[at:end]
        at = end


def write_gz(path, content):
    path.write_bytes(gzip.compress(content, 9, mtime=0))


def write_xz(path, lines):
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))


def bgpdump(mrt):
    """The lines that `bgpdump -m` prints."""
    done = subprocess.run(["bgpdump", "-m", mrt], capture_output=True, check=True, text=True)
    return done.stdout.splitlines()


def first_records(source, target, count, more=0):
    kept = list(records(gzip.decompress(source.read_bytes()), more))[:count]
    write_gz(target, b"".join(kept))


def after_first_block(bz2):
    """How many bytes hold the first block of a bzip2 file, and a thousand more."""
    magic, window = 0x314159265359, 0
    seen = 0
    for at, byte in enumerate(bz2):
        for bit in range(7, -1, -1):
            window = (window << 1 | byte >> bit & 1) & (1 << 48) - 1
            if window == magic:
                seen += 1
                if seen == 2:
                    return at + 1000
    raise ValueError("one block only")


def extended(record, number):
    """The same record as BGP4MP_ET: microseconds after the header, and counted in the length."""
    time, kind, subtype, length = HEADER.unpack_from(record)
    assert kind == BGP4MP
    micros = struct.pack(">I", number * 7919 % 1_000_000)
    return HEADER.pack(time, BGP4MP_ET, subtype, length + 4) + micros + record[HEADER.size :]


def broken_off():
    """An update of two prefixes, of which the second lacks a byte, and a sound one after it.

    The first has bits beyond its length: 198.51.255.0/20 is 198.51.240.0/20."""

    def message(nlri):
        attributes = bytes.fromhex("40010100" "4002040201fde8" "400304c0000201")
        update = struct.pack(">HH", 0, len(attributes)) + attributes + nlri
        bgp = b"\xff" * 16 + struct.pack(">HB", 19 + len(update), 2) + update
        peer = struct.pack(">HHHH", 65000, 65001, 0, 1) + bytes([192, 0, 2, 1, 192, 0, 2, 2])
        return HEADER.pack(1_400_000_000, BGP4MP, 1, len(peer + bgp)) + peer + bgp

    first = bytes([20, 198, 51, 255])
    return message(first + bytes([24, 203, 0])) + message(bytes([24, 203, 0, 113]))


def mrt(data, out):
    for name in WHOLE_MRT:
        shutil.copyfile(data / name, out / name)
    samples = out / "mrtparse-samples"
    samples.mkdir(exist_ok=True)
    for file in (data / "mrtparse-samples").iterdir():
        if not file.suffix:  # the others are the configurations that made them
            shutil.copyfile(file, samples / file.name)
    first_records(
        data / "bgpkit-ripe_rrc00_1999.09_updates.19990903.1041.gz",
        out / "bgpkit-ripe_rrc00_1999.09_updates.19990903.1041.first-1500-records.gz",
        1500,
    )
    # Each record of this one is four bytes longer than it says.
    first_records(
        data / "bgpkit-ripe_rrc00_2000.01_bview.20000111.0032.gz",
        out / "bgpkit-ripe_rrc00_2000.01_bview.20000111.0032.first-20-records.gz",
        20,
        more=4,
    )
    for name, cut in FIRST_BYTES:
        whole = (data / name).read_bytes()
        size = after_first_block(whole)
        (out / cut.format(size)).write_bytes(whole[:size])
    rrc15 = data / "bgpkit-ripe_rrc15_2010.02_updates.20100227.1600.gz"
    kept = list(records(gzip.decompress(rrc15.read_bytes())))[:1500]
    et = b"".join(extended(record, number) for number, record in enumerate(kept))
    write_gz(out / "et-of-rrc15_2010.02_updates.20100227.1600.first-1500-records.gz", et)
    (out / "made-updates.broken-off").write_bytes(broken_off())
    expect = out / "expect"
    expect.mkdir(exist_ok=True)
    for file in [*out.iterdir(), *samples.iterdir()]:
        if file.is_file() and not any(part in file.name for part in NOT_FOR_BGPDUMP):
            write_xz(expect / f"{file.name}.bgpdump.xz", bgpdump(file))


def within(first, last):
    first, last = (int(ipaddress.IPv4Address(address)) for address in (first, last))
    return lambda address: first <= int(ipaddress.IPv4Address(address)) <= last


def tables(data, out):
    # Whole /8s, so that no prefix loses those that it lies in.
    keep = within("41.0.0.0", "61.255.255.255")
    with gzip.open(data / "ipasn_20140513.dat.gz", "rt") as lines:
        cut = [line.rstrip() for line in lines if line[0] == ";" or keep(line.split("/")[0])]
    write_xz(out / "ipasn_20140513-41-61.dat.xz", cut)
    with lzma.open(data / "ip-location-db-20260617-asn-ranges-v4.csv.xz", "rt") as lines:
        # The only two ranges that overlap are at 215.0.0.0.
        keep = within("213.0.0.0", "215.255.255.255")
        cut = [line.rstrip() for line in lines if keep(line.split(",")[0])]
    write_xz(out / "ip-location-db-20260617-asn-ranges-v4-213-215.csv.xz", cut)
    # The first route of each prefix, with the last AS of its path; 0 where that is a set.
    origins = {}
    for line in bgpdump(data.parent / "mrt/pyasn-rib6.20151101.0600_firstMB.bz2"):
        fields = line.split("|")
        origin = fields[6].split(" ")[-1]
        origins.setdefault(fields[5], origin if origin.isdigit() else "0")
    write_xz(out / "pyasn-rib6.20151101-v6-asn.tsv.xz", map("\t".join, origins.items()))
    name = "ipranges-20260822-provider-prefixes.tsv.xz"
    shutil.copyfile(data / name, out / name)


def traffic(data, out):
    keep = within("40.0.0.0", "62.255.255.255")
    with lzma.open(data / "ipsum-20260822-v4-addresses.txt.xz", "rt") as lines:
        cut = [line.rstrip() for line in list(lines)[:40_000] if keep(line.rstrip())]
    write_xz(out / "ipsum-20260822-v4-addresses-40-62.txt.xz", cut)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for make in (mrt, tables, traffic):
        folder = HERE / make.__name__
        folder.mkdir(exist_ok=True)
        make(Path(sys.argv[1]) / "data" / make.__name__, folder)
