"""The steps of the test, in order. Every packet is counted."""

import signal
import time

import daemons
import lab
import linux
import town
import wire
from lab import Failed, run
from town import OF_A, OF_C, ROUTER, SHARED, SMALL_MTU

STEPS = []
PORT = 9000
BEHIND_D = {4: "10.9.4.1", 6: "fd09:4::1"}


def step(function):
    """Registers a step; its docstring is what is said of it."""
    STEPS.append(function)
    return function


class Here:
    """What steps share: the router's process, and what is said of a step."""

    def __init__(self, fibula, packets, frr):
        self.fibula = fibula
        self.packets = packets
        self.frr = frr  # None: the kernel's routes are those of `town`
        self.notes = []

    @property
    def is_kernel(self):
        return self.frr is None

    def known(self, address):
        """What the kernel, FRR and the router know of an address, for the message of an error."""
        said = {"the kernel": run("ip", "route", "get", address)}
        if self.frr:
            said["FRR"] = daemons.vtysh(f"show {'ipv6' if ':' in address else 'ip'} route {address}")
        if self.fibula.is_fast:
            said["the router"] = self.fibula.ask(f"v1/lookup/{address}")
        return "".join(f"\n{who}: {text.strip()}" for who, text in said.items())


def check(what, found, expected):
    if found != expected:
        raise Failed(f"{what}: {found}, not {expected}")


def count(here, what, family, target, senders, sinks, may_lose=0, **options):
    """Datagrams from a to a target, by several flows; all arrive once, or as many are lost as may be."""
    out = [wire.udp("a", OF_A[family]) for _ in range(senders)]
    into = [wire.udp(sink, target, PORT) for sink in sinks]
    found = wire.datagrams(out, target, PORT, into, options.pop("packets", here.packets), **options)
    for each in (*out, *into):
        each.close()
    if found.lost > may_lose or found.twice or found.wrong:
        raise Failed(f"{what}: of {found.sent} datagrams {found.lost} are lost, {found.twice} came twice, {found.wrong} are not "
                     f"as they were sent; by receiver: {found.got}")
    return found


@step
def ping(here):
    """ping: through the router, to the router, in both families"""
    for family in (4, 6):
        icmp = wire.Icmp("a", family)
        for target in (ROUTER, OF_C, SHARED):
            for size in (0, 56, 1300):
                check(f"answers from {target[family]} ({size} bytes)", icmp.ping(target[family], 5, size), 5)
        icmp.close()


@step
def traceroute(here):
    """traceroute: the router shows itself"""
    for family in (4, 6):
        check("the way", wire.trace("a", OF_C[family]), [ROUTER[family], OF_C[family]])


@step
def udp(here):
    """UDP: every datagram arrives once, as it was sent, small and large"""
    for family in (4, 6):
        for size in (18, 400, 1300):
            count(here, f"UDP of {size} bytes", family, OF_C[family], 4, ["c"], size=size)
    here.notes.append(f"6 x {here.packets} datagrams")


@step
def fast(here):
    """programs in the kernel forward all of them; where an interface takes none, the socket does"""
    if not here.fibula.is_fast:
        here.notes.append("not with these ports")
        return
    for family in (4, 6):
        before, passed = here.fibula.in_kernel(), here.fibula.passed_on()
        count(here, "by programs", family, OF_C[family], 4, ["c"])
        found = here.fibula.in_kernel() - before
        passed = here.fibula.passed_on() - passed
        # One checksum in 65,536 looks like one that is left to a device.
        if found + min(passed["checksum"], 2) < here.packets:
            raise Failed(f"of {here.packets} datagrams {found} were forwarded in the kernel; passed on: {dict(passed)}")
        here.notes.append(f"{found} of {here.packets}")
    wire.offload("c", "dC-far", wire.ETHTOOL_SGRO, False)
    time.sleep(1)
    before = here.fibula.in_kernel()
    for family in (4, 6):
        count(here, "to an interface that takes none", family, OF_C[family], 4, ["c"])
    found = here.fibula.in_kernel() - before
    check("packets that were forwarded in the kernel to an interface that takes none", found, 0)
    wire.offload("c", "dC-far", wire.ETHTOOL_SGRO, True)
    time.sleep(1)
    # A kernel that leaves checksums to a device: its packets are completed by user space.
    wire.offload("a", "dA-far", wire.ETHTOOL_STXCSUM, True)
    for family in (4, 6):
        count(here, "without checksums", family, OF_C[family], 4, ["c"])
    wire.offload("a", "dA-far", wire.ETHTOOL_STXCSUM, False)


@step
def tcp(here):
    """TCP: large transfers, in both directions"""
    for family in (4, 6):
        for sender, source, receivers, target in (("a", OF_A, ["c"], OF_C), ("c", OF_C, ["a"], OF_A),
                                                  ("a", OF_A, ["b", "c"], SHARED)):
            is_whole, size, seconds = wire.transfer(sender, source[family], receivers, target[family], PORT, 4 << 20)
            if not is_whole:
                raise Failed(f"TCP from {sender} to {target[family]}: {size} bytes arrived in {seconds:.1f} s, or other ones than "
                             "were sent")
            here.notes.append(f"{size / seconds / 1e6:.0f} MB/s")


@step
def mtu(here):
    """path MTU discovery; IPv4 fragments where the sender allows it"""
    for family in (4, 6):
        headers = 28 if family == 4 else 48
        found = wire.path_mtu("a", OF_A[family], OF_C[family], PORT, 1500 - headers)
        check("the path's MTU", found, SMALL_MTU)
    sender = wire.udp("a", OF_A[4])
    sender.setsockopt(wire.socket.IPPROTO_IP, wire.IP_MTU_DISCOVER, wire.IP_PMTUDISC_DONT)
    # The kernel remembers the smaller MTU, and would cut the datagram itself.
    run("ip", "-n", "a", "route", "flush", "cache")
    receiver = wire.udp("c", OF_C[4], PORT)
    for size in (1472, 1373, 1372):
        text = wire.pattern(size, size)
        sender.sendto(text, (OF_C[4], PORT))
        if not wire.readable([receiver], 2) or receiver.recv(65536) != text:
            raise Failed(f"a datagram of {size} bytes did not arrive as it was sent")
    sender.close()
    receiver.close()


@step
def ecmp(here):
    """two links share the flows; every packet arrives, by either"""
    for family in (4, 6):
        found = count(here, "ECMP", family, SHARED[family], 256, ["b", "c"])
        if min(found.got) < found.sent / 4:
            raise Failed(f"of {found.sent} datagrams of 256 flows, b got {found.got[0]} and c {found.got[1]}")
        here.notes.append(f"{found.got[0]} and {found.got[1]}")


@step
def link(here):
    """a link fails: the other one takes all; it comes back"""
    run("ip", "link", "set", "dC", "down")
    time.sleep(here.fibula.grace)
    for family in (4, 6):
        found = count(here, "a link is down", family, SHARED[family], 64, ["b", "c"], packets=512)
        check("datagrams that arrived by the link that is up", found.got, [512, 0])
    run("ip", "link", "set", "dC", "up")
    restore(here)
    end = time.monotonic() + 15
    for family in (4, 6):
        # Daemons take a moment for it.
        while min(count(here, "the link is up again", family, SHARED[family], 64, ["b", "c"], packets=512).got) == 0:
            if time.monotonic() > end:
                raise Failed("the link that came up gets nothing")


def restore(here):
    """The kernel takes routes off a link that goes down, and does not put them back; zebra, which told the router in FPM that the link
    is back, does not tell the kernel."""
    if here.is_kernel:
        for family, prefix, _ in town.routes():
            lab.attempt("ip", f"-{family}", "route", "del", prefix)
        town.kernel_routes()
    elif here.fibula.reads_kernel:
        here.frr.restart()
        shared = next(prefix for _, prefix, ways in town.routes() if len(ways) > 1)
        lab.wait("the kernel has both links", lambda: lab.run("ip", "route", "show", shared).count("nexthop") == 2, 20)
    here.fibula.until_forwards()


@step
def as_linux(here):
    """frames that need more than to be sent on, once through Linux's forwarding and once through the router"""
    if not here.is_kernel or here.fibula.is_other:
        here.notes.append("with the kernel's routes alone")
        return
    linux.compare(here)


def until_zebra_has(here, device, prefixes):
    """Waits until zebra has the prefixes of an interface's addresses. It may miss what the kernel says of a new interface while it is
    busy with many routes: it is told again then."""
    def has(prefix):
        shown = daemons.vtysh(f"show {'ipv6' if ':' in prefix else 'ip'} route {prefix}")
        return device in shown

    for tries in range(3):
        try:
            lab.wait(f"zebra has {list(prefixes.values())}", lambda: all(map(has, prefixes.values())), 5)
            return
        except Failed:
            if tries == 2:
                raise
        here.notes.append("zebra missed the interface, and is told again")
        for address in prefixes:
            run("ip", "address", "del", address, "dev", device)
            run("ip", "address", "add", address, "dev", device, *(["nodad"] if ":" in address else []))


@step
def kernel_way(here):
    """routes over an interface that is no port: the kernel forwards their packets, as far as it may"""
    lab.link("dD", "10.9.4.1/24", "fd09:4::1/64", "d", "10.9.4.2/24", "fd09:4::2/64")
    if not here.is_kernel and not here.fibula.reads_kernel:
        until_zebra_has(here, "dD", {"10.9.4.1/24": "10.9.4.0/24", "fd09:4::1/64": "fd09:4::/64"})
    for family in (4, 6):
        run("ip", "-n", "d", f"-{family}", "route", "add", "default", "via", BEHIND_D[family])
    # What XDP sockets take comes to the kernel by a device of the router's.
    into = town.own_devices() if here.fibula.kind in ("afxdp", "xdp") else ["dA"]
    if len(into) != 1 and not here.fibula.is_other:
        raise Failed(f"the router has these devices in the kernel: {into}")
    may = [f"net.ipv4.conf.{device}.forwarding" for device in (*into, "dD")] + ["net.ipv6.conf.all.forwarding"]
    target = {4: "10.9.4.2", 6: "fd09:4::2"}
    for family in (4, 6):
        icmp = wire.Icmp("a", family)
        check("pings that are forwarded while the kernel may not", icmp.ping(target[family], 1, seconds=0.2), 0)
        lab.sysctl(*(f"{each}=1" for each in may))
        # The route has to reach the router, and the kernel asks for the neighbour.
        try:
            lab.wait("an answer from behind the kernel", lambda: icmp.ping(target[family], 1, seconds=0.2), 15)
        except Failed as failed:
            raise Failed(f"{failed}{here.known(target[family])}") from None
        check("answers from behind the kernel", icmp.ping(target[family], 5), 5)
        icmp.close()
        count(here, "by way of the kernel", family, target[family], 4, ["d"])
        lab.sysctl(*(f"{each}=0" for each in may))
    run("ip", "link", "del", "dD")
    run("ip", "netns", "del", "d")


def run_all(here, say, until=None):
    for function in STEPS:
        begin = time.monotonic()
        here.notes = []
        function(here)
        notes = "".join(f"; {note}" for note in here.notes)
        say(f"{time.monotonic() - begin:6.1f} s  {function.__doc__}{notes}")
        if function.__name__ == until:
            return


@step
def restart(here):
    """fibula ends and starts again; meanwhile the router itself answers, and nothing is forwarded"""
    seconds = here.fibula.stop()
    for family in (4, 6):
        icmp = wire.Icmp("a", family)
        check("pings that the router answers without fibula", icmp.ping(ROUTER[family], 3), 3)
        check("pings that are forwarded without fibula", icmp.ping(OF_C[family], 1, seconds=0.2), 0)
        icmp.close()
    check("an XDP program is left", [device for device in town.DEVICES.values() if town.attached(device)], [])
    check("devices that are left", town.own_devices(), [])
    here.notes.append(f"ended in {seconds:.2f} s, forwards after {here.fibula.start():.2f} s")
    for family in (4, 6):
        count(here, "after the restart", family, OF_C[family], 4, ["c"])


@step
def kill(here):
    """fibula is killed: no XDP program stays; it starts again"""
    here.fibula.stop(signal.SIGKILL)
    left = [device for device in town.DEVICES.values() if town.attached(device)]
    if here.fibula.leaves_programs:
        for device in left:
            run("ip", "link", "set", device, "xdp", "off")
    else:
        check("an XDP program is left", left, [])
    check("devices that are left", town.own_devices(), [])
    here.fibula.start()
    for family in (4, 6):
        count(here, "after the restart", family, OF_C[family], 4, ["c"])
    here.fibula.stop()
