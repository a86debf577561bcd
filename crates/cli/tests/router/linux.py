"""The same frames once through Linux's forwarding and once through the router: the same comes out, but for the differences that
docs/router.md lists under "Limits"."""

import ipaddress
import select
import socket
import struct
import time

import frames
import lab
import town
import wire
from lab import Failed, run

ETH_P_ALL, PACKET_OUTGOING = 3, 4
SO_RCVBUFFORCE = 33
ERRORS = {4: (3, 4, 5, 11, 12), 6: (1, 2, 3, 4)}
# Of what an error quotes: how much more there is differs.
QUOTED = {4: 28, 6: 48}
FROM_FRAMES = {4: frames.FROM4, 6: frames.FROM6}
OWN = {4: frames.OWN4, 6: frames.OWN6}
SENT, CHANGED, NOTHING = "sent on", "sent on, changed", "nothing"
# The frame; what Linux makes of it, and what the router does. Where both are called the same, their bytes differ.
DIFFERENCES = {
    **{f"IPv4, from {source}": (SENT, NOTHING) for source in ("0.1.2.3", "169.254.1.1", "240.0.0.1")},
    **{f"IPv4, to {to}": (SENT, NOTHING) for to in ("169.254.1.1", "240.0.0.1")},
    "IPv4, to 0.0.0.1": ("error 3/0", NOTHING),
    "IPv6, to ::": ("error 1/0", NOTHING),
    "IPv4, to 198.51.102.1": ("error 3/1", "error 3/0"),
    **{f"IPv6, {way} ::ffff:192.0.2.1": (SENT, NOTHING) for way in ("from", "to")},
    **{f"IPv{family}, from {whose} MAC address": (SENT, NOTHING) for family in (4, 6) for whose in ("a group's", "the broadcast")},
    **{f"IPv4, option: {name}": (CHANGED, SENT) for name in ("Record Route", "Timestamp", "Timestamp with addresses")},
    "IPv4, option: Record Route whose pointer is wrong": ("error 12/0", SENT),
    "IPv4, option: Record Route, TTL 1": ("error 11/0", "error 11/0"),
    "IPv4, too big, with options": ("2 fragments", "2 fragments"),
    "IPv6, hop-by-hop option: unknown, to be dropped": (NOTHING, SENT),
    "IPv6, hop-by-hop option: unknown, to be answered": ("error 4/2", SENT),
    "IPv6, hop-by-hop option: a jumbogram that is none": ("error 4/0", SENT),
    "IPv6, hop-by-hop option: longer than its header": (NOTHING, SENT),
}


def link_address(netns, device):
    shown = run("ip", *(("-n", netns) if netns else ()), "-o", "link", "show", device)
    return bytes.fromhex(shown.partition("link/ether ")[2][:17].replace(":", ""))


def packets(netns, device):
    def make():
        made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20)
        made.bind((device, ETH_P_ALL))
        made.setblocking(False)
        return made

    return wire.within(netns, make)


def exchange(sent):
    """Sends the frames, and returns what came of each: by its number, a list of texts."""
    listeners = {packets(name, f"{device}-far"): name for name, device in town.DEVICES.items()}
    sender = next(iter(listeners))
    # Without it a neighbour answers that nobody listens there.
    taken = [wire.udp(name, "::", 9) for name in "bc"]
    found = {number: [] for _, number, _ in sent}

    def take(seconds):
        """Until nothing came for so long."""
        while ready := select.select(list(listeners), [], [], seconds)[0]:
            for listener in ready:
                frame, (_, _, kind, *_) = listener.recvfrom(65536)
                read = parse(frame) if kind != PACKET_OUTGOING else None
                if read and read[0] in found:
                    found[read[0]].append((listeners[listener], *read[1:]))

    for _, _, frame in sent:
        sender.send(frame)
        # Slower than the kernel's limit of errors.
        take(0.003)
    take(0.5)
    for each in (*listeners, *taken):
        each.close()
    return {number: sorted(texts) for number, texts in found.items()}


def parse(frame):
    """The number of the frame that this one comes from, its kind, and what of it is to be the same."""
    link, packet = frame[:14], frame[14:]
    family = {0x0800: 4, 0x86DD: 6}.get(struct.unpack_from("!H", link, 12)[0])
    if family is None or len(packet) < (20 if family == 4 else 40):
        return None
    if family == 4:
        header, end, protocol = (packet[0] & 15) * 4, struct.unpack_from("!H", packet, 2)[0], packet[9]
        source, to = (socket.inet_ntoa(packet[at:at + 4]) for at in (12, 16))
    else:
        header, end, protocol = 40, 40 + struct.unpack_from("!H", packet, 4)[0], packet[6]
        source, to = (str(ipaddress.IPv6Address(packet[at:at + 16])) for at in (8, 24))
    body = packet[header:end]
    is_error = protocol == (frames.ICMP if family == 4 else frames.ICMP6) and body[0] in ERRORS[family]
    if is_error and source in OWN[family]:
        quoted = body[8:]
        text = f"from {source} to {to}, {body[4:8].hex()}, quotes {quoted[:QUOTED[family]].hex()}"
        return number_of(family, quoted), f"error {body[0]}/{body[1]}", text
    if to == FROM_FRAMES[family]:
        return None  # a neighbour's answer
    return number_of(family, packet), SENT, (link + packet[:end]).hex()


def number_of(family, packet):
    return struct.unpack_from("!H", packet, 4)[0] if family == 4 else struct.unpack_from("!I", packet)[0] & 0xFFFFF


def aged(frame):
    """The packet of a frame as it is sent on."""
    tags = 0
    while frame[12 + tags:14 + tags] in (b"\x81\x00", b"\x88\xa8"):
        tags += 4
    packet = bytearray(frame[14 + tags:])
    if packet[0] >> 4 == 4:
        header, end = (packet[0] & 15) * 4, struct.unpack_from("!H", packet, 2)[0]
        packet[8] = max(0, packet[8] - 1)
        packet[10:12] = bytes(2)
        packet[10:12] = struct.pack("!H", wire.checksum(bytes(packet[:header])))
    else:
        end = 40 + struct.unpack_from("!H", packet, 4)[0]
        packet[7] = max(0, packet[7] - 1)
    return packet[:end].hex()


def outcome(frame, texts):
    """In a few words, what came of a frame."""
    if not texts:
        return NOTHING
    sent = [text for _, kind, text in texts if kind == SENT]
    said = [kind for _, kind, _ in texts if kind != SENT]
    if len(sent) > 1:
        said.append(f"{len(sent)} fragments")
    elif sent:
        said.append(SENT if sent[0][28:] == aged(frame) else CHANGED)
    return " and ".join(said)


def by_linux(sent):
    """What Linux's forwarding makes of the frames, and then what it says of them while it does not forward; no router runs."""
    names = ("all", "default", *town.DEVICES.values())
    settings = {f"net.ipv4.conf.{name}.send_redirects": 0 for name in names}
    forwards = {"net.ipv4.ip_forward": 1, "net.ipv6.conf.all.forwarding": 1}
    limits = {"net.ipv4.icmp_ratemask": 0, "net.ipv6.icmp.ratelimit": 0}
    lab.sysctl(*(f"{name}={value}" for name, value in {**settings, **forwards, **limits}.items()))
    for family in (4, 6):
        icmp = wire.Icmp("a", family)
        for target in (town.OF_C, *town.NEIGHBOURS):
            lab.wait("an answer through the kernel", lambda: icmp.ping(target[family], 1, seconds=0.2), 15)
        icmp.close()
    found = exchange(sent)
    lab.sysctl(*(f"{name}=0" for name in forwards))
    return found, exchange(sent)


# By the number of a frame. With packet sockets the kernel hears every frame, too, and answers some.
FORWARDED, ANYWAY = {}, {}


def compare(here):
    """Compares the router with the kernel, which is asked once. The router is started again after that."""
    for family, route in frames.ROUTES:
        run("ip", f"-{family}", "route", "replace", *route.split())
    sent = frames.all_frames(link_address(None, "dA"), link_address("a", "dA-far"))
    if not FORWARDED:
        here.fibula.stop()
        for each, answers in zip((FORWARDED, ANYWAY), by_linux(sent)):
            each.update(answers)
        here.fibula.start()
    time.sleep(0.5)  # the routes reach the router
    found = exchange(sent)
    wrong, known = [], 0
    for name, number, frame in sent:
        linux, ours = FORWARDED[number], found[number]
        if here.fibula.kind == "afpacket":
            for text in ANYWAY[number]:
                ours.remove(text)
        both = outcome(frame, linux), outcome(frame, ours)
        is_known = name in DIFFERENCES and both == DIFFERENCES[name]
        known += is_known
        if linux != ours and not is_known or name in DIFFERENCES and not is_known:
            wrong.append(f"{name}: Linux: {both[0]}, the router: {both[1]}" + f"\n  {linux}\n  {ours}" * (both[0] == both[1]))
    for family, route in frames.ROUTES:
        run("ip", f"-{family}", "route", "del", *route.split())
    if wrong:
        raise Failed(f"of {len(sent)} frames {len(wrong)} come out otherwise:\n" + "\n".join(wrong))
    here.notes.append(f"{len(sent) - known} frames alike, {known} as docs/router.md lists them")
