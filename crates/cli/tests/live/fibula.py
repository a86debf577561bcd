"""`fibula serve`: the process, and what it answers over HTTP."""

import http.client
import json
import os
import pathlib
import select
import signal
import time
import urllib.parse

import daemons
import lab
import oracle
from lab import LAB, Daemon, Failed

HTTP_PORT = 8080
CHECKPOINT = LAB / "fibula.checkpoint"
MRT = LAB / "updates"
RIS = LAB / "ris.pipe"
# Routes of one answer: the most that the API gives.
LIMIT = 1000

# A path of BMP begins with the AS of the router that speaks it, if that is FRR.
FRR_FIRST = f"{daemons.ROUTER_AS} "


def program():
    """The command, as the tests build it; FIBULA_BIN may name another one."""
    found = os.environ.get("FIBULA_BIN")
    if found:
        return pathlib.Path(found)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    return target / "debug" / "fibula"


def configuration(quiet, kernel_buffer, checkpoint_every, bmp_hold="120s"):
    """The whole configuration file. What is told of a lost session, or a lost daemon, goes sooner than by default."""
    bird = "".join(map(neighbour, daemons.NEIGHBOURS))
    buffer = f"buffer = {kernel_buffer}" if kernel_buffer else ""
    return f"""
http = {{ listen = "127.0.0.1:{HTTP_PORT}" }}
checkpoint = {{ file = "{CHECKPOINT}", every = "{checkpoint_every}" }}
[[fpm]]
listen = "127.0.0.1:{daemons.FPM_PORT}"
quiet = "{quiet}s"
[[bmp]]
listen = "127.0.0.1:{daemons.BMP_PORT}"
quiet = "{quiet}s"
hold = "{bmp_hold}"
[[kernel]]
{buffer}
{collector(bird)}
[[mrt]]
folder = "{MRT}"
[[ris]]
path = "{RIS}"
# Nobody writes to it again after a restart.
hold = "1h"
[[bgp]]
name = "frr"
listen = "{daemons.COLLECTOR_OF_FRR}:{daemons.COLLECTOR_PORT_OF_FRR}"
local-as = {daemons.COLLECTOR_AS}
router-id = "10.9.0.10"
[[bgp.neighbour]]
address = "{daemons.ROUTER_ADDRESS}"
remote-as = {daemons.ROUTER_AS}
hold = "1s"
"""


def collector(neighbours):
    """The listener of BGP sessions, with these neighbours."""
    return f"""
[[bgp]]
listen = "[::]:{daemons.COLLECTOR_PORT}"
local-as = {daemons.COLLECTOR_AS}
router-id = "10.9.0.10"
{neighbours}"""


def neighbour(each):
    """A BIRD, as the collector's configuration has it."""
    text = f'[[bgp.neighbour]]\naddress = "{each.net6}2"\nremote-as = {each.asn}\nhold = "1s"\n'
    if each.several:
        text += "add-path = true\n"
    if each.password:
        file = LAB / f"{each.name}.password"
        file.write_text(f"{each.password}\n")
        text += f'password-file = "{file}"\n'
    return text


class Connection:
    """A connection that is kept, and made anew after an error."""

    def __init__(self, timeout=30):
        self.timeout = timeout
        self.http = None

    def get(self, path):
        """Status and body. A kept connection that the server has closed meanwhile is made anew, as clients do."""
        if self.http is not None and self.is_closed():
            self.close()
        if self.http is None:
            self.http = http.client.HTTPConnection("127.0.0.1", HTTP_PORT, timeout=self.timeout)
        try:
            self.http.request("GET", path)
            answer = self.http.getresponse()
            return answer.status, answer.read()
        except Exception:
            self.close()
            raise

    def is_closed(self):
        if self.http.sock is None:
            return True
        readable, _, _ = select.select([self.http.sock], [], [], 0)
        return bool(readable)  # the end: there is no answer to wait for

    def json(self, path):
        status, body = self.get(path)
        if status != 200:
            raise Failed(f"GET {path}: status {status}: {body[:300]!r}")
        return json.loads(body)

    def close(self):
        if self.http is not None:
            self.http.close()
            self.http = None


class Server:
    def __init__(self, quiet=5, kernel_buffer=None, checkpoint_every="1s"):
        if not program().exists():
            raise Failed(f"there is no {program()}: build it (cargo build --bin fibula), or set FIBULA_BIN")
        self.config = LAB / "serve.toml"
        self.settings = {"quiet": quiet, "kernel_buffer": kernel_buffer, "checkpoint_every": checkpoint_every}
        MRT.mkdir()
        os.mkfifo(RIS)
        self.config.write_text(configuration(**self.settings))
        self.daemon = Daemon("fibula", [str(program().absolute()), "serve", "--config", str(self.config)])
        self.connection = Connection(timeout=120)

    def start(self):
        self.daemon.start()
        self.wait_until_it_answers()

    def wait_until_it_answers(self, seconds=30):
        """Returns the seconds until /healthz was answered."""
        begin = time.monotonic()

        def answers():
            if not self.daemon.is_running():
                raise Failed(f"fibula ended with {self.daemon.process.returncode}:\n{self.daemon.tail()}")
            try:
                return self.connection.get("/healthz")
            except OSError:
                return None

        lab.wait("fibula answers", answers, seconds)
        return time.monotonic() - begin

    def stop(self, number=signal.SIGTERM):
        """Ends it; returns the seconds that took."""
        self.connection.close()
        return self.daemon.stop(number)

    def reload(self, **changes):
        """Changes the configuration, and has it read (SIGHUP)."""
        self.settings |= changes
        self.config.write_text(configuration(**self.settings))
        self.daemon.send(signal.SIGHUP)

    def status(self):
        """The lines of what the kernel says about the process."""
        return pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text().splitlines()

    def sessions(self):
        """What differs when a session begins anew: since when it is what it is, and how often it was connected."""
        return {source["name"]: (source["state"], source["since"], source["connections"]) for source in self.sources()}

    def overruns(self):
        """How often the kernel had more to say than the socket holds."""
        kernel = [source for source in self.sources() if source["kind"] == "kernel"]
        return sum(int(source["remarks"].get("overruns", 0)) for source in kernel)

    def unsettled(self):
        """The peers that have not said everything again."""
        peers = self.connection.json("/v1/peers")["peers"]
        return [f"{peer['name']} of {peer['source']}: {peer['routes']}" for peer in peers if peer["state"] == "resync"]

    def sources(self):
        return self.connection.json("/v1/peers")["sources"]

    # ---- tables ----

    def tables(self):
        """The status of all tables, by name."""
        return {table["name"]: table for table in self.connection.json("/v1/table")["tables"]}

    def routes(self, table):
        """All prefixes of a table with all their paths, as the API has them."""
        if table not in self.tables():
            return []
        found = []
        for network in ("0.0.0.0/0", "::/0"):
            query = {"table": table, "view": "covered", "limit": LIMIT}
            truncated = True
            while truncated:
                page = self.connection.json(f"/v1/routes/{network}?{urllib.parse.urlencode(query)}")["tables"][0]
                found += page["routes"]
                truncated = page["truncated"]
                if truncated:
                    query["after"] = page["routes"][-1]["prefix"]
        return found

    def forwarding(self, table):
        """A forwarding table in the oracle's form: what counts for each prefix."""
        found = {}
        for route in self.routes(table):
            best = [path for path in route["paths"] if path["best"]]
            if len(best) != 1:
                raise Failed(f"{table} {route['prefix']}: {len(best)} best paths: {route}")
            found[route["prefix"]] = value(best[0]["attributes"])
        return found

    def paths(self, table):
        """A table of BGP in the oracle's form."""
        paths = ((route, path) for route in self.routes(table) for path in route["paths"])
        return oracle.numbered(
            ((path["peer"]["address"], route["prefix"]), bgp(path["attributes"])) for route, path in paths)


class Small(Server):
    """A server with a configuration of its own, while no other one runs."""

    def __init__(self, name, sources, command=None):
        self.config = LAB / f"{name}.toml"
        self.config.write_text(f'http = {{ listen = "127.0.0.1:{HTTP_PORT}" }}\n{sources}')
        self.daemon = Daemon(name, [*(command or [str(program().absolute())]), "serve", "--config", str(self.config)])
        self.connection = Connection(timeout=120)


def value(attributes):
    """Next hops in the oracle's form."""
    if attributes["kind"] != "next_hops":
        raise Failed(f"these are no next hops: {attributes}")
    hops = [oracle.hop(hop.get("gateway"), hop.get("interface"), hop["weight"]) for hop in attributes["next_hops"]]
    return oracle.forwarding(attributes["type"], hops)


def bgp(attributes):
    """Path attributes in the oracle's form."""
    if attributes["kind"] != "bgp":
        raise Failed(f"these are no attributes of BGP: {attributes}")
    next_hop = attributes.get("next_hop")
    return oracle.Path(
        next_hop=oracle.address(next_hop) if next_hop else None,
        as_path=attributes.get("as_path") or "",
        med=attributes.get("med"),
        communities=attributes.get("communities") or "",
        origin=attributes.get("origin") or "",
    )


def answer(match):
    """The match of a lookup in the oracle's form: (prefix, value), or None."""
    return (match["prefix"], value(match["attributes"])) if match else None
