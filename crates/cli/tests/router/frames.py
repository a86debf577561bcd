"""Frames with which a router has to do more than send them on: those that it must drop, answer with an error, cut, or not touch.

Each has a number, as the identification of its IPv4 header or the flow label of its IPv6 header. What comes of it has the
number again: packets as they leave, and errors that quote them.
"""

import ipaddress
import struct

import wire

UDP, ICMP, ICMP6 = 17, 1, 58
HOP_BY_HOP, ROUTING, FRAGMENT, NONE, DESTINATION = 0, 43, 44, 59, 60
DF, MF = 0x4000, 0x2000
# Where the packets go that are not said to go elsewhere; and where addresses of these kinds have routes, though they should
# have none.
TO4, TO6 = "203.0.113.1", "2001:db8:113::1"
FROM4, FROM6 = "10.9.1.2", "fd09:1::2"
OWN4, OWN6 = ("10.9.1.1", "10.9.3.1"), ("fd09:1::1", "fd09:3::1")
BROADCAST = "10.9.1.255"
# What a router's tables must have beside the ways to TO4 and TO6.
ROUTES = [
    (4, "blackhole 198.51.101.0/24"), (4, "unreachable 198.51.102.0/24"), (4, "prohibit 198.51.103.0/24"),
    (6, "blackhole 2001:db8:101::/48"), (6, "unreachable 2001:db8:102::/48"), (6, "prohibit 2001:db8:103::/48"),
    (4, "240.0.0.0/4 via 10.9.3.2"), (4, "169.254.0.0/16 via 10.9.3.2"), (6, "::ffff:0:0/96 via fd09:3::2"),
]


def udp(size=18):
    """A datagram without a checksum; its bytes count up, so that a part of it shows where it was."""
    return struct.pack("!HHHH", 4096, 9, 8 + size, 0) + bytes(at & 0xFF for at in range(size))


def echo(number, kind=8):
    body = struct.pack("!BBHHH", kind, 0, 0, 1, number) + bytes(24)
    return body[:2] + struct.pack("!H", wire.checksum(body)) + body[4:]


def ipv4(number, payload=None, to=TO4, source=FROM4, ttl=64, options=b"", flags=0, tos=0, protocol=UDP, version=4,
         words=None, total=None, checksum=None):
    payload = udp() if payload is None else payload
    options += bytes(-len(options) % 4)
    words = 5 + len(options) // 4 if words is None else words
    total = 20 + len(options) + len(payload) if total is None else total
    ends = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(to).packed
    head = struct.pack("!BBHHHBB", version << 4 | words, tos, total, number, flags, ttl, protocol)
    found = wire.checksum(head + bytes(2) + ends + options) if checksum is None else checksum
    return head + struct.pack("!H", found) + ends + options + payload


def ipv6(number, payload=None, to=TO6, source=FROM6, limit=64, first=UDP, traffic=0, version=6, length=None):
    payload = udp() if payload is None else payload
    length = len(payload) if length is None else length
    ends = ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(to).packed
    return struct.pack("!IHBB", version << 28 | traffic << 20 | number, length, first, limit) + ends + payload


def extension(after, options=b"", payload=None):
    """Hop-by-hop or destination options in front of what follows."""
    options += b"\x01" + bytes([-(4 + len(options)) % 8]) + bytes(-(4 + len(options)) % 8)
    return bytes([after, (len(options) + 2) // 8 - 1]) + options + (udp() if payload is None else payload)


def fragment(after=UDP, offset=0, more=1, payload=None):
    return struct.pack("!BBHI", after, 0, offset | more, 7) + (udp() if payload is None else payload)


def macs(to, source, kind, tags=b""):
    return to + source + tags + struct.pack("!H", kind)


def all_frames(router, host):
    """The frames of a host at this MAC address for a router at that one: name, number and bytes."""
    found = []

    def add(name, packet, to=router, source=host, tags=b"", behind=b""):
        number = len(found) + 1
        packet = packet(number)
        kind = 0x86DD if name.startswith("IPv6") else 0x0800
        found.append((name, number, macs(to, source, kind, tags) + packet + behind))

    def both(name, v4, v6, **link):
        add(f"IPv4, {name}", v4, **link)
        add(f"IPv6, {name}", v6, **link)

    both("plain", ipv4, ipv6)
    both("a class of traffic, and ECN", lambda n: ipv4(n, tos=0xB9), lambda n: ipv6(n, traffic=0xB9))
    both("padding behind it", ipv4, ipv6, behind=bytes(30))
    both("no payload", lambda n: ipv4(n, b"", protocol=59), lambda n: ipv6(n, b"", first=NONE))
    for ttl in (0, 1, 2, 255):
        both(f"TTL {ttl}", lambda n, t=ttl: ipv4(n, ttl=t), lambda n, t=ttl: ipv6(n, limit=t))
    # Nothing answers an error, nor the later parts of a packet.
    both("TTL 1 of an error", lambda n: ipv4(n, echo(n, 3), ttl=1, protocol=ICMP),
         lambda n: ipv6(n, echo(n, 1), limit=1, first=ICMP6))
    both("TTL 1 of an echo", lambda n: ipv4(n, echo(n), ttl=1, protocol=ICMP),
         lambda n: ipv6(n, echo(n, 128), limit=1, first=ICMP6))
    add("IPv4, TTL 1 of a later fragment", lambda n: ipv4(n, ttl=1, flags=100))

    add("IPv4, a wrong checksum", lambda n: ipv4(n, checksum=0x1234))
    both("another version", lambda n: ipv4(n, version=5), lambda n: ipv6(n, version=4))
    add("IPv4, a header of 16 bytes", lambda n: ipv4(n, words=4))
    add("IPv4, a header beyond the packet", lambda n: ipv4(n, b"", words=15, total=40))
    add("IPv4, shorter than its header", lambda n: ipv4(n, total=19))
    both("longer than its frame", lambda n: ipv4(n, total=60), lambda n: ipv6(n, length=60))
    both("a header that is cut", lambda n: ipv4(n)[:19], lambda n: ipv6(n)[:39])

    big = udp(1460)
    add("IPv4, too big with DF", lambda n: ipv4(n, big, flags=DF))
    add("IPv4, too big", lambda n: ipv4(n, big))
    add("IPv4, too big, with options", lambda n: ipv4(n, big[:1450], options=b"\x94\x04\0\0" + b"\x01" * 3 + b"\0"))
    add("IPv4, a first fragment that is too big", lambda n: ipv4(n, big[:1464], flags=MF))
    add("IPv4, a last fragment that is too big", lambda n: ipv4(n, big, flags=200))
    add("IPv4, a fragment", lambda n: ipv4(n, flags=MF | 3))
    add("IPv6, too big", lambda n: ipv6(n, udp(1444)))
    add("IPv6, a fragment that is too big", lambda n: ipv6(n, fragment(payload=udp(1424)), first=FRAGMENT))
    both("as big as the way allows", lambda n: ipv4(n, udp(1372), flags=DF), lambda n: ipv6(n, udp(1352)))
    both("one byte more", lambda n: ipv4(n, udp(1373), flags=DF), lambda n: ipv6(n, udp(1353)))

    for number, own in enumerate(OWN4 + OWN6):
        name, packet = ("IPv4", ipv4) if number < 2 else ("IPv6", ipv6)
        add(f"{name}, from the router's own address {own}", lambda n, p=packet, o=own: p(n, source=o))
    for source in (BROADCAST, "0.0.0.0", "0.1.2.3", "127.0.0.1", "169.254.1.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
                   "198.51.101.1", "11.0.0.1"):
        add(f"IPv4, from {source}", lambda n, s=source: ipv4(n, source=s))
    for source in ("::", "::1", "::2", "::ffff:192.0.2.1", "fe80::2", "ff02::1", "ff0e::1", "2001:db8:101::1", "2001:db8:999::1"):
        add(f"IPv6, from {source}", lambda n, s=source: ipv6(n, source=s))
    for to in ("0.0.0.1", "127.0.0.1", "169.254.1.1", "240.0.0.1", "11.0.0.1", "198.51.101.1", "198.51.102.1", "198.51.103.1"):
        add(f"IPv4, to {to}", lambda n, t=to: ipv4(n, to=t))
    for to in ("::", "::1", "::ffff:192.0.2.1", "ff0e::1", "2001:db8:999::1", "2001:db8:101::1", "2001:db8:102::1",
               "2001:db8:103::1"):
        add(f"IPv6, to {to}", lambda n, t=to: ipv6(n, to=t))

    group = bytes([host[0] | 1]) + host[1:]
    both("from a group's MAC address", ipv4, ipv6, source=group)
    both("from the broadcast MAC address", ipv4, ipv6, source=b"\xff" * 6)
    both("from no MAC address", ipv4, ipv6, source=bytes(6))
    both("from the router's own MAC address", ipv4, ipv6, source=router)
    both("to the broadcast MAC address", ipv4, ipv6, to=b"\xff" * 6)
    both("to a group's MAC address", ipv4, ipv6, to=b"\x01\0\x5e\0\0\x05")
    both("to another MAC address", ipv4, ipv6, to=b"\x02\0\0\0\xaa\xaa")
    both("to the broadcast MAC address, TTL 1", lambda n: ipv4(n, ttl=1), lambda n: ipv6(n, limit=1), to=b"\xff" * 6)

    tag = struct.pack("!HH", 0x8100, 5)
    both("a VLAN tag", ipv4, ipv6, tags=tag)
    both("a tag for its priority alone", ipv4, ipv6, tags=struct.pack("!HH", 0x8100, 0xA000))
    both("a service tag", ipv4, ipv6, tags=struct.pack("!HH", 0x88A8, 5))
    both("two tags", ipv4, ipv6, tags=struct.pack("!HH", 0x88A8, 5) + tag)

    for name, options in (
        ("no operation", b"\x01\x01\x01\0"),
        ("Record Route", b"\x07\x0b\x04" + bytes(8)),
        ("Record Route that is full", b"\x07\x07\x08" + bytes([1, 2, 3, 4])),
        ("Record Route whose pointer is wrong", b"\x07\x07\x03" + bytes(4)),
        ("Timestamp", b"\x44\x0c\x05\0" + bytes(8)),
        ("Timestamp with addresses", b"\x44\x0c\x05\x01" + bytes(8)),
        ("Router Alert", b"\x94\x04\0\0"),
        ("loose source route", b"\x83\x07\x04" + ipaddress.IPv4Address(TO4).packed),
        ("strict source route", b"\x89\x07\x04" + ipaddress.IPv4Address(TO4).packed),
        ("an unknown one", b"\x9e\x04\0\0"),
        ("longer than the header", b"\x9e\x28\0\0"),
        ("of length 1", b"\x9e\x01\0\0"),
    ):
        add(f"IPv4, option: {name}", lambda n, o=options: ipv4(n, options=o))
    add("IPv4, option: Record Route, TTL 1", lambda n: ipv4(n, options=b"\x07\x0b\x04" + bytes(8), ttl=1))

    for name, first, payload in (
        ("padding", HOP_BY_HOP, extension(UDP)),
        ("Router Alert", HOP_BY_HOP, extension(UDP, b"\x05\x02\0\0")),
        ("unknown, to be passed over", HOP_BY_HOP, extension(UDP, b"\x1e\x02\0\0")),
        ("unknown, to be dropped", HOP_BY_HOP, extension(UDP, b"\x5e\x02\0\0")),
        ("unknown, to be answered", HOP_BY_HOP, extension(UDP, b"\x9e\x02\0\0")),
        ("a jumbogram that is none", HOP_BY_HOP, extension(UDP, b"\xc2\x04\0\0\0\x20")),
        ("longer than its header", HOP_BY_HOP, bytes([UDP, 0, 0x1e, 40, 0, 0, 0, 0]) + udp()),
    ):
        add(f"IPv6, hop-by-hop option: {name}", lambda n, f=first, p=payload: ipv6(n, p, first=f))
    add("IPv6, destination options", lambda n: ipv6(n, extension(UDP, b"\x9e\x02\0\0"), first=DESTINATION))
    add("IPv6, hop-by-hop options behind others",
        lambda n: ipv6(n, extension(HOP_BY_HOP, payload=extension(UDP)), first=DESTINATION))
    add("IPv6, a routing header of type 0",
        lambda n: ipv6(n, struct.pack("!BBBBI", UDP, 2, 0, 1, 0) + ipaddress.IPv6Address(TO6).packed + udp(), first=ROUTING))
    add("IPv6, a fragment", lambda n: ipv6(n, fragment(), first=FRAGMENT))
    add("IPv6, an unknown header", lambda n: ipv6(n, first=253))
    add("IPv6, hop-by-hop options, hop limit 1", lambda n: ipv6(n, extension(UDP), first=HOP_BY_HOP, limit=1))
    return found
