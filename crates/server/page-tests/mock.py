"""A server that answers as the API says, from plain lists of routes: what the page is tested against without a real one."""

import json
import queue
import re
import socket
import threading
import time
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

PAGE = Path(__file__).parent.parent / "page"
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
STEPS = [("local preference", lambda a: -a.get("local_pref", 100)), ("AS path length", lambda a: len(a.get("as_path", "").split()))]


def now():
    return stamp(datetime.now(timezone.utc))


def stamp(moment):
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def whole(attributes):
    """With the length of the path, as answers have it."""
    if attributes and attributes["kind"] == "bgp":
        return {**attributes, "as_path_len": len(attributes["as_path"].split())}
    return attributes


class Refused(Exception):
    """An answer other than 200, with its sentence."""

    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


class Mock:
    """Tables of routes, and a server for them that can be told to fail, to wait, to stop and to start again."""

    def __init__(self):
        self.lock = threading.RLock()
        self.tables = {}  # name -> {prefix -> {(peer id, path id) -> attributes}}
        self.peers = {}
        self.tell = []  # what was said, for a server of another program
        self.history = []
        self.counts = {}
        self.names = {}  # AS -> name
        self.flows = {}  # column -> values with most bytes
        self.files = []  # changes of the history in files: (time, table, prefix, attributes)
        self.begun = datetime.now(timezone.utc)
        self.followers = []
        self.failures = {}  # start of a path -> (status, sentence)
        self.waits = {}  # start of a path -> seconds
        self.token = None
        self.server = None
        self.port = 0
        self.started = now()

    # ---- what tests do to it

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        mock = self

        class Handler(Answers):
            pass

        Handler.mock = mock
        ThreadingHTTPServer.allow_reuse_address = True
        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        self.server.connections = set()
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self):
        """As if the process were killed: connections break."""
        server, self.server = self.server, None
        server.shutdown()
        server.server_close()
        for connection in list(server.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self.lock:
            for _, follower in self.followers:
                follower.put(None)

    def close(self):
        if self.server:
            self.stop()

    def restart(self):
        """A new process: changes are numbered anew."""
        with self.lock:
            self.history, self.started, self.followers = [], now(), []
        self.start()

    def peer(self, address, asn, source):
        self.tell.append({"do": "peer", "address": address, "asn": asn, "source": source})
        number = len(self.peers)
        name = source if not address else f"AS{asn} ({address})" if asn else address
        self.peers[number] = {"id": number, "name": name, "address": address, "asn": asn, "source": source}
        return number

    def announce(self, table, prefix, peer, attributes, path_id=0):
        attributes = whole(attributes)
        self.tell.append({"do": "announce", "table": table, "prefix": prefix, "peer": peer, "path_id": path_id, "attributes": attributes})
        self._change(table, prefix, (peer, path_id), attributes)

    def withdraw(self, table, prefix, peer):
        self.tell.append({"do": "withdraw", "table": table, "prefix": prefix, "peer": peer})
        self._change(table, prefix, (peer, 0), None)

    def top(self, column, *values):
        top = [dict(zip(("value", "bytes", "packets", "flows", "missed_bytes"), value)) for value in values]
        self.tell.append({"do": "flows", "column": column, "top": top})
        self.flows[column] = top

    def past(self, table, prefix, ago, attributes):
        """A change in the history of files, so many seconds before the server was started."""
        attributes = whole(attributes)
        self.tell.append({"do": "past", "table": table, "prefix": prefix, "ago": ago, "attributes": attributes})
        self.files.append((stamp(self.begun - timedelta(seconds=ago)), table, prefix, attributes))

    def _change(self, table, prefix, path, attributes):
        with self.lock:
            routes = self.tables.setdefault(table, {})
            before = self.best(routes.get(prefix))
            paths = routes.setdefault(prefix, {})
            if attributes is None:
                paths.pop(path, None)
            else:
                paths[path] = attributes
            after = self.best(paths)
            if not paths:
                del routes[prefix]
            family = "ipv6" if ":" in prefix else "ipv4"
            self.counts[table, family] = self.counts.get((table, family), 0) + 1
            if before == after:
                return
            holder = None if after is None else self.peers[after[0][0]]
            change = {"id": len(self.history) + 1, "time": now(), "table": table, "prefix": prefix,
                      "peer": holder and self.plain(holder), "attributes": after and after[1]}
            self.history.append(change)
            for wanted, follower in self.followers:
                if wanted(change):
                    follower.put(change)

    # ---- what it knows

    @staticmethod
    def plain(peer):
        return {key: peer[key] for key in ("id", "name", "address", "asn", "source")}

    @staticmethod
    def order(paths):
        return sorted(paths.items(), key=lambda item: [step(item[1]) for _, step in STEPS] + [item[0]])

    def best(self, paths):
        return self.order(paths)[0] if paths else None

    def chosen(self, query):
        name = query.get("table")
        if name and name not in self.tables:
            raise Refused(404, f"There is no table {name}. The tables are: {', '.join(self.tables)}.")
        return {name: self.tables[name]} if name else self.tables

    def route(self, prefix, paths):
        (peer, path), attributes = self.best(paths)
        return {"prefix": prefix, "peer": self.plain(self.peers[peer]), "path_id": path, "attributes": attributes}

    def every_path(self, prefix, paths):
        order = self.order(paths)
        winner = order[0]
        out = []
        for place, ((peer, path), attributes) in enumerate(order):
            last = "path identifier" if peer == winner[0][0] else "peer order"
            lost = next((name for name, step in STEPS if step(attributes) != step(winner[1])), last)
            out.append({"peer": self.plain(self.peers[peer]), "path_id": path, "attributes": attributes, "best": place == 0, "lost_by": lost if place else None})
        name = f"peer {self.peers[winner[0][0]]['name']}"
        why = f"{name}, the only path" if len(out) == 1 else f"{name} over {self.peers[order[1][0][0]]['name']} by {out[1]['lost_by']}"
        return {"prefix": prefix, "paths": out, "why": why}

    def wanted(self, query):
        def check(change):
            origin = ((change["attributes"] or {}).get("as_path") or "").split()[-1:]
            return all([
                not query.get("prefix") or ip_network(change["prefix"]) == (wide := ip_network(query["prefix"]))
                or query.get("view") != "exact" and wide.version == ip_network(change["prefix"]).version and ip_network(change["prefix"]).subnet_of(wide),
                not query.get("table") or change["table"] == query["table"],
                not query.get("origin_as") or not change["attributes"] or origin == [query["origin_as"]],
                not query.get("peer") or str((change["peer"] or {}).get("id")) == query["peer"],
            ])
        return check


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    mock: Mock

    def log_message(self, *_):
        pass

    def setup(self):
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self):
        self.server.connections.discard(self.connection)
        super().finish()

    def do_GET(self):
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        path = unquote(parts.path)
        try:
            for start, seconds in list(self.mock.waits.items()):
                if path.startswith(start):
                    time.sleep(seconds)
            for start, (status, sentence) in list(self.mock.failures.items()):
                if path.startswith(start):
                    raise Refused(status, sentence)
            if path.startswith("/v1/") and self.mock.token and self.headers["Authorization"] != f"Bearer {self.mock.token}":
                raise Refused(401, "This server answers only with a token.")
            if path == "/v1/changes":
                self.changes(query)
                return
            with self.mock.lock:
                kind, data = self.answer(path, query)
            self.send(200, kind, data)
        except Refused as refused:
            self.send(refused.status, "application/json", json.dumps({"error": str(refused)}).encode())
        except (BrokenPipeError, ConnectionResetError):
            pass

    def send(self, status, kind, data):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(data)

    def answer(self, path, query):
        name = "index.html" if path == "/" else path[1:]
        if (PAGE / name).is_file() and "/" not in name:
            return TYPES[(PAGE / name).suffix], (PAGE / name).read_bytes()
        if path == "/v1/hilbert":
            return "application/octet-stream", self.hilbert(query)
        for start, answer in [("/v1/lookup/", self.lookup), ("/v1/routes/", self.routes), ("/v1/history/", self.files)]:
            if path.startswith(start):
                return "application/json", json.dumps(answer(path[len(start):], query)).encode()
        plain = {"/v1/peers": self.peers, "/v1/search": self.search, "/v1/filter": self.filter, "/v1/history": self.past, "/v1/table": self.table, "/v1/histogram": self.histogram, "/v1/flows/top": self.top, "/v1/names": self.names}
        if path not in plain:
            raise Refused(404, f"There is nothing at {path}.")
        return "application/json", json.dumps(plain[path](query)).encode()

    def lookup(self, text, query):
        try:
            address = ip_address(text)
        except ValueError:
            raise Refused(400, f"{text} is not an address.") from None
        tables = []
        for name, routes in self.mock.chosen(query).items():
            covering = [self.mock.route(p, paths) for p, paths in routes.items() if address in ip_network(p)]
            covering.sort(key=lambda route: -ip_network(route["prefix"]).prefixlen)
            tables.append({"table": name, "sequence": len(self.mock.history), "match": covering[0] if covering else None, "covering": covering})
        return {"address": str(address), "tables": tables}

    def routes(self, text, query):
        asked = ip_network(text)
        view = query.get("view", "exact")
        limit = int(query.get("limit", 1000))

        def fits(prefix):
            other = ip_network(prefix)
            if other.version != asked.version:
                return False
            return {"exact": other == asked, "covering": asked.subnet_of(other), "covered": other.subnet_of(asked)}[view]

        tables = []
        for name, routes in self.mock.chosen(query).items():
            found = sorted((p for p in routes if fits(p)), key=ip_network)
            tables.append({"table": name, "routes": [self.mock.every_path(p, routes[p]) for p in found[:limit]], "truncated": len(found) > limit})
        return {"prefix": str(asked), "view": view, "tables": tables}

    def peers(self, _):
        out = []
        for peer in self.mock.peers.values():
            held = [p for routes in self.mock.tables.values() for p, paths in routes.items() for held_by, _ in paths if held_by == peer["id"]]
            six = sum(":" in p for p in held)
            best = [p for routes in self.mock.tables.values() for p, paths in routes.items() if self.mock.best(paths)[0][0] == peer["id"]]
            six_best = sum(":" in p for p in best)
            out.append({**peer, "routes": {"ipv4": len(held) - six, "ipv6": six}, "best": {"ipv4": len(best) - six_best, "ipv6": six_best}, "state": "up" if held else "down"})
        source = {"name": "bgp", "kind": "bgp", "endpoint": "127.0.0.1:1790", "table": "bgp", "state": "up", "connections": 3, "bytes": 73400320, "announced": 1150000,
                  "withdrawn": 812345, "damaged": 0, "ignored": 7, "since": self.mock.started, "last": now(), "remarks": {}, "trouble": None}
        fpm = {**source, "name": "fpm", "kind": "fpm", "endpoint": "127.0.0.1:2620", "table": "fpm", "state": "lost", "connections": 1, "damaged": 2,
               "remarks": {"sends": "next-hop objects"}, "trouble": "the connection was reset"}
        return {"peers": out, "sources": [source, fpm]}

    def search(self, query):
        q = query.get("q", "")
        try:
            if "/" in q:
                return {"q": q, "is": "prefix", "prefix": str(ip_network(q, strict=False))}
            return {"q": q, "is": "address", "address": str(ip_address(q))}
        except ValueError:
            pass
        if q.upper().removeprefix("AS").isdigit():
            asn = q.upper().removeprefix("AS")
            tables = []
            for name, routes in self.mock.chosen(query).items():
                held = [p for p, paths in routes.items() if self.mock.best(paths)[1].get("as_path", "").split()[-1:] == [asn]]
                if held:
                    six = sum(":" in p for p in held)
                    tables.append({"table": name, "routes": {"ipv4": len(held) - six, "ipv6": six},
                                   "prefixes": sorted(held, key=lambda p: (":" in p, int(ip_network(p).network_address)))})
            left = int(query.get("limit", 100))
            skipped = int(query.get("after", 0))  # a number here; the page passes `next` on as it is
            more = False
            for table in tables:
                held = table["prefixes"]
                table["prefixes"] = held[skipped:skipped + left]
                more |= len(held) > skipped + left
                left, skipped = left - len(table["prefixes"]), max(0, skipped - len(held))
            cursor = {"next": str(int(query.get("after", 0)) + int(query.get("limit", 100)))} if more else {}
            return {"q": q, "is": "as", "asn": int(asn), "origins": tables, "peers": [p for p in self.peers({})["peers"] if p["asn"] == int(asn)], "truncated": more, **cursor}
        found = [p for p in self.peers({})["peers"] if q.lower() in p["name"].lower() or q.lower() in p["source"].lower()]
        return {"q": q, "is": "peer" if found else "nothing", "peers": found, "truncated": False}

    def filter(self, query):
        path = re.compile(query.get("path_regex", "").replace("_", "(?:^|[ {},]|$)"))
        community = re.compile(re.escape(query.get("community", "*")).replace(r"\*", r"[^:]*"))

        def fits(attributes):
            words = attributes.get("communities", "").split()
            return path.search(attributes.get("as_path", "")) and ("community" not in query or any(map(community.fullmatch, words)))

        found, read = [], 0
        for name, routes in self.mock.chosen(query).items():
            for prefix in sorted(routes, key=lambda p: (":" in p, int(ip_network(p).network_address), ip_network(p).prefixlen)):
                route = self.mock.route(prefix, routes[prefix])
                best = True
                if "peer" in query:
                    peer = int(query["peer"])
                    own = [path for path in routes[prefix] if path[0] == peer]
                    if not own:
                        continue
                    best = route["peer"]["id"] == peer
                    route = {**route, "peer": self.mock.plain(self.mock.peers[peer]), "attributes": routes[prefix][own[0]]}
                read += 1
                if "peer" in query or (route["attributes"]["kind"] == "bgp" and fits(route["attributes"])):
                    found.append({"table": name, "route": route, "best": best})
        begin, limit = int(query.get("after", 0)), int(query.get("limit", 100))  # a number here, as of search
        return {"routes": found[begin:begin + limit], "read": read, "next": str(begin + limit) if len(found) > begin + limit else None}

    def past(self, query):
        wanted = self.mock.wanted(query)
        return {"changes": [c for c in reversed(self.mock.history) if wanted(c)][: int(query.get("limit", 100))]}

    def files(self, prefix, query):
        """Answers of the history in files, which begins two hours before the server was started."""
        tables = sorted({table for _, table, _, _ in self.mock.files if query.get("table") in (None, table)})
        changes = [c for c in self.mock.files if c[1] in tables and ip_network(c[2]) == ip_network(prefix)]
        if "at" not in query:
            listed = [{"time": at, "table": table, "peer": None, "attributes": attributes, "or_before": False} for at, table, _, attributes in reversed(changes)]
            begin, limit = int(query.get("after", 0)), int(query.get("limit", 100))
            rest = {"next": str(begin + limit)} if len(listed) > begin + limit else {}
            page = listed[begin:begin + limit]
            return {"prefix": prefix, "tables": [], **({"changes": page} if page else {}), **rest}
        if query["at"] > now():
            raise Refused(400, "the time is in the future")
        oldest = stamp(self.mock.begun - timedelta(hours=2))
        if query["at"] < oldest:
            raise Refused(404, f"the history begins at {oldest}")
        answer = []
        for name in tables:
            own = [c for c in changes if c[1] == name]
            before, after = [c for c in own if c[0] <= query["at"]], [c for c in own if c[0] > query["at"]]
            times = {"since": before[-1][0] if before else None, "until": after[0][0] if after else None}
            route = before[-1][3] if before else None
            found = route and {"prefix": prefix, "peer": None, "attributes": route, "or_before": False, **times}
            answer.append({"table": name, "match": found, "covering": [found] if found else [], **(times if not found else {"since": None, "until": None})})
        return {"prefix": prefix, "at": query["at"], "tables": answer}

    def table(self, _):
        tables = []
        for name, routes in self.mock.tables.items():
            newest = next((c["time"] for c in reversed(self.mock.history) if c["table"] == name), None)
            families = {}
            for family, engine in [("ipv4", "runmap"), ("ipv6", "wideleaf")]:
                number = sum((":" in p) == (family == "ipv6") for p in routes)
                families[family] = {"routes": number, "engine": engine, "generation": 41, "sequence": len(self.mock.history), "memory_bytes": 4096 + 66 * number,
                                    "changes": self.mock.counts.get((name, family), 0), "rebuilds": 12, "patches": 340, "failures": 0, "audit": {"probes": 18000, "differences": 0}}
            tables.append({"name": name, "complete": True, "newest_change": newest, **families})
        return {"version": "0.1.0", "started": self.mock.started, "flows": True, "names": True, "history": True, "tables": tables}

    def names(self, query):
        return {"names": {asn: self.mock.names[asn] for asn in query["as"].split(",") if asn in self.mock.names}}

    def top(self, query):
        column = query.get("by") or next(iter(self.mock.flows), None)
        top = self.mock.flows.get(column, [])
        sums = {name: sum(flow[name] for flow in top) for name in ("bytes", "packets", "flows")}
        began = datetime.now(timezone.utc) - timedelta(minutes=int(query.get("minutes", 5)))
        return {"columns": list(self.mock.flows), "column": column, **sums, "top": top[: int(query.get("limit", 20))],
                "from": began.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "until": now()}

    def histogram(self, query):
        out = {"table": query.get("table"), "ipv4": [0] * 33, "ipv6": [0] * 129}
        for prefix in next(iter(self.mock.chosen(query).values())):
            out["ipv6" if ":" in prefix else "ipv4"][ip_network(prefix).prefixlen] += 1
        return out

    def hilbert(self, query):
        shares = [0] * 65536
        for prefix in next(iter(self.mock.chosen(query).values())):
            network = ip_network(prefix)
            if network.version == 6 or network.prefixlen == 0:
                continue
            first = int(network.network_address) >> 16
            for cell in range(first, first + max(1, network.num_addresses >> 16)):
                shares[cell] = min(255, shares[cell] + max(1, min(255, network.num_addresses >> 8)))
        return bytes(shares)

    def changes(self, query):
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        follower = queue.Queue()
        wanted = self.mock.wanted(query)
        with self.mock.lock:
            if "since" in query:
                for change in self.mock.history:
                    if change["id"] > int(query["since"]) and wanted(change):
                        follower.put(change)
            self.mock.followers.append((wanted, follower))
        self.wfile.write(b": hello\n\n")
        while True:
            try:
                change = follower.get(timeout=1)
            except queue.Empty:
                self.wfile.write(b":\n\n")
                continue
            if change is None:
                return
            self.wfile.write(f"id: {change['id']}\nevent: change\ndata: {json.dumps(change)}\n\n".encode())
