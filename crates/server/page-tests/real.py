"""A real server with the routes of world.py: a program that takes them as JSON lines, `examples/glass.rs`."""

import json
import os
import shlex
import socket
import subprocess

from world import world


class Real:
    """The same verbs as Mock. FIBULA_GLASS_COMMAND is the program; it gets address and port as its argument."""

    def __init__(self, command):
        self.command = shlex.split(command)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.said = world()
        self.start()

    def start(self):
        self.process = subprocess.Popen([*self.command, f"127.0.0.1:{self.port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline().strip():
            raise RuntimeError(f"{self.command} did not start")
        for name in ["bgp", "fpm"]:
            self.tell({"do": "source", "name": name})
        for line in self.said.tell:
            self.tell(line)

    def tell(self, line):
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer != "ok":
            raise RuntimeError(f"{line}: {answer}")

    def announce(self, *change):
        self.said.announce(*change)
        self.tell(self.said.tell[-1])

    def withdraw(self, *change):
        self.said.withdraw(*change)
        self.tell(self.said.tell[-1])

    def stop(self):
        """As if it were killed."""
        self.process.kill()
        self.process.communicate()

    def restart(self):
        self.start()

    def close(self):
        if self.process.poll() is None:
            self.stop()
