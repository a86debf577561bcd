"""A TAP device as a port: pings of the kernel at its other end go through the router.

    namespace e: t0, the kernel's end (10.9.7.2) -- fibula (10.9.7.1, and 10.9.8.1 on e1) -- e1 -- f1 in namespace f (10.9.8.2)

The kernel of e has both subnets. Sockets that are bound to t0 send by it, and hear what comes by it alone.
"""

import json
import os
import pathlib

import lab
import wire
from lab import Failed, run

NETS = {4: ("10.9.7.", "10.9.8."), 6: ("fd09:7::", "fd09:8::")}
LENGTH = {4: 24, 6: 64}
KERNEL, ROUTER = "02:00:00:00:07:02", "02:00:00:00:07:03"
PINGS = 20


def build():
    for name in "ef":
        run("ip", "netns", "add", name)
        lab.sysctl(*lab.NO_DAD, "net.ipv4.conf.all.rp_filter=0", within=("ip", "netns", "exec", name))
    run("ip", "link", "add", "e1", "netns", "e", "type", "veth", "peer", "name", "f1", "netns", "f")
    run("ip", "-n", "e", "tuntap", "add", "t0", "mode", "tap")
    run("ip", "-n", "e", "link", "set", "t0", "address", KERNEL)
    lab.sysctl("net.ipv4.conf.t0.rp_filter=0", within=("ip", "netns", "exec", "e"))
    for name, device in (("e", "t0"), ("e", "e1"), ("f", "f1")):
        run("ip", "-n", name, "link", "set", device, "up")
    for family, (tap, link) in NETS.items():
        length = LENGTH[family]
        run("ip", "-n", "e", "address", "add", f"{tap}2/{length}", "dev", "t0")
        run("ip", "-n", "e", "address", "add", f"{link}1/{length}", "dev", "e1")
        run("ip", "-n", "f", "address", "add", f"{link}2/{length}", "dev", "f1")
        run("ip", "-n", "e", "neighbour", "add", f"{tap}1", "lladdr", ROUTER, "dev", "t0")
        run("ip", "-n", "e", f"-{family}", "route", "add", f"{link}/64" if family == 6 else f"{link}0/24",
            "via", f"{tap}1", "dev", "t0", "metric", "5000")
        run("ip", "-n", "f", f"-{family}", "route", "add", "default", "via", f"{link}1")


def router():
    table, hops = lab.LAB / "taps.txt", lab.LAB / "taps.hops"
    table.write_text("10.9.7.0/24 tap\n10.9.8.0/24 link\nfd09:7::/64 tap\nfd09:8::/64 link\n")
    hops.write_text("tap port 0\nlink port 1\n")
    said = [f"address={tap}1/{LENGTH[family]},neighbour={tap}2={KERNEL}" for family, (tap, _) in NETS.items()]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    program = os.environ.get("FIBULA_BIN") or str(target / "debug" / "fibula")
    return lab.Daemon("taps", [program, "route", "--table", str(table), "--next-hops", str(hops), "--json",
                               "--port", ",".join(["tap:t0", *said]), "--port", "afpacket:e1"], netns="e")


def run_all(say):
    """a TAP device as a port: pings of the kernel behind it"""
    build()
    fibula = router().start()
    for family, (_, link) in NETS.items():
        icmp = wire.Icmp("e", family, device="t0")
        lab.wait("an answer by way of the TAP device", lambda: icmp.ping(f"{link}2", 1, seconds=0.2), 15)
        answered = icmp.ping(f"{link}2", PINGS)
        icmp.close()
        if answered != PINGS:
            raise Failed(f"of {PINGS} pings by the TAP device {answered} were answered:\n{fibula.tail()}")
    fibula.stop()
    summary = json.loads(fibula.tail(1))
    for reason in ("forwarded_v4", "forwarded_v6"):
        if summary["reasons"][reason] < 2 * PINGS:
            raise Failed(f"the router did not forward the pings: {summary}")
    for name in "ef":
        run("ip", "netns", "del", name)
    say(f"        {run_all.__doc__}")
