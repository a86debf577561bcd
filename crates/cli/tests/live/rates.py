"""How long FRR takes for a whole table, and how long with fibula behind it. A measurement, not a test."""

import pathlib
import socket
import subprocess
import threading
import time

import daemons
import fibula
import lab
import routes


class Sink:
    """Takes all that comes to a port, and knows when the first and the last byte came."""

    def __init__(self, port):
        self.first = self.last = None
        self.bytes = 0
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        buffer = bytearray(1 << 20)
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # closed
                return
            while taken := connection.recv_into(buffer):
                self.last = time.monotonic()
                self.first = self.first or self.last
                self.bytes += taken

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self.listener.close()


def run(say, counts, seed):
    daemons.links()
    neighbours = routes.Neighbours([each.name for each in daemons.NEIGHBOURS], *counts, seed, overlap=0)
    expected = [len(neighbours.prefixes(family)) for family in (4, 6)]
    say(f"{expected[0]} + {expected[1]} routes, from {len(neighbours.names)} BIRDs to FRR; {lab.versions()}; {cpu()}")
    birds = [daemons.Bird(each) for each in daemons.NEIGHBOURS]
    for bird in birds:
        bird.write({family: neighbours.said[bird.neighbour.name, family] for family in (4, 6)}, disabled=True)
        bird.start()
    neighbours = None
    alone(say, birds, expected)
    with_fibula(say, birds, expected)


def cpu():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0] if names else 'unknown'}"


def zebra_has():
    return [daemons.vtysh_json(f"show {family} route summary json")["routesTotalFib"] for family in ("ip", "ipv6")]


def begin(birds, frr, expected):
    """Starts FRR, opens the sessions, and waits until zebra has it all; returns when sessions were opened, and how long
    zebra took."""
    frr.start()
    lab.wait("FPM is connected", lambda: daemons.vtysh_json("show fpm counters json")["bytes-sent"], 30)
    time.sleep(2)
    before = zebra_has()
    opened = time.monotonic()
    for bird in birds:
        bird.command('enable "router*"')

    def has_all():
        return all(has - old >= want for has, old, want in zip(zebra_has(), before, expected))

    lab.wait("zebra has all routes", has_all, 900, 0.2)
    return opened, time.monotonic() - opened


def end(birds, frr):
    for bird in birds:
        bird.command('disable "router*"')
    for daemon in reversed(frr.daemons.values()):
        daemon.stop(seconds=300)
    # What zebra leaves in the kernel.
    for family in ("-4", "-6"):
        for protocol in ("bgp", "static"):
            subprocess.run(["ip", family, "route", "flush", "proto", protocol], check=False)


def alone(say, birds, expected):
    fpm, bmp = Sink(daemons.FPM_PORT), Sink(daemons.BMP_PORT)
    frr = daemons.Frr(collector=False)
    opened, zebra = begin(birds, frr, expected)
    lab.wait("all is said", lambda: time.monotonic() - max(fpm.last, bmp.last) > 5, 600, 0.2)
    say(f"FRR alone: zebra has all after {zebra:.1f} s; FPM's last byte after {fpm.last - opened:.1f} s ({fpm.bytes} bytes), "
        f"BMP's after {bmp.last - opened:.1f} s ({bmp.bytes} bytes); {memory(frr.daemons)}")
    end(birds, frr)
    for sink in (fpm, bmp):
        sink.close()


def with_fibula(say, birds, expected):
    server = fibula.Server(checkpoint_every="60s")
    server.start()
    frr = daemons.Frr(collector=False)
    done = {}
    stop = threading.Event()

    def watch():
        """When each table got its last route."""
        counts = {}
        connection = fibula.Connection()
        while not stop.is_set():
            for table in connection.json("/v1/table")["tables"]:
                now = [(table[family] or {}).get("routes", 0) for family in ("ipv4", "ipv6")]
                if counts.get(table["name"]) != now:
                    counts[table["name"]] = now
                    done[table["name"]] = time.monotonic(), now
            time.sleep(0.1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    opened, zebra = begin(birds, frr, expected)
    lab.wait("all is known", lambda: time.monotonic() - max(at for at, _ in done.values()) > 5, 600, 0.2)
    stop.set()
    watcher.join()
    tables = "; ".join(f"{name} {now[0]} + {now[1]} after {at - opened:.1f} s" for name, (at, now) in sorted(done.items()))
    say(f"with fibula ({program_kind()}): zebra has all after {zebra:.1f} s; {tables}; "
        f"{memory({**frr.daemons, 'fibula': server.daemon})}, {processor_time(server.daemon):.1f} s of processor time")
    end(birds, frr)
    server.stop()


def program_kind():
    return fibula.program().parent.name


def memory(every):
    """The largest resident sets."""
    found = []
    for name, daemon in every.items():
        status = pathlib.Path(f"/proc/{daemon.pid}/status").read_text()
        kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        found.append(f"{name} {kib // 1024} MiB")
    return ", ".join(found)


def processor_time(daemon):
    fields = pathlib.Path(f"/proc/{daemon.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100
