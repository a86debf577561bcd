"""GoBGP, which learns routes from FRR, has some of its own, and tells fibula all of them by BGP and by BMP. In its Loc-RIB its
own routes have no AS path."""

import json
import shutil

import daemons
import fibula
import lab
import oracle
from lab import LAB, Daemon, Failed

ASN = 64505
NETNS, DEVICE = "g", "dG"
NET4, NET6 = "10.9.5.", "fd09:5::"
BMP_PORT = 11020
OWN = {4: ["198.51.100.0/24", "203.0.113.64/26"], 6: ["2001:db8:5::/48"]}


def is_there():
    return shutil.which("gobgpd") is not None and shutil.which("gobgp") is not None


def configuration():
    """As docs/serve.md has it, with a neighbour, and with fibula as another one."""
    families = "".join(
        f'  [[neighbors.afi-safis]]\n    [neighbors.afi-safis.config]\n      afi-safi-name = "ipv{family}-unicast"\n'
        for family in (4, 6))
    return f"""
[global.config]
  as = {ASN}
  router-id = "{NET4}2"
[[bmp-servers]]
  [bmp-servers.config]
    address = "{NET4}1"
    port = {BMP_PORT}
    route-monitoring-policy = "all"
[[neighbors]]
  [neighbors.config]
    neighbor-address = "{NET4}1"
    peer-as = {daemons.ROUTER_AS}
{families}
[[neighbors]]
  [neighbors.config]
    neighbor-address = "{NET6}1"
    peer-as = {daemons.COLLECTOR_AS}
  [neighbors.transport.config]
    remote-port = {daemons.COLLECTOR_PORT}
  [neighbors.timers.config]
    connect-retry = 1
{families}
"""


def sources():
    return f"""
[[bmp]]
listen = "{NET4}1:{BMP_PORT}"
quiet = "2s"
""" + fibula.collector(f'[[bgp.neighbour]]\naddress = "{NET6}2"\nremote-as = {ASN}\n')


class GoBgp:
    def __init__(self):
        lab.link(DEVICE, f"{NET4}1/24", f"{NET6}1/64", NETNS, f"{NET4}2/24", f"{NET6}2/64")
        config = LAB / "gobgpd.toml"
        config.write_text(configuration())
        self.daemon = Daemon("gobgpd", ["gobgpd", "-f", str(config), "-t", "toml", "--pprof-disable"], netns=NETNS)

    def start(self):
        self.daemon.start()
        lab.wait("GoBGP answers", lambda: self.attempt("global"), 30)
        for family, prefixes in OWN.items():
            for prefix in prefixes:
                self.ask("global", "rib", "add", prefix, "-a", f"ipv{family}")

    def forget(self):
        """Withdraws the first of its own routes."""
        self.ask("global", "rib", "del", OWN[4][0], "-a", "ipv4")

    def attempt(self, *words):
        try:
            return self.ask(*words)
        except Failed:
            return None

    def ask(self, *words):
        return lab.run("ip", "netns", "exec", NETNS, "gobgp", *words)

    def paths(self, *words, peer=None):
        """What it shows of both families, in the oracle's form, and nothing without a session; the peer is the one that it
        names, if none is given."""
        found = {}
        for family in (4, 6):
            for prefix, paths in (json.loads(self.attempt(*words, "-a", f"ipv{family}", "-j") or "{}") or {}).items():
                for path in paths:
                    found[peer or path.get("neighbor-ip"), oracle.prefix(prefix)] = path_of(path["attrs"])
        return found

    def received(self):
        """Without what it refuses: the path has its own AS."""
        paths = self.paths("neighbor", f"{NET4}1", "adj-in")
        return {key: path for key, path in paths.items() if str(ASN) not in path.as_path.split()}

    def chosen(self):
        """Its Loc-RIB, which BMP has as a peer of its own without an address."""
        return {(None, prefix): path for (_, prefix), path in self.paths("global", "rib").items()}

    def sent(self):
        return self.paths("neighbor", f"{NET6}1", "adj-out", peer=f"{NET6}2")


def path_of(attributes):
    of = {each["type"]: each for each in attributes}
    next_hop = of[3]["nexthop"] if 3 in of else of[14]["nexthop"]
    return oracle.Path(
        next_hop=oracle.address(next_hop),
        as_path=" ".join(str(asn) for segment in of.get(2, {}).get("as_paths", []) for asn in segment["asns"]),
        med=of[4]["metric"] if 4 in of else None,
        communities=" ".join(f"{number >> 16}:{number & 0xFFFF}" for number in of.get(8, {}).get("communities", [])),
        origin=("igp", "egp", "incomplete")[of[1]["value"]],
    )
