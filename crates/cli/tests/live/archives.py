"""What the neighbours say as an archive has it: an MRT file of updates (RFC 6396), and lines as RIS Live sends them."""

import ipaddress
import json
import struct

# BGP4MP_ET would have microseconds, BGP4MP has seconds.
BGP4MP, MESSAGE_AS4 = 16, 4
UPDATE = 2
FAMILY = {4: 1, 6: 2}


def mrt(paths, began):
    """The paths, (peer, prefix) -> Path, each in an update of its own; `began` is the first one's time."""
    out = bytearray()
    for number, ((peer, prefix), path) in enumerate(paths.items()):
        asn = int(path.as_path.split()[0])
        address = ipaddress.ip_address(peer)
        head = struct.pack(">IIHH", asn, 65010, 0, FAMILY[address.version])
        body = head + address.packed + type(address)(1).packed + message(prefix, path)
        out += struct.pack(">IHHI", began + number // 100, BGP4MP, MESSAGE_AS4, len(body)) + body
    return bytes(out)


def message(prefix, path):
    """An UPDATE that announces a prefix, with AS numbers of four bytes."""
    network, next_hop = ipaddress.ip_network(prefix), ipaddress.ip_address(path.next_hop)
    nlri = bytes([network.prefixlen]) + network.network_address.packed[:(network.prefixlen + 7) // 8]
    numbers = [int(asn) for asn in path.as_path.split()]
    attributes = attribute(0x40, 1, bytes([("igp", "egp", "incomplete").index(path.origin)]))
    attributes += attribute(0x40, 2, struct.pack(f">BB{len(numbers)}I", 2, len(numbers), *numbers))
    if network.version == next_hop.version == 4:
        attributes += attribute(0x40, 3, next_hop.packed)
    if path.med is not None:
        attributes += attribute(0x80, 4, struct.pack(">I", path.med))
    if path.communities:
        pairs = [int(number) for pair in path.communities.split() for number in pair.split(":")]
        attributes += attribute(0xC0, 8, struct.pack(f">{len(pairs)}H", *pairs))
    announced = nlri
    if network.version == 6 or next_hop.version == 6:
        reach = struct.pack(">HBB", FAMILY[network.version], 1, len(next_hop.packed)) + next_hop.packed + b"\0" + nlri
        attributes += attribute(0x80, 14, reach)
        announced = b""
    body = struct.pack(">HH", 0, len(attributes)) + attributes + announced
    return b"\xff" * 16 + struct.pack(">HB", 19 + len(body), UPDATE) + body


def attribute(flags, code, value):
    return struct.pack(">BBH", flags | 0x10, code, len(value)) + value


def ris(paths, began):
    """The same as lines of JSON."""
    lines = []
    for number, ((peer, prefix), path) in enumerate(paths.items()):
        data = {
            "timestamp": began + number / 100,
            "peer": peer,
            "peer_asn": path.as_path.split()[0],
            "id": f"{peer}-{number}",
            "host": "rrc00.ripe.net",
            "type": "UPDATE",
            "path": [int(asn) for asn in path.as_path.split()],
            "community": [[int(number) for number in pair.split(":")] for pair in path.communities.split()],
            "origin": path.origin.upper(),
            "announcements": [{"next_hop": path.next_hop, "prefixes": [prefix]}],
            "withdrawals": [],
        }
        if path.med is not None:
            data["med"] = path.med
        lines.append(json.dumps({"type": "ris_message", "data": data}) + "\n")
    return "".join(lines)
