"""What happens to the router, and that fibula knows the same as the daemons after each step."""

import dataclasses
import socket
import time

import archives
import client
import daemons
import lab
import oracle
import routes
from fibula import FRR_FIRST, MRT, RIS, Server
from lab import Failed


@dataclasses.dataclass(frozen=True)
class Scale:
    routes4: int
    routes6: int
    burst: int  # routes that the kernel gets at once
    patience: float  # seconds for all daemons to come to rest
    rest: float  # seconds without a change that count as rest
    quiet: float  # seconds of silence after which fibula takes a connection's table for whole
    addresses: int  # that the client asks for


SCALES = {
    "small": Scale(1_000, 200, 20_000, patience=60, rest=0.7, quiet=2, addresses=60),
    "large": Scale(100_000, 20_000, 100_000, patience=300, rest=3.0, quiet=5, addresses=200),
}


class Router:
    """The daemons, fibula, and what all of them should know."""

    def __init__(self, scale, seed, say):
        self.scale = scale
        self.say = say
        self.neighbours = routes.Neighbours([each.name for each in daemons.NEIGHBOURS], scale.routes4, scale.routes6, seed)
        self.birds = {each.name: daemons.Bird(each) for each in daemons.NEIGHBOURS}
        self.frr = daemons.Frr()
        self.server = Server(scale.quiet, kernel_buffer=256 << 10)
        self.client = None
        self.zebra, self.kernel, self.bgpd = {}, {}, {}
        self.has_resent = False  # zebra sends routes of other tables once, not when FPM connects again
        self.is_installed = True  # the kernel has what zebra has
        # FRR was started again: the kernel has what the one before left.
        self.was_refilled = False
        self.is_inline = False  # FPM without next-hop groups
        self.is_bmp_doubtful = False  # BMP's connection began while routes changed
        self.bmp_hold = 90
        self.notes = []

    def log_tails(self):
        every = [self.server.daemon, *self.frr.daemons.values(), *(bird.daemon for bird in self.birds.values())]
        return "\n".join(f"--- {daemon.name}\n{daemon.tail()}" for daemon in every if daemon.tail())

    # ---- configuration of the neighbours ----

    def write(self, name):
        said = {family: dict(self.neighbours.said[name, family]) for family in (4, 6)}
        self.birds[name].write(said)

    def configure(self, names=None):
        for name in names or self.birds:
            self.write(name)
            self.birds[name].reload()

    def configuration(self, names="abc"):
        """For each prefix, the next hops that these neighbours announce."""
        found = {}
        for each in (each for each in daemons.NEIGHBOURS if each.name in names):
            interface = socket.if_nametoindex(each.device)
            for family in (4, 6):
                for prefix, said in self.neighbours.said[each.name, family].items():
                    found.setdefault(prefix, set()).add(oracle.hop(each.address(family, said.hop), interface))
        return found

    # ---- rest ----

    def signature(self):
        """Something that differs whenever anything moves, and what is known to be on its way."""
        fpm = daemons.vtysh_json("show fpm counters json")
        tables = self.server.tables()
        moving = [name for name, table in tables.items() if not table["complete"]]
        # After a lost connection zebra may leave some in its queue until the next change, and count bytes in a buffer that was
        # emptied (FRR 8.4.4, seen for five minutes): what does not change is at rest, and the tables are compared in any case.
        queue = fpm["data-plane-contexts-queue"], fpm["obuf-bytes"]
        bgp = daemons.vtysh_json("show bgp summary json")
        said = [
            (family, peer, state["state"], state["pfxRcd"], state["pfxSnt"], state["inq"], state["outq"])
            for family, about in bgp.items() for peer, state in about["peers"].items()
        ]
        versions = [about["tableVersion"] for about in bgp.values()]
        zebra = [daemons.vtysh_json(f"show {family} route summary json")["routesTotalFib"] for family in ("ip", "ipv6")]
        families = [(name, table[family]) for name, table in tables.items() for family in ("ipv4", "ipv6")]
        changes = [(name, about["sequence"]) for name, about in families if about]
        return repr((fpm["bytes-sent"], queue, said, versions, zebra, changes)), moving

    def rest(self, condition=lambda: True):
        """Waits until nothing has moved for a while and the condition holds; returns the seconds that took."""
        begin = since = time.monotonic()
        last = None
        while True:
            now, moving = self.signature()
            if now != last or moving or not condition():
                last, since = now, time.monotonic()
            elif time.monotonic() - since >= self.scale.rest:
                return since - begin
            if time.monotonic() - begin > self.scale.patience:
                raise Failed(f"after {self.scale.patience:g} s the daemons have not come to rest: not complete: {moving}; {now}\n"
                             f"peers: {self.server.unsettled()}")
            time.sleep(0.1)

    def has_all(self):
        """Whether FRR has heard all that the neighbours are configured to say."""
        heard = 0
        for about in daemons.vtysh_json("show bgp summary json").values():
            heard += sum(peer["pfxRcd"] for peer in about["peers"].values())
        return heard == sum(map(len, self.neighbours.said.values()))

    # ---- comparison ----

    def agree(self):
        """Asks zebra and the kernel for their tables. zebra may still be telling the kernel."""
        # Where they may differ for good, there is less to wait for.
        until = time.monotonic() + self.scale.patience / (6 if self.was_refilled else 1)
        while True:
            self.zebra, self.kernel = oracle.zebra(), oracle.kernel()
            if not self.is_installed:
                return
            # Of the link-local network of each interface both choose one, not the same.
            zebra, kernel = ({**table, "fe80::/64": None} for table in (self.zebra, self.kernel[""]))
            if zebra == kernel:
                return
            if time.monotonic() > until:
                break
            time.sleep(1)
        if not self.was_refilled or zebra.keys() != kernel.keys():
            oracle.equal("the kernel's table and zebra's", zebra, kernel)
        # A new zebra adds IPv6 routes behind those that its predecessor left, which the kernel goes on using (FRR 8.4.4):
        # fibula's tables are compared with what each of both has.
        differ = sum(zebra[prefix] != kernel[prefix] for prefix in zebra)
        self.notes.append(f"{differ} routes of the kernel have other next hops than zebra's")

    def compare(self, silent=()):
        """Every table of fibula with what the daemons say. A table that differs is given some seconds. The neighbours in
        `silent` have no session with the collector; None: which have one, nobody knows."""
        self.agree()
        bgpd, best = self.bgpd, _ = oracle.bgpd()
        self.until_equal("fpm", self.fpm, self.server.forwarding)
        if not self.has_resent:
            self.until_equal("fpm/100", lambda: oracle.zebra(100), self.server.forwarding)
        known = set(self.server.tables())
        for number, table in self.kernel.items():
            self.until_equal(f"kernel/{number}" if number else "kernel", lambda table=table: table, self.server.forwarding)
        for name in known:
            if name.startswith("kernel/") and name.removeprefix("kernel/") not in self.kernel:
                self.until_equal(name, dict, self.server.forwarding)
        self.pre_policy(bgpd)
        self.post_policy(bgpd)
        if silent is not None:
            expected = oracle.announced(self.neighbours, collector=True, silent=silent)
            self.until_equal("bgp", lambda: expected, self.server.paths)
        self.until_equal("frr", lambda: oracle.advertised(best), self.server.paths)

    def pre_policy(self, bgpd):
        """FRR's pre-policy view, which lacks changes if it was sent while routes changed; then it is asked for again."""
        name, expected = "bmp/pre-policy", as_bmp(bgpd)
        if self.is_bmp_doubtful:
            self.is_bmp_doubtful = False
            found = self.server.paths(name)
            differ = sum(expected.get(key) != found.get(key) for key in expected.keys() | found.keys())
            if differ > len(expected) // 50:
                raise Failed(oracle.differences(f"table {name}", expected, found))
            if differ:
                self.notes.append(f"FRR's BMP lost {differ} changes while it sent its table")
                # A session with another setting is another one.
                self.bmp_hold += 1
                self.server.reload(bmp_hold=f"{self.bmp_hold}s")
                self.rest()
        self.until_equal(name, lambda: expected, self.server.paths)

    def until_equal(self, name, expected, found):
        end = time.monotonic() + self.scale.patience / 3
        while True:
            difference = oracle.differences(f"table {name}", expected(), found(name))
            if difference is None:
                return
            if time.monotonic() > end:
                raise Failed(difference)
            time.sleep(0.5)

    def post_policy(self, bgpd):
        """FRR's post-policy view lacks routes (it reports them as withdrawn); those that it has are right."""
        expected, found = as_bmp(bgpd), self.server.paths("bmp/post-policy")
        oracle.equal("table bmp/post-policy, of the routes that FRR does not lose",
                     {key: path for key, path in expected.items() if key in found}, found)
        self.notes.append(f"post-policy: {len(found)} of {len(expected)}")

    def has_table_100(self):
        """That zebra and the kernel, which were compared with fibula, have the configured routes of table 100 alone."""
        said = {
            prefix: oracle.forwarding("unicast", [oracle.hop(hop, socket.if_nametoindex(daemons.device_of(hop)))])
            for prefix, hop in self.frr.table_100.items()
        }
        oracle.equal("table 100 of zebra", said, oracle.zebra(100))
        oracle.equal("table 100 of the kernel", said, self.kernel["100"])

    def has_configured_routes(self):
        """That the oracles are not empty: all that neighbours say was in bgpd, and in zebra, when they were compared."""
        said = oracle.announced(self.neighbours)
        oracle.equal("what bgpd knows, and what the neighbours were told to say", said, self.bgpd)
        lost = {prefix for _, prefix in said} - set(self.zebra)
        if lost:
            raise Failed(f"{len(lost)} announced prefixes are not in zebra, such as {min(lost)}")

    # ---- archives ----

    def write_archives(self):
        """A sample of what the neighbours say, as a file in the folder that fibula watches, and as lines in its pipe."""
        said = oracle.announced(self.neighbours)
        self.archived = {key: said[key] for key in self.neighbours.rng.sample(sorted(said), min(len(said), 2000))}
        now = int(time.time())
        whole = MRT / "updates.part"
        whole.write_bytes(archives.mrt(self.archived, now))
        whole.rename(MRT / time.strftime("updates.%Y%m%d.%H%M", time.gmtime(now)))
        # Stays open: the routes of a pipe that ended would go after a while.
        self.pipe = RIS.open("w")
        self.pipe.write(archives.ris(self.archived, now))
        self.pipe.flush()

    # ---- the client ----

    def begin_asking(self):
        rng = self.neighbours.rng
        some = sorted(self.neighbours.prefixes(4))
        some = rng.sample(some, self.scale.addresses * 2 // 3)
        some += rng.sample(sorted(self.neighbours.prefixes(6)), self.scale.addresses // 3)
        some += [prefix for prefix, _ in (*daemons.STATIC4, *daemons.STATIC6)]
        self.client = client.Client(dict.fromkeys(prefix.partition("/")[0] for prefix in some if not prefix.endswith("/0")))
        self.client.start()

    def truths(self):
        """What may be true from now on: so far, what was compared last."""
        found = {name: client.Truth() for name in client.TABLES}
        self.learn(found)
        return found

    def fpm(self):
        """What zebra had when it was compared, as FPM has it."""
        return oracle.inline(self.zebra) if self.is_inline else self.zebra

    def learn(self, truths):
        truths["fpm"].add(self.fpm())
        truths["kernel"].add(self.kernel[""])

    def judge(self, truths):
        wrong = self.client.errors[:]
        wrong += client.judge(self.client.take(), truths)
        if wrong:
            shown = "\n  ".join(wrong[:10])
            raise Failed(f"the client got {len(wrong)} answers that were right at no time, or errors:\n  {shown}")


def as_bmp(paths):
    """What FRR makes of its paths in BMP: its own AS comes first, and IPv6 next hops of IPv4 routes are left out."""
    found = {}
    for (peer, prefix), path in paths.items():
        is_extended = ":" not in prefix and path.next_hop and ":" in path.next_hop
        next_hop = None if is_extended else path.next_hop
        found[peer, prefix] = dataclasses.replace(path, next_hop=next_hop, as_path=FRR_FIRST + path.as_path)
    return found
