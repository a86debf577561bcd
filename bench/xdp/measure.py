"""The fast path of `fibula route` beside other forwarders, over pairs of virtual interfaces between network namespaces:

    generator --> forwarder --> sink      a core makes packets, another one forwards and drops them

    kernel       the kernel's own forwarding
    fib_lookup   an XDP program with bpf_fib_lookup and the kernel's table
    bare         a loop over AF_XDP's sockets that only writes MAC addresses (bare.c): what such sockets can do at most
    afxdp, xdp   fibula route with ports of these kinds

All forwarders have the same routes, all by one gateway; destinations are random addresses within random routes. Forwarders are
set up once and measured in turns. Root, Linux 6, clang, bpftool, iproute2.

    python3 bench/xdp/measure.py --fibula target/release/fibula [--v4 900000] [--v6 200000] [--rounds 3]
"""

import argparse
import ctypes
import ipaddress
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
TARGETS = 1 << 18
SYS_BPF = 321 if os.uname().machine == "x86_64" else 280
OBJ_GET, TEST_RUN = 7, 10
GEN, SINK = "fibxdp-gen", "fibxdp-sink"
# Forwarder: its namespace, and the number of its links.
FORWARDERS = {"kernel": ("fibxdp-kernel", 1), "fib_lookup": ("fibxdp-kernel", 2), "afxdp": ("fibxdp-afxdp", 3),
              "xdp": ("fibxdp-xdp", 4), "bare": ("fibxdp-bare", 5)}


def run(*words, **options):
    done = subprocess.run(words, text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def mac(number, side):
    return f"02:00:00:00:{number:02x}:{side:02x}"


def bpf(command, arguments):
    buffer = ctypes.create_string_buffer(arguments, len(arguments))
    result = ctypes.CDLL(None, use_errno=True).syscall(SYS_BPF, command, buffer, len(arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return result


def pinned(path):
    name = ctypes.create_string_buffer(str(path).encode())
    return bpf(OBJ_GET, struct.pack("QII", ctypes.addressof(name), 0, 0))


def generate(program, interface, seconds):
    """Run in the generator's namespace: packets as fast as they are taken."""
    os.sched_setaffinity(0, {0})
    program, frame = pinned(program), ctypes.create_string_buffer(64)
    context = struct.pack("6I", 0, 64, 0, interface, 0, 0)
    held = ctypes.create_string_buffer(context, len(context))
    run = struct.pack("IIIIQQIIIIQQIIII", program, 0, 64, 0, ctypes.addressof(frame), 0, 1 << 18, 0, len(context), 0,
                      ctypes.addressof(held), 0, 2, 0, 64, 0)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        bpf(TEST_RUN, run)


def namespaces(pin):
    """Namespaces, links, addresses, neighbours, programs that drop."""
    for name in {GEN, SINK, *(name for name, _ in FORWARDERS.values())}:
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
    for forwarder, (name, number) in FORWARDERS.items():
        link(GEN, f"g{number}", mac(number, 1), name, f"in{number}", mac(number, 2))
        run("ip", "-n", name, "address", "add", f"10.99.{number}.1/24", "dev", f"in{number}")
        if forwarder != "fib_lookup":  # which sends by the kernel's
            link(name, f"out{number}", mac(number, 3), SINK, f"s{number}", mac(number, 4))
            out = f"out{number}"
            run("ip", "-n", name, "address", "add", f"10.98.{number}.1/24", "dev", out)
            run("ip", "-n", name, "address", "add", f"fd98:{number}::1/64", "dev", out, "nodad")
            for address in (f"10.98.{number}.2", f"fd98:{number}::2"):
                run("ip", "-n", name, "neigh", "add", address, "lladdr", mac(number, 4), "dev", out, "nud", "permanent")
            run("ip", "-n", SINK, "link", "set", f"s{number}", "xdpdrv", "pinned", f"{pin}/drop")
        gro(name, f"in{number}")
        inside(name, "for each in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 >$each; done; "
                     f"echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding; "
                     f"echo 1 >/sys/class/net/in{number}/threaded")


def link(one, name, address, other, peer, peer_address):
    run("ip", "-n", one, "link", "add", name, "address", address, "type", "veth", "peer", "name", peer, "address",
        peer_address, "netns", other)
    run("ip", "-n", one, "link", "set", name, "up")
    run("ip", "-n", other, "link", "set", peer, "up")


def inside(name, script):
    return run("ip", "netns", "exec", name, "sh", "-c", script)


def gro(name, interface):
    """Without it, or a program, an interface of a pair does not take frames of programs."""
    sys.path.append(str(HERE.parent.parent / "crates/cli/tests/router"))
    import wire
    wire.offload(name, interface, wire.ETHTOOL_SGRO, True)


def routes(fibula, v4, v6):
    """The generated tables as text: by family."""
    found = {}
    for family, count in ((4, v4), (6, v6)):
        text = run(fibula, "gen", "table", f"v{family}:2024:{count}:1")
        found[family] = [line.split()[0] for line in text.splitlines() if "/" in line.split("\t")[0]]
    return found


def kernel_table(tables, folder):
    for family, prefixes in tables.items():
        via = "10.98.1.2" if family == 4 else "fd98:1::2"
        batch = folder / f"batch{family}"
        batch.write_text("".join(f"route add {prefix} via {via} dev out1\n" for prefix in prefixes))
        run("ip", "-n", "fibxdp-kernel", f"-{family}", "-force", "-batch", str(batch))


def targets(tables, pin):
    """Frames, and addresses within routes, into the generator's maps."""
    rng = random.Random(1)
    for number, (family, prefixes) in enumerate(tables.items()):
        path = f"{pin}/targets"
        memory = mmap.mmap(pinned(path), 2 * TARGETS * 32, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        bits = 32 if family == 4 else 128
        for at in range(TARGETS):
            prefix = ipaddress.ip_network(rng.choice(prefixes))
            address = int(prefix.network_address) | rng.randrange(prefix.num_addresses)
            packed = address.to_bytes(bits // 8, "big")
            check = checksum(header(packed)) if family == 4 else b"\0\0"
            entry = packed.ljust(16, b"\0") + check.ljust(16, b"\0")
            memory.seek((number * TARGETS + at) * 32)
            memory.write(entry)
        memory.close()


def header(destination):
    return struct.pack("!BBHHHBBH4s4s", 0x45, 0, 50, 0, 0, 64, 17, 0, bytes([198, 18, 0, 1]), destination)


def checksum(text):
    total = sum(struct.unpack(f"!{len(text) // 2}H", text))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", ~total & 0xFFFF)


def template(number, family, pin):
    """The frame to a forwarder's interface: 64 bytes, UDP without a checksum of what is in it."""
    link = bytes.fromhex(mac(number, 2).replace(":", "")) + bytes.fromhex(mac(number, 1).replace(":", ""))
    if family == 4:
        frame = link + b"\x08\0" + header(bytes(4)) + struct.pack("!HHHH", 1234, 9, 30, 0)
    else:
        source = ipaddress.ip_address("2001:db8::1").packed
        frame = link + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, 10, 17, 64) + source + bytes(16)
        frame += struct.pack("!HHHH", 1234, 9, 10, 0x1234)
    frame = frame.ljust(64, b"\0")
    key = f"{0 if family == 4 else 1} 0 0 0".split()
    run("bpftool", "map", "update", "pinned", f"{pin}/templates", "key", *key, "value", *map(str, frame))


def pin_threads(core):
    """The threads that poll forwarders' interfaces. They come and go with programs."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "comm").read_text()
        except OSError:
            continue
        if name.startswith("napi/in"):
            os.sched_setaffinity(int(process.name), {core})


def taken(number):
    """Packets that the sink has received."""
    text = inside(SINK, "cat /proc/net/dev")
    return next(int(line.split()[2]) for line in text.splitlines() if line.strip().startswith(f"s{number}:"))


def index(name, interface):
    return json.loads(run("ip", "-n", name, "-j", "link", "show", interface))[0]["ifindex"]


def rate(forwarder, family, seconds, pin):
    name, number = FORWARDERS[forwarder]
    template(number, family, pin)
    sink = 1 if forwarder == "fib_lookup" else number
    words = [sys.executable, __file__, "--generate", f"{pin}/make_v{family}", str(index(GEN, f"g{number}")), str(seconds + 1)]
    made = subprocess.Popen(["nsenter", f"--net=/run/netns/{GEN}", *words])
    time.sleep(0.6)
    begin, before = time.monotonic(), taken(sink)
    time.sleep(seconds)
    end, after = time.monotonic(), taken(sink)
    if made.wait() != 0:
        sys.exit("the generator failed")
    return (after - before) / (end - begin) / 1e6


def start(fibula, kind, v4, v6, folder):
    name, number = FORWARDERS[kind]
    hops = folder / f"{kind}.hops"
    hops.write_text(f"* via 10.98.{number}.2\n")
    words = [fibula, "route", "--table", f"gen:v4:2024:{v4}:1,gen:v6:2024:{v6}:1", "--next-hops", str(hops), "--cores", "1",
             "--port", f"{kind}:in{number}", "--port", f"{kind}:out{number}"]
    log = (folder / f"{kind}.log").open("wb")
    return subprocess.Popen(["nsenter", f"--net=/run/netns/{name}", *words], stdout=log, stderr=log)


def start_bare(pin, folder):
    name, number = FORWARDERS["bare"]
    run("ip", "-n", name, "link", "set", f"in{number}", "xdpdrv", "pinned", f"{pin}/to_socket")
    interfaces = [str(index(name, f"{end}{number}")) for end in ("in", "out")]
    words = [str(folder / "bare"), f"{pin}/sockets", *interfaces, mac(number, 4), mac(number, 3)]
    log = (folder / "bare.log").open("wb")
    return subprocess.Popen(["nsenter", f"--net=/run/netns/{name}", "taskset", "-c", "1", *words], stdout=log, stderr=log)


def wait_until_it_forwards(process, kind, pin):
    for _ in range(60):
        if process and process.poll() is not None:
            sys.exit(f"{kind} ended with {process.returncode}")
        if min(rate(kind, family, 0.2, pin) for family in (4, 6)) > 0.01:
            return
    sys.exit(f"{kind} does not forward")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--fibula", default="target/release/fibula")
    parser.add_argument("--v4", type=int, default=900_000)
    parser.add_argument("--v6", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--quiet", help="a command that is run before and after times are taken, with `on` and `off`")
    parser.add_argument("--generate", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.generate:
        program, interface, seconds = options.generate
        return generate(program, int(interface), float(seconds))
    folder, processes = pathlib.Path(tempfile.mkdtemp(prefix="fibxdp-")), []
    mount = folder / "bpf"
    mount.mkdir()
    try:
        run("mount", "-t", "bpf", "bpf", str(mount))
        measure(options, folder, mount / "all", processes)
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
            process.wait()
        for name in {GEN, SINK, *(name for name, _ in FORWARDERS.values())}:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["umount", str(mount)], capture_output=True)
        for log in folder.glob("*.log"):
            print(log.read_text(), file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)


def measure(options, folder, pin, processes):
    include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
    run("clang", "-target", "bpf", "-O2", "-g", include, "-c", str(HERE / "programs.c"), "-o", str(folder / "programs.o"))
    run("bpftool", "prog", "loadall", str(folder / "programs.o"), str(pin), "type", "xdp", "pinmaps", str(pin))
    run("clang", "-O2", "-Wall", "-o", str(folder / "bare"), str(HERE / "bare.c"))
    namespaces(pin)
    tables = routes(options.fibula, options.v4, options.v6)
    print(f"{len(tables[4])} + {len(tables[6])} routes", flush=True)
    processes += [start(options.fibula, kind, options.v4, options.v6, folder) for kind in ("afxdp", "xdp")]
    processes.append(start_bare(pin, folder))
    kernel_table(tables, folder)
    targets(tables, pin)
    out = index("fibxdp-kernel", "out1")
    key, value = struct.pack("I", out), struct.pack("I", out)
    # Interfaces are those of the namespace that it is run in.
    there = ("nsenter", "--net=/run/netns/fibxdp-kernel")
    run(*there, "bpftool", "map", "update", "pinned", f"{pin}/interfaces", "key", *map(str, key), "value", *map(str, value))
    run("ip", "-n", "fibxdp-kernel", "link", "set", "in2", "xdpdrv", "pinned", f"{pin}/fib_lookup")
    for process, kind in zip((None, None, *processes), FORWARDERS):
        wait_until_it_forwards(process, kind, pin)
    if options.quiet:
        subprocess.run([*options.quiet.split(), "on"], check=True)
    pin_threads(1)
    found = {}
    try:
        for turn in range(options.rounds):
            for family in (4, 6):
                for forwarder in FORWARDERS:
                    mpps = rate(forwarder, family, options.seconds, pin)
                    found.setdefault((family, forwarder), []).append(mpps)
                    print(f"round {turn + 1}  IPv{family}  {forwarder:10}  {mpps:.3f} Mpps", flush=True)
    finally:
        if options.quiet:
            subprocess.run([*options.quiet.split(), "off"], check=True)
    for family in (4, 6):
        rival, bare = (statistics.median(found[family, each]) for each in ("fib_lookup", "bare"))
        for forwarder in FORWARDERS:
            all_of = found[family, forwarder]
            middle = statistics.median(all_of)
            print(f"IPv{family}  {forwarder:10}  {middle:.3f} Mpps ({min(all_of):.3f} to {max(all_of):.3f})  "
                  f"{middle / rival:.2f} x fib_lookup, {middle / bare:.2f} x bare")


if __name__ == "__main__":
    main()
