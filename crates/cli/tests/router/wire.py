"""Packets through the router, sent and received by the kernels at both ends: sockets in several network namespaces."""

import array
import ctypes
import fcntl
import os
import select
import socket
import struct
import threading
import time

CLONE_NEWNET = 0x40000000
# From the headers of Linux; Python 3.11 does not name them all.
IP_MTU_DISCOVER, IP_MTU, IP_PMTUDISC_DONT, IP_PMTUDISC_DO = 10, 14, 0, 2
IPV6_MTU_DISCOVER, IPV6_MTU = 23, 24
ECHO, ECHO_REPLY, EXCEEDED, UNREACHABLE = "echo", "reply", "exceeded", "unreachable"
TYPES = {4: {8: ECHO, 0: ECHO_REPLY, 11: EXCEEDED, 3: UNREACHABLE}, 6: {128: ECHO, 129: ECHO_REPLY, 3: EXCEEDED, 1: UNREACHABLE}}


def within(netns, function):
    """What the function returns, run in a network namespace; sockets that it opens stay there."""
    if netns is None:
        return function()
    found = []

    def run():
        with open(f"/run/netns/{netns}") as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"setns {netns}")
        found.append(function())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def family_of(address):
    return 6 if ":" in address else 4


def af(family):
    return socket.AF_INET if family == 4 else socket.AF_INET6


def udp(netns, address, port=0):
    """A UDP socket in a namespace, bound to an address."""

    def make():
        made = socket.socket(af(family_of(address)), socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE
        made.bind((address, port))
        made.setblocking(False)
        return made

    return within(netns, make)


def set_hops(made, family, hops):
    if family == 4:
        made.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
    else:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)


def readable(sockets, seconds):
    return select.select(sockets, [], [], max(0, seconds))[0]


class Icmp:
    """A raw ICMP socket: pings, and errors that came back."""

    def __init__(self, netns, family, device=None):
        self.family = family
        protocol = socket.IPPROTO_ICMP if family == 4 else socket.IPPROTO_ICMPV6
        self.socket = within(netns, lambda: socket.socket(af(family), socket.SOCK_RAW, protocol))
        if device:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        self.socket.setblocking(False)
        self.number = os.getpid() & 0xFFFF
        self.next = 0  # sequence number of the next ping

    def send(self, address, sequence, size=56):
        body = struct.pack("!HH", self.number, sequence) + bytes(size)
        kind = 8 if self.family == 4 else 128
        text = struct.pack("!BBH", kind, 0, 0) + body
        if self.family == 4:
            text = struct.pack("!BBH", kind, 0, checksum(text)) + body
        self.socket.sendto(text, (address, 0))

    def receive(self, seconds):
        """(kind, code, who sent it, sequence number of a reply or None); None if nothing comes."""
        end = time.monotonic() + seconds
        while readable([self.socket], end - time.monotonic()):
            text, (sender, *_) = self.socket.recvfrom(65536)
            if self.family == 4:
                text = text[(text[0] & 15) * 4:]
            kind = TYPES[self.family].get(text[0])
            if kind == ECHO_REPLY and struct.unpack_from("!H", text, 4)[0] == self.number:
                return kind, text[1], sender, struct.unpack_from("!H", text, 6)[0]
            if kind in (EXCEEDED, UNREACHABLE):
                return kind, text[1], sender, None
        return None

    def ping(self, address, count, size=56, seconds=2.0):
        """How many of so many pings are answered; none twice. Answers to earlier pings, which come late, do not count."""
        mine = [(self.next + at) & 0xFFFF for at in range(count)]
        self.next += count
        answered = set()
        for sequence in mine:
            self.send(address, sequence, size)
            end = time.monotonic() + seconds
            while answer := self.receive(end - time.monotonic()):
                if answer[0] != ECHO_REPLY:
                    break
                if answer[3] in mine:
                    answered.add(answer[3])
                if answer[3] == sequence:
                    break
        return len(answered)

    def close(self):
        self.socket.close()


def checksum(text):
    text += bytes(len(text) & 1)
    total = sum(struct.unpack(f"!{len(text) // 2}H", text))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def trace(netns, address, most=8):
    """The addresses on the way: what traceroute shows."""
    family = family_of(address)
    icmp = Icmp(netns, family)
    found = []
    for hops in range(1, most + 1):
        probe = within(netns, lambda: socket.socket(af(family), socket.SOCK_DGRAM))
        set_hops(probe, family, hops)
        probe.sendto(b"x" * 32, (address, 33434 + hops))
        answer = icmp.receive(2)
        probe.close()
        found.append(answer[2] if answer else "*")
        if answer and answer[0] == UNREACHABLE:
            break
    icmp.close()
    return found


class Count:
    """What became of numbered datagrams."""

    def __init__(self):
        self.sent = 0
        self.got = []  # for each receiver
        self.twice = self.wrong = 0

    @property
    def lost(self):
        return self.sent - sum(self.got)


def datagrams(senders, address, port, receivers, count, size=200, at_once=32, seconds=1.0):
    """Sends numbered datagrams, a few at once, and counts what each receiver gets. The senders take turns: each is a flow."""
    result = Count()
    result.got = [0] * len(receivers)
    seen = set()

    def take(until, wanted):
        while sum(result.got) < wanted:
            ready = readable(receivers, until - time.monotonic())
            if not ready:
                return
            for receiver in ready:
                for _ in range(at_once):
                    try:
                        text = receiver.recv(65536)
                    except BlockingIOError:
                        break
                    number = int.from_bytes(text[:8], "big")
                    if text != pattern(number, size):
                        result.wrong += 1
                    elif number in seen:
                        result.twice += 1
                    else:
                        seen.add(number)
                        result.got[receivers.index(receiver)] += 1

    lost = 0
    while result.sent < count:
        for _ in range(min(at_once, count - result.sent)):
            senders[result.sent % len(senders)].sendto(pattern(result.sent, size), (address, port))
            result.sent += 1
        take(time.monotonic() + seconds, result.sent - lost)
        lost = result.lost
    # What is late, or came twice.
    take(time.monotonic() + 0.05, result.sent + 1)
    return result


def pattern(number, size):
    return number.to_bytes(8, "big") + bytes((number + at) & 0xFF for at in range(size - 8))


def transfer(sender, source, receivers, address, port, size):
    """Sends bytes by TCP from a namespace to whichever of the receivers' namespaces the connection leads to; returns the
    bytes that came and the seconds."""
    family = family_of(address)
    listeners = []
    for netns in receivers:
        def listen():
            made = socket.socket(af(family), socket.SOCK_STREAM)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((address, port))
            made.listen()
            return made

        listeners.append(within(netns, listen))
    sent = os.urandom(1 << 16) * (size >> 16)
    found = bytearray()

    def receive():
        ready = readable(listeners, 10)
        if not ready:
            return
        connection, _ = ready[0].accept()
        connection.settimeout(20)
        try:
            while text := connection.recv(1 << 18):
                found.extend(text)
        except TimeoutError:
            pass
        connection.close()

    thread = threading.Thread(target=receive)
    thread.start()
    begin = time.monotonic()

    def connect():
        made = socket.socket(af(family), socket.SOCK_STREAM)
        made.settimeout(20)
        made.bind((source, 0))
        made.connect((address, port))
        return made

    try:
        connection = within(sender, connect)
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    thread.join()
    for listener in listeners:
        listener.close()
    return bytes(found) == sent, len(found), time.monotonic() - begin


def path_mtu(netns, source, address, port, size):
    """Sends a datagram that must not be fragmented until the kernel has heard of a smaller MTU, or not; returns the MTU."""
    family = family_of(address)
    made = udp(netns, source)
    level = socket.IPPROTO_IP if family == 4 else socket.IPPROTO_IPV6
    discover, mtu = (IP_MTU_DISCOVER, IP_MTU) if family == 4 else (IPV6_MTU_DISCOVER, IPV6_MTU)
    made.setsockopt(level, discover, IP_PMTUDISC_DO)
    made.connect((address, port))
    for _ in range(10):
        try:
            made.send(bytes(size))
        except OSError:  # EMSGSIZE: it has heard, or ICMP's error comes back here
            pass
        time.sleep(0.05)
        found = made.getsockopt(level, mtu)
        if found < size + (28 if family == 4 else 48):
            break
    made.close()
    return found


def interface_packets(netns, interface):
    """Packets that an interface has received, and sent."""
    def read():
        # The process's own view would be that of the namespace it began in.
        with open(f"/proc/thread-self/net/dev") as file:
            for line in file:
                name, _, rest = line.partition(":")
                if name.strip() == interface:
                    fields = rest.split()
                    return int(fields[1]), int(fields[9])
        return 0, 0

    return within(netns, read)


ETHTOOL_STXCSUM, ETHTOOL_SGRO = 0x17, 0x2C


def offload(netns, interface, what, is_on):
    """As `ethtool -K`: whether an interface's kernel leaves checksums to it, or merges what it receives."""

    def ask():
        value = array.array("I", [what, int(is_on)])
        request = struct.pack("16sQ", interface.encode(), value.buffer_info()[0])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            fcntl.ioctl(asked, 0x8946, request)  # SIOCETHTOOL

    within(netns, ask)
