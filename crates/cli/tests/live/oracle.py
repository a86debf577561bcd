"""What the kernel, FRR and BIRD say themselves, in one form for each kind of route.

- A forwarding table: prefix -> (type, next hops), each (gateway or None, interface index or None, weight), sorted.
- Routes of BGP: (peer's address, prefix) -> Path; of several paths, the further ones by (peer's address, prefix, number).

Prefixes and addresses are as Python's ipaddress writes them.
"""

import dataclasses
import functools
import ipaddress
import json

import daemons
import lab
import routes
from lab import Failed


@dataclasses.dataclass(frozen=True)
class Path:
    next_hop: str | None
    as_path: str
    med: int | None
    communities: str
    origin: str


@functools.cache
def address(text):
    return str(ipaddress.ip_address(text))


def prefix(text, family=None):
    if text == "default":
        return "0.0.0.0/0" if family == 4 else "::/0"
    if "/" not in text:
        text += "/32" if ":" not in text else "/128"
    return str(ipaddress.ip_network(text)) if ":" in text else text


def hop(gateway, interface, weight=1):
    return address(gateway) if gateway else None, interface, weight


def forwarding(kind, hops=()):
    """Sorted by gateway and interface, as text: either may be missing."""
    return kind, tuple(sorted(hops, key=repr))


# ---- the kernel ------------------------------------------------------------------------------

TABLES = {"local": "255", "default": "253"}
FORWARDS = {"unicast", "local"}
DROPS = {"blackhole", "unreachable", "prohibit"}


def kernel():
    """The tables of this network namespace, by number (main is ""). Of several routes of a prefix the one with the lowest
    metric counts, of these the first. Multicast, broadcast and anycast are no unicast routes."""
    indices = {link["ifname"]: link["ifindex"] for link in ip("link", "show")}
    tables = {}
    metrics = {}
    for family in (4, 6):
        for route in ip(f"-{family}", "route", "show", "table", "all"):
            kind = route.get("type", "unicast")
            table = str(route.get("table", ""))
            table = TABLES.get(table, table)
            if kind in FORWARDS:
                # What an interface that is down leaves behind forwards nothing.
                hops = [each for each in route.get("nexthops", [route]) if "dead" not in each["flags"]]
                if not hops:
                    continue
                value = forwarding(kind, [kernel_hop(each, indices) for each in hops])
            elif kind in DROPS:
                value = forwarding(kind)
            else:
                continue
            key = table, prefix(route["dst"], family)
            metric = route.get("metric", 0)
            if key not in metrics or metric < metrics[key]:
                metrics[key] = metric
                tables.setdefault(table, {})[key[1]] = value
    return tables


def kernel_hop(route, indices):
    gateway = route.get("gateway") or route.get("via", {}).get("host")
    return hop(gateway, indices.get(route.get("dev")), route.get("weight", 1))


def ip(*words):
    return json.loads(lab.run("ip", "-j", *words) or "[]")


def interface(name):
    """The index of an interface."""
    return ip("link", "show", name)[0]["ifindex"]


# ---- zebra -----------------------------------------------------------------------------------


def zebra(table=None):
    """What zebra has selected: its main table, or another one."""
    found = {}
    which = f" table {table}" if table else ""
    for family in ("ip", "ipv6"):
        for text, routes in daemons.vtysh_json(f"show {family} route{which} json").items():
            for route in routes:
                if route.get("selected"):
                    found[prefix(text)] = zebra_value(route["nexthops"])
    return found


def zebra_value(hops):
    used = [each for each in hops if each.get("fib") and not each.get("duplicate")]
    for each in used:
        if each.get("unreachable"):
            kinds = {"blackhole": "blackhole", "reject": "unreachable", "admin-prohibited": "prohibit"}
            return forwarding(next((kind for flag, kind in kinds.items() if each.get(flag)), "blackhole"))
    return forwarding("unicast", [hop(each.get("ip"), each.get("interfaceIndex"), each.get("weight", 1)) for each in used])


# What FRR puts in place of IPv6 next hops of IPv4 routes where they do not stand in an object of their own.
INSTEAD_OF_IPV6 = "169.254.0.1"


def inline_hop(prefix, found):
    """A next hop as FPM has it without next-hop groups."""
    gateway, interface, weight = found
    is_other = gateway and ":" in gateway and ":" not in prefix
    return (INSTEAD_OF_IPV6 if is_other else gateway), interface, weight


def inline(table):
    """A forwarding table as FPM has it without next-hop groups."""
    return {prefix: forwarding(kind, [inline_hop(prefix, each) for each in hops]) for prefix, (kind, hops) in table.items()}


# ---- bgpd ------------------------------------------------------------------------------------


def bgpd():
    """All paths of all peers, as they were received: no policy changes them. And which is the best: prefix -> Path."""
    found, best = {}, {}
    for family in (4, 6):
        for text, entries in daemons.vtysh_json(f"show bgp ipv{family} unicast json detail")["routes"].items():
            for path in entries[1:]:
                said = Path(
                    next_hop=address(path["nexthops"][0]["ip"]),
                    as_path=path["aspath"]["string"],
                    med=path.get("metric"),
                    communities=path.get("community", {}).get("string", ""),
                    origin=path["origin"].lower(),
                )
                found[address(path["peer"]["peerId"]), prefix(text)] = said
                if path.get("bestpath", {}).get("overall"):
                    best[prefix(text)] = said
    return found, best


def received(peer):
    """What a peer said, before any policy: prefix -> (next hop, AS path). bgpd keeps it in a table of its own."""
    found = {}
    for family in (4, 6):
        if peer in configured(family):
            answer = daemons.vtysh_json(f"show bgp ipv{family} unicast neighbors {peer} received-routes json")
            for text, route in answer["receivedRoutes"].items():
                next_hop = route.get("nextHopGlobal") or route.get("nextHop")
                found[prefix(text)] = address(next_hop), route["path"]
    return found


def configured(family):
    """Addresses of the neighbours that FRR speaks about a family with."""
    return {
        (f"{each.net4}2" if over == 4 else f"{each.net6}2")
        for each in daemons.NEIGHBOURS for over, families in each.sessions() if family in families
    }


def advertised(best):
    """What FRR tells the collector: its best paths, with itself in front and as the next hop, without MEDs."""
    return {
        (daemons.ROUTER_ADDRESS, prefix): dataclasses.replace(
            path, next_hop=daemons.NEXT_HOP[6 if ":" in prefix else 4], as_path=f"{daemons.ROUTER_AS} {path.as_path}", med=None)
        for prefix, path in best.items()
    }


# ---- what the neighbours were told to say -----------------------------------------------------


def announced(neighbours, collector=False, silent=()):
    """What the sessions of BIRD carry, by the configuration that this test wrote: of those with the router, or of those
    with the collector."""
    found = []
    for each in daemons.NEIGHBOURS:
        if each.name in silent:
            continue
        for family in (4, 6):
            over = 6 if collector or each.over_ipv6 else family
            peer = address(f"{each.net4}2" if over == 4 else f"{each.net6}2")
            for text, said in neighbours.said[each.name, family].items():
                more = routes.second(text, said) if collector and each.several else None
                found += (((peer, text), path_of(each, family, said)) for said in (said, more) if said)
    return numbered(found)


def path_of(neighbour, family, said):
    return Path(
        next_hop=address(neighbour.address(family, said.hop)),
        as_path=" ".join(map(str, (neighbour.asn, *said.path))),
        med=said.med,
        communities=" ".join(f"{high}:{low}" for high, low in said.communities),
        origin="igp",
    )


def numbered(paths):
    """Paths by their keys. Of several of one key, whose numbers no other program knows, the order is that of their texts."""
    found = {}
    for key, path in sorted(paths, key=repr):
        place, number = key, 1
        while place in found:
            number += 1
            place = (*key, str(number))
        found[place] = path
    return found


# ---- comparison ------------------------------------------------------------------------------


def differences(what, expected, found, shown=8):
    """The first differences of two tables, as text; None where they are equal."""
    lacking = [key for key in expected if key not in found]
    excess = [key for key in found if key not in expected]
    other = [key for key, value in expected.items() if key in found and found[key] != value]
    if not lacking and not excess and not other:
        return None
    lines = [f"{what}: {len(expected)} expected, {len(found)} found; {len(lacking)} missing, {len(excess)} too many, "
             f"{len(other)} different"]
    for name, keys in (("missing", lacking), ("too many", excess), ("different", other)):
        for key in sorted(keys, key=str)[:shown]:
            label = key if isinstance(key, str) else " ".join(key)
            lines.append(f"  {name}: {label}")
            if key in expected:
                lines.append(f"    expected {text(expected[key])}")
            if key in found:
                lines.append(f"    found    {text(found[key])}")
    return "\n".join(lines)


def text(value):
    if isinstance(value, tuple):
        kind, hops = value
        shown = (f"{gateway or 'on the link'} interface {interface} weight {weight}" for gateway, interface, weight in hops)
        return f"{kind} {', '.join(shown)}".strip()
    return str(value)


def equal(what, expected, found):
    found = differences(what, expected, found)
    if found:
        raise Failed(found)
