"""The router and its neighbours, in network namespaces.

    a --dA-- router --dB-- b      b and c have the same addresses beside their own: what is shared between two links goes
               |                  to either.
               dC (MTU 1400)-- c

The links and namespaces are those of the test with daemons (../live/daemons.py): 10.9.N.0/24 and fd09:N::/64, the router is
.1, the neighbour .2.
"""

import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

import daemons
import lab
import wire
from lab import Failed

SMALL_MTU = 1400
# Addresses that both b and c have, and one of c alone.
SHARED = {4: "198.51.100.1", 6: "2001:db8:100::1"}
OF_C = {4: "203.0.113.1", 6: "2001:db8:113::1"}
# The neighbours themselves. Only a few packets wait until the MAC address of one is known: it must be, before packets are counted.
NEIGHBOURS = [{4: f"10.9.{number}.2", 6: f"fd09:{number}::2"} for number in (2, 3)]
OF_A = {4: "10.9.1.2", 6: "fd09:1::2"}
ROUTER = {4: "10.9.1.1", 6: "fd09:1::1"}
DEVICES = {"a": "dA", "b": "dB", "c": "dC"}
HTTP = "127.0.0.1:9180"
PREFIX = {4: "/32", 6: "/128"}


def build():
    """Namespaces, links, addresses, and the neighbours' default routes. The kernel does not forward."""
    lab.sysctl("net.ipv4.ip_forward=0", "net.ipv6.conf.all.forwarding=0", "net.ipv4.conf.all.rp_filter=0")
    daemons.links()
    for each in daemons.NEIGHBOURS:
        for device, where in ((each.device, ()), (f"{each.device}-far", ("-n", each.name))):
            if each.name == "c":
                lab.run("ip", *where, "link", "set", device, "mtu", str(SMALL_MTU))
        netns = ("-n", each.name)
        lab.run("ip", *netns, "route", "add", "default", "via", f"{each.net4}1")
        lab.run("ip", *netns, "-6", "route", "add", "default", "via", f"{each.net6}1")
        if each.name in "bc":
            for address in SHARED.values():
                lab.run("ip", *netns, "address", "add", address, "dev", "lo")
    for address in OF_C.values():
        lab.run("ip", "-n", "c", "address", "add", address, "dev", "lo")


def kernel_routes():
    """The routes to what b and c have, in the router's kernel."""
    for family, prefix, ways in routes():
        hops = [word for via in ways for word in ("nexthop", "via", via)] if len(ways) > 1 else ["via", ways[0]]
        lab.run("ip", f"-{family}", "route", "add", prefix, *hops)


def routes():
    yield 4, "198.51.100.0/24", ["10.9.2.2", "10.9.3.2"]
    yield 6, "2001:db8:100::/48", ["fd09:2::2", "fd09:3::2"]
    yield 4, "203.0.113.0/24", ["10.9.3.2"]
    yield 6, "2001:db8:113::/48", ["fd09:3::2"]


def port(kind, device):
    """A port of that kind on an interface."""
    return f"dpdk:net_af_xdp_{device},iface={device}" if kind == "dpdk" else f"{kind}:{device}"


class Fibula:
    """The router's process. FIBULA_ROUTER may name another program, which takes the same arguments:
    crates/router/examples/kernel."""

    def __init__(self, kind, source):
        program = os.environ.get("FIBULA_ROUTER")
        if program:
            command = program.split()
        else:
            target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
            command = [os.environ.get("FIBULA_BIN") or str(target / "debug" / "fibula"), "route"]
        ports = [word for device in DEVICES.values() for word in ("--port", port(kind, device))]
        # DPDK attaches XDP programs that outlive a process that is killed.
        self.leaves_programs = kind == "dpdk"
        self.kind, self.is_other = kind, bool(program)
        self.is_fast = kind == "xdp"
        if self.is_fast:
            ports += ["--http", HTTP]
        # The example takes routes from the kernel, whoever installs them.
        self.reads_kernel = bool(program) or "--kernel" in source
        # Seconds until it knows that a link is down. The example asks for the whole table again.
        self.grace = 5 if program else 0.5
        self.daemon = lab.Daemon("fibula", [*command, *source, *ports])

    def is_built(self):
        """Whether it has such ports."""
        if "FIBULA_ROUTER" in os.environ:
            return False
        return subprocess.run([*self.daemon.command, "--check"], capture_output=True, check=False).returncode == 0

    def start(self):
        """Returns the seconds until it forwards."""
        begin = time.monotonic()
        self.daemon.start()
        self.until_forwards()
        return time.monotonic() - begin

    def until_forwards(self, seconds=15):
        """Waits until all links work in both families."""
        waiting = [(family, target) for family in (4, 6) for target in (*NEIGHBOURS, SHARED, OF_C)]
        end = time.monotonic() + seconds
        sockets = {family: wire.Icmp("a", family) for family in (4, 6)}
        while waiting:
            family, target = waiting[0]
            if not self.daemon.is_running():
                raise Failed(f"the router ended with {self.daemon.process.returncode}:\n{self.daemon.tail()}")
            if sockets[family].ping(target[family], 1, seconds=0.1):
                waiting.pop(0)
            elif time.monotonic() > end:
                raise Failed(f"after {seconds} s no answer from {target[family]}:\n{self.daemon.tail()}")
        for each in sockets.values():
            each.close()

    def in_kernel(self):
        """Packets that programs in the kernel have forwarded."""
        return sum(self.metric("xdp_packets").values())

    def passed_on(self):
        """Packets that these programs have passed on, by reason."""
        found = collections.Counter()
        for labels, count in self.metric("xdp_passed").items():
            found[re.search(r'reason="(\w+)"', labels).group(1)] += count
        return found

    def ask(self, path):
        """What it answers over HTTP."""
        with urllib.request.urlopen(f"http://{HTTP}/{path}") as answer:
            return answer.read().decode()

    def metric(self, name):
        """The values of a metric of the router, by labels."""
        text = self.ask("metrics")
        found = re.findall(rf"^fibula_router_{name}_total\{{(.*)\}} (\d+)$", text, re.M)
        return {labels: int(count) for labels, count in found}

    def stop(self, number=signal.SIGTERM):
        seconds = self.daemon.stop(number)
        # Another program may leave the signal to the system.
        good = (0, -number) if "FIBULA_ROUTER" in os.environ else (0,)
        if number == signal.SIGTERM and self.daemon.process.returncode not in good:
            raise Failed(f"the router ended with {self.daemon.process.returncode}:\n{self.daemon.tail()}")
        return seconds


def own_devices():
    """The devices by which the router gives packets to the kernel."""
    return [each["ifname"] for each in json.loads(lab.run("ip", "-j", "link")) if each["ifname"].startswith("fibula")]


def prepare(kind):
    """What the links' other ends have to be like. An interface of a pair takes packets of programs if the other one has NAPI,
    as with merging; and a program cannot complete the checksums that a kernel leaves to a device."""
    for name, device in DEVICES.items():
        wire.offload(name, f"{device}-far", wire.ETHTOOL_SGRO, kind == "xdp")
        wire.offload(name, f"{device}-far", wire.ETHTOOL_STXCSUM, kind != "xdp")


def attached(device):
    """Whether an XDP program is on the interface."""
    return "xdp" in json.loads(lab.run("ip", "-j", "link", "show", device))[0]
