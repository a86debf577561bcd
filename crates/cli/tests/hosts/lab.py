"""What the hosts' tests share: a folder, the page's examples, programs that are started and stopped."""

import contextlib
import ipaddress
import pathlib
import random
import socket
import subprocess
import sys
import time

PAGE = pathlib.Path(__file__).resolve().parents[4] / "docs" / "stream.md"

# How long a host may take to write what it was sent.
PATIENCE = 30


class Failed(Exception):
    """A host did not do what was expected."""


def say(text):
    print(f"hosts: {text}", file=sys.stderr, flush=True)


def check(found, expected, what):
    if found != expected:
        raise Failed(f"{what}: {found!r} is not {expected!r}")


def examples(language):
    """The page's blocks of code in this language."""
    blocks = PAGE.read_text().split(f"\n```{language}\n")[1:]
    return [block.split("\n```")[0] + "\n" for block in blocks]


class Lab:
    def __init__(self, folder, fibula, programs, rows):
        self.folder, self.fibula, self.programs, self.rows = folder, fibula, programs, rows
        networks = examples("console")[0].split("$ cat networks.csv\n")[1].split("\n$ ")[0]
        (folder / "networks.csv").write_text(networks + "\n")
        self.build("networks.csv", "networks.fib")
        # Countries of the world: a process of a function must not compile them, ClickHouse waits ten seconds.
        self.countries = folder / "countries.fib"
        self.run("build", "embedded", "-o", self.countries)

    def build(self, source, table):
        """A new table is renamed over the old one."""
        self.run("build", self.folder / source, "-o", self.folder / table)

    def run(self, *args):
        return subprocess.run([self.fibula, *args], check=True, capture_output=True).stdout

    def here(self, text):
        """An example with the paths of this machine."""
        for name, path in [
            ("/etc/fibula/networks.fib", self.folder / "networks.fib"),
            ("/usr/bin/fibula", self.fibula),
            ("exec fibula ", f"exec {self.fibula} "),
            ('"fibula"', f'"{self.fibula}"'),
            ("name: fibula", f"name: {self.fibula}"),
            ("/var/log/sites.log", self.folder / "sites.log"),
        ]:
            text = text.replace(name, str(path))
        return text

    @contextlib.contextmanager
    def started(self, *command):
        """A program that is stopped at the end. What it prints is in its log."""
        log = self.folder / f"{pathlib.Path(command[0]).name}.log"
        command = [str(word) for word in command]
        with open(log, "wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder)
        try:
            yield log
        except Failed as failed:
            raise Failed(f"{failed}\n{log.read_text(errors='replace')[-4000:]}") from None
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_for(what, is_done):
    until = time.monotonic() + PATIENCE
    while not (found := is_done()):
        if time.monotonic() > until:
            raise Failed(f"{what}: not within {PATIENCE} s")
        time.sleep(0.05)
    return found


def lines_of(path):
    return path.read_text().splitlines() if path.exists() else []


def cells(count, seed=1):
    """Addresses of both families, mapped ones, empty cells and text."""
    chance = random.Random(seed)
    odd = ["", "x", "10.0.0", "192.0.2.1 ", "[2001:db8::1]:53"]
    for _ in range(count):
        kind = chance.random()
        if kind < 0.6:
            yield f"{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(256)}.{chance.randrange(256)}"
        elif kind < 0.85:
            yield f"2001:{chance.randrange(1 << 16):x}:{chance.randrange(1 << 16):x}::{chance.randrange(1 << 16):x}"
        elif kind < 0.9:
            yield f"::ffff:{ipaddress.IPv4Address(chance.getrandbits(32))}"
        else:
            yield odd[chance.randrange(len(odd))]
