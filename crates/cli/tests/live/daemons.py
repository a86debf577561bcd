"""BIRD and FRR, and the network they are in.

    a (BIRD, AS 64501) --dA-- router (FRR, AS 65000, and fibula) --dB-- b (BIRD, AS 64502)
                                            |
                                            dC-- c (BIRD, AS 64503; IPv6 alone: IPv4 routes over IPv6 next hops)

All of a, b, c and FRR also have a session with fibula, which collects.
"""

import dataclasses
import json
import pathlib
import signal

import lab
import routes
from lab import FRR, LAB, Daemon, Failed

ROUTER_AS = 65000
COLLECTOR_AS = 65010
COLLECTOR_PORT = 1790
# FRR refuses neighbours with an address of its own, and reaches them by a route of its own. This one is delivered here,
# but is the address of no interface.
COLLECTOR_OF_FRR = "192.0.2.1"
ROUTER_ADDRESS = "10.9.3.1"
# As FRR announces them in this session.
NEXT_HOP = {4: ROUTER_ADDRESS, 6: "fd09:3::1"}
COLLECTOR_PORT_OF_FRR = 1791


@dataclasses.dataclass(frozen=True)
class Neighbour:
    name: str
    device: str
    asn: int
    number: int  # of the link
    over_ipv6: bool = False  # one session, over IPv6, has both families
    # Of its session with the collector:
    several: bool = False  # with all paths of a prefix (ADD-PATH)
    password: str | None = None  # signed (TCP MD5)

    @property
    def net4(self):
        return f"10.9.{self.number}."

    @property
    def net6(self):
        return f"fd09:{self.number}::"

    @property
    def collector(self):
        """Where it finds the collector: on the router. A password is an address's, whatever the port, so that FRR, which has
        none, is at another one."""
        return f"{self.net6}{9 if self.password else 1}"

    def address(self, family, host=2):
        """Its session's address of that family, or another host's on the link."""
        if family == 4 and not self.over_ipv6:
            return f"{self.net4}{host}"
        return f"{self.net6}{host}"

    def sessions(self):
        """Sessions with the router: family of the addresses, and families of the routes."""
        return [(6, (4, 6))] if self.over_ipv6 else [(4, (4,)), (6, (6,))]


NEIGHBOURS = [
    Neighbour("a", "dA", 64501, 1, several=True),
    Neighbour("b", "dB", 64502, 2, password="between b and fibula"),
    Neighbour("c", "dC", 64503, 3, over_ipv6=True),
]

# Static routes of FRR: a prefix, and the rest of its command. 198.18.5.0/24 is by way of another static route, the
# default route of the neighbours is beaten by nothing, and 198.18.7.0/24 beats one of greater distance.
STATIC4 = [
    (f"{COLLECTOR_OF_FRR}/32", "lo"),
    ("198.18.0.0/24", "blackhole"),
    ("198.18.1.0/24", "reject"),
    ("198.18.2.0/24", "dA"),
    ("198.18.3.0/24", "10.9.1.20 dA onlink"),
    ("198.18.4.0/24", "10.9.1.20"),
    ("198.18.4.0/24", "10.9.2.20"),
    ("198.18.5.0/24", "198.18.4.1"),
    ("198.18.6.0/24", "10.9.2.21"),
    ("198.18.6.64/26", "blackhole"),
    ("198.18.7.0/24", "10.9.1.22 200"),
    ("198.18.7.0/24", "10.9.2.22"),
]
STATIC6 = [
    ("3000::/32", "blackhole"),
    ("3000:1::/32", "reject"),
    ("3000:2::/32", "fd09:1::20"),
    ("3000:2::/32", "fd09:2::20"),
    ("3000:3::/32", "dB"),
]
# Static routes of table 100: prefix and next hop. The later ones are those after a restart of FRR.
TABLE_100 = {"198.19.0.0/16": "10.9.1.20", "198.19.7.0/24": "10.9.2.20"}
LATER_TABLE_100 = {"198.19.0.0/16": "10.9.2.20"}


def device_of(address):
    """The router's interface to the network that an IPv4 address is in."""
    return next(each.device for each in NEIGHBOURS if address.startswith(each.net4))


def links():
    for each in NEIGHBOURS:
        lab.link(each.device, f"{each.net4}1/24", f"{each.net6}1/64", each.name, f"{each.net4}2/24", f"{each.net6}2/64")
        if each.password:
            # Deprecated: FRR's own connections are not from there.
            lab.run("ip", "address", "add", f"{each.collector}/64", "dev", each.device, "nodad", "preferred_lft", "0")
    lab.run("ip", "route", "add", "local", COLLECTOR_OF_FRR, "dev", "lo", "src", ROUTER_ADDRESS)


# ---- BIRD ------------------------------------------------------------------------------------

TIMERS = "connect delay time 1; connect retry time 1; error wait time 1, 2; startup hold time 20; hold time 90;"


class Bird:
    def __init__(self, neighbour):
        self.neighbour = neighbour
        self.folder = LAB / neighbour.name
        self.folder.mkdir()
        self.config = self.folder / "bird.conf"
        self.control = self.folder / "bird.ctl"
        self.daemon = Daemon(
            f"bird-{neighbour.name}",
            ["bird", "-f", "-c", str(self.config), "-s", str(self.control), "-P", str(self.folder / "bird.pid")],
            netns=neighbour.name,
        )

    def write(self, said, disabled=False):
        """Writes its configuration: `said` is what it announces, by family. Disabled sessions wait for `enable`."""
        each = self.neighbour
        text = [
            f"router id {each.net4}2;",
            "log stderr all;",
            "protocol device {}",
            "ipv4 table t4; ipv6 table t6;",
            # A MED that is not set on export stays in the AS.
            "filter said { if defined(bgp_med) then bgp_med = bgp_med; accept; }",
        ]
        for family in (4, 6):
            text.append(f"protocol static s{family} {{ ipv{family} {{ table t{family}; }};")
            text += (self._route(family, prefix, announced) for prefix, announced in said[family].items())
            text.append("}")
            if each.several:
                # Less preferred than the others: a session without ADD-PATH tells the preferred one alone.
                seconds = ((prefix, routes.second(prefix, announced)) for prefix, announced in said[family].items())
                text.append(f"protocol static more{family} {{ ipv{family} {{ table t{family}; preference 50; }};")
                text += (self._route(family, prefix, second) for prefix, second in seconds if second)
                text.append("}")
        for number, (family, families) in enumerate(each.sessions()):
            text.append(self._session(f"router{number}", family, families, f"as {ROUTER_AS}", disabled))
        # All it has, in one session: the other family's next hops are in MP_REACH_NLRI.
        password = f' password "{each.password}";' if each.password else ""
        remote = f"port {COLLECTOR_PORT} as {COLLECTOR_AS};{password}"
        text.append(self._session("collector", 6, (4, 6), remote, disabled, " add paths tx;" * each.several))
        self.config.write_text("\n".join(text) + "\n")

    def _route(self, family, prefix, said):
        via = self.neighbour.address(family, said.hop)
        sets = [f"bgp_path.prepend({asn});" for asn in reversed(said.path)]
        if said.med is not None:
            sets.append(f"bgp_med = {said.med};")
        sets += (f"bgp_community.add(({high},{low}));" for high, low in said.communities)
        return f"route {prefix} via {via} {{ {' '.join(sets)} }};" if sets else f"route {prefix} via {via};"

    def _session(self, name, family, families, remote, disabled, options=""):
        each = self.neighbour
        local = f"{each.net4}2" if family == 4 else f"{each.net6}2"
        router = each.collector if name == "collector" else local[:-1] + "1"
        channels = []
        for channel in families:
            extended = " extended next hop on;" if channel != family else ""
            channels.append(f"ipv{channel} {{ table t{channel}; import none; export filter said;{extended}{options} }};")
        return (
            f"protocol bgp {name} {{ local {local} as {each.asn}; neighbor {router} {remote}; {TIMERS}"
            f"{' disabled;' * disabled}\n"
            f"  {' '.join(channels)} }}"
        )

    def start(self):
        self.daemon.start()
        lab.wait(f"BIRD {self.neighbour.name} answers", self.control.exists, 30)

    def command(self, text):
        return lab.run("birdc", "-s", str(self.control), text)

    def reload(self):
        """Has it read its configuration again; only what differs is announced."""
        answer = self.command("configure")
        if "Reconfigur" not in answer:
            raise Failed(f"BIRD {self.neighbour.name} does not take its configuration: {answer}")


# ---- FRR -------------------------------------------------------------------------------------

FPM_PORT = 2620
BMP_PORT = 11019


class Frr:
    """zebra, staticd and bgpd."""

    def __init__(self, next_hop_groups=True, bmp=True, collector=True):
        self.bmp, self.collector, self.table_100 = bmp, collector, {}
        self.write(next_hop_groups, bmp, collector)
        # The buffer of the kernel's messages is as Debian starts zebra: without it zebra misses links that come up amid many routes.
        modules = {"zebra": ["-M", "dplane_fpm_nl", "-s", "90000000"], "bgpd": ["-M", "bmp", "-p", "0"], "staticd": []}
        self.daemons = {
            name: Daemon(
                name,
                [str(FRR / name), "-A", "127.0.0.1", "-P", "0", "-f", str(LAB / f"{name}.conf"), "-i", str(LAB / f"{name}.pid"),
                 "--log", "stdout", *options],
            )
            for name, options in modules.items()
        }

    def write(self, next_hop_groups, bmp, collector):
        configs = {
            "zebra": ["hostname router", f"fpm address 127.0.0.1 port {FPM_PORT}"],
            "staticd": [f"ip route {prefix} {rest}" for prefix, rest in STATIC4],
            "bgpd": bgpd(bmp, collector),
        }
        if not next_hop_groups:
            configs["zebra"].append("no fpm use-next-hop-groups")
        configs["staticd"] += (f"ipv6 route {prefix} {rest}" for prefix, rest in STATIC6)
        for name, lines in configs.items():
            path = LAB / f"{name}.conf"
            path.write_text("\n".join(lines) + "\n")
            lab.shutil.chown(path, "frr", "frr")

    def start(self, *names):
        for name in names or self.daemons:
            self.daemons[name].start()
            socket = pathlib.Path(f"/run/frr/{name}.vty")
            lab.wait(f"{name} answers", socket.exists, 30)

    def set_table_100(self, routes):
        """Configures the routes of a table that zebra leaves out when it sends everything: FPM must be connected.

        A new zebra reads from the kernel what its predecessor installed, and removes what nobody configures again. In 2 of
        48 restarts it forgot a route of this table: it kept it, as the kernel did, and told FPM nothing. So routes that
        are to go are configured, too, which replaces what zebra has read, and then removed."""
        lab.wait("FPM is connected", lambda: vtysh_json("show fpm counters json")["bytes-sent"], 30)
        gone = {prefix: hop for prefix, hop in self.table_100.items() if prefix not in routes}
        lines = [f"ip route {prefix} {hop} table 100" for prefix, hop in {**gone, **routes}.items()]
        lines += (f"no ip route {prefix} {hop} table 100" for prefix, hop in gone.items())
        lab.run("vtysh", "-c", "configure terminal", *(word for line in lines for word in ("-c", line)))
        self.table_100 = routes

    def add(self, address, asn):
        """A further neighbour, which gets both families."""
        lines = [f"router bgp {ROUTER_AS}", f"neighbor {address} remote-as {asn}"]
        for family in (4, 6):
            lines += [f"address-family ipv{family} unicast", f"neighbor {address} activate", "exit-address-family"]
        lab.run("vtysh", "-c", "configure terminal", *(word for line in lines for word in ("-c", line)))

    def restart(self, kill=True, next_hop_groups=True):
        """What happens when zebra dies: bgpd does not tell a new zebra the routes that it told the old one, so watchfrr
        restarts all of them. Or they are all ended, and zebra is the last one."""
        if kill:
            self.daemons["zebra"].stop(signal.SIGKILL)
        for daemon in reversed(self.daemons.values()):
            daemon.stop()
        self.write(next_hop_groups, self.bmp, self.collector)
        for name in self.daemons:
            pathlib.Path(f"/run/frr/{name}.vty").unlink(missing_ok=True)
        self.start()


def bgpd(bmp, collector):
    text = [
        f"router bgp {ROUTER_AS}",
        " bgp router-id 10.9.1.1",
        " no bgp ebgp-requires-policy",
        " no bgp default ipv4-unicast",
        " bgp bestpath as-path multipath-relax",
    ]
    sessions = []  # address, families
    for each in NEIGHBOURS:
        for family, families in each.sessions():
            address = f"{each.net4}2" if family == 4 else f"{each.net6}2"
            sessions.append((address, families))
            text.append(f" neighbor {address} remote-as {each.asn}")
            if family not in families or len(families) > 1:
                text.append(f" neighbor {address} capability extended-nexthop")
    if collector:
        text += [
            f" neighbor {COLLECTOR_OF_FRR} remote-as {COLLECTOR_AS}",
            f" neighbor {COLLECTOR_OF_FRR} port {COLLECTOR_PORT_OF_FRR}",
            f" neighbor {COLLECTOR_OF_FRR} disable-connected-check",
        ]
    everyone = [address for address, _ in sessions] + [COLLECTOR_OF_FRR] * collector
    text += (f" neighbor {address} {what}" for address in everyone for what in ("timers connect 1", "advertisement-interval 0"))
    for family in (4, 6):
        text.append(f" address-family ipv{family} unicast")
        for address, families in sessions:
            if family in families:
                # What it says of itself in BMP's pre-policy view, it has only with this.
                text += [f"  neighbor {address} activate", f"  neighbor {address} soft-reconfiguration inbound"]
                # The neighbours get nothing back.
                text.append(f"  neighbor {address} route-map NONE out")
        if collector:
            text.append(f"  neighbor {COLLECTOR_OF_FRR} activate")
        text += ["  maximum-paths 4", " exit-address-family"]
    if bmp:
        text += [" bmp targets T", f"  bmp connect 127.0.0.1 port {BMP_PORT} min-retry 500 max-retry 1000"]
        text += (f"  bmp monitor ipv{family} unicast {view}-policy" for family in (4, 6) for view in ("pre", "post"))
        text.append(" exit")
    return [*text, "exit", "route-map NONE deny 1", "exit"]


def vtysh(command):
    return lab.run("vtysh", "-c", command)


def vtysh_json(command):
    text = vtysh(command)
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failed(f"vtysh -c {command!r} is not JSON: {error}: {text[:200]!r}") from None
