"""A router and its neighbours: network namespaces, links, and the daemons in them.

Everything lives in namespaces of processes, mounts and networks that this test alone has (`enter`), with files in a
memory file system of their own. The kernel ends all of it with the first process, however that ends.
"""

import ctypes
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

# Files of the daemons; a memory file system over the machine's own, that only these processes see.
RUN = pathlib.Path("/run")
LAB = RUN / "lab"
FRR = pathlib.Path("/usr/lib/frr")

# What must be there, and the Debian package that has it.
NEEDED = {
    "/usr/lib/frr/zebra": "frr",
    "/usr/lib/frr/bgpd": "frr",
    "/usr/bin/vtysh": "frr",
    "bird": "bird2",
    "birdc": "bird2",
    "ip": "iproute2",
    "unshare": "util-linux",
}

PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """A sentence that says what went wrong."""


def missing():
    """The packages that are needed and not there; None where the machine cannot run the test at all."""
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return None
    return sorted({package for command, package in NEEDED.items() if shutil.which(command) is None})


def versions():
    """Which daemons and which kernel these are."""
    bird = subprocess.run(["bird", "--version"], capture_output=True, text=True, check=True)
    frr = run(str(FRR / "zebra"), "--version").splitlines()[0].replace("zebra version", "FRR")
    return f"{(bird.stdout + bird.stderr).strip()}, {frr}, Linux {os.uname().release}"


def begin(options, say, test, spare=()):
    """Goes into namespaces of its own; false, and said aloud, where that is impossible. The test does without the packages in `spare`."""
    lacking = missing()
    if lacking is not None:
        lacking = [package for package in lacking if package not in spare]
    if lacking is None or lacking:
        why = "it needs Linux and root" if lacking is None else f"packages are missing: {', '.join(lacking)}"
        say(f"SKIPPED, {test} did not run: {why}")
        return False
    # A shell that starts it in the background has it ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not options.inside:
        enter()
    inside("frr" not in spare)
    return True


def enter():
    """Runs this program again in namespaces of its own, and ends with its exit status."""
    inner = [sys.executable, *sys.orig_argv[1:], "--inside"]
    flags = ["--fork", "--pid", "--kill-child", "--mount-proc", "--mount", "--net", "--ipc", "--uts"]
    child = subprocess.Popen(["unshare", *flags, *inner], preexec_fn=_die_with_parent)
    while True:
        try:
            sys.exit(child.wait())
        except KeyboardInterrupt:
            continue  # the terminal has told the child too, which says why it ends


def inside(has_daemons=True):
    """Makes the place: called first in the new namespaces. This network namespace becomes the router's."""
    places = [RUN, pathlib.Path("/var/tmp"), *[pathlib.Path("/etc/frr")] * has_daemons]
    for path in places:
        run("mount", "-t", "tmpfs", "none", str(path))
    for path in (RUN / "netns", RUN / "frr", LAB):
        path.mkdir()
    if has_daemons:
        for path in (RUN / "frr", pathlib.Path("/etc/frr"), LAB):
            shutil.chown(path, "frr", "frr")
        pathlib.Path("/etc/frr/vtysh.conf").touch()
    LAB.chmod(0o755)
    run("ip", "link", "set", "lo", "up")
    sysctl("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", *NO_DAD, *KEEP)


# Addresses are usable at once: no duplicate address detection.
NO_DAD = ("net.ipv6.conf.default.accept_dad=0", "net.ipv6.conf.all.accept_dad=0")
# IPv6 addresses stay when their link goes down, as IPv4 ones do.
KEEP = ("net.ipv6.conf.default.keep_addr_on_down=1", "net.ipv6.conf.all.keep_addr_on_down=1")


def sysctl(*settings, within=()):
    run(*within, "sysctl", "-qw", *settings)


def run(*command, text=None, timeout=120):
    """Runs a command to its end; returns its standard output."""
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=timeout)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def attempt(*command):
    """Runs a command that may fail."""
    subprocess.run(command, capture_output=True, check=False, timeout=120)


def link(device, address4, address6, neighbour, far4, far6):
    """A neighbour in a network namespace of its own, behind a pair of virtual devices."""
    far = f"{device}-far"
    run("ip", "netns", "add", neighbour)
    sysctl(*NO_DAD, within=("ip", "netns", "exec", neighbour))
    run("ip", "link", "add", device, "type", "veth", "peer", "name", far, "netns", neighbour)
    for where, name, v4, v6 in (((), device, address4, address6), (("-n", neighbour), far, far4, far6)):
        run("ip", *where, "address", "add", v4, "dev", name)
        run("ip", *where, "address", "add", v6, "dev", name, "nodad")
        run("ip", *where, "link", "set", name, "up")
    run("ip", "-n", neighbour, "link", "set", "lo", "up")


class Daemon:
    """A process in the foreground, with what it prints in a file."""

    def __init__(self, name, command, netns=None, env=None):
        self.name = name
        self.command = ["ip", "netns", "exec", netns, *command] if netns else list(command)
        self.env = {**os.environ, **(env or {})}
        self.log = LAB / f"{name}.out"
        self.process = None

    def start(self):
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env,
                preexec_fn=_die_with_parent, start_new_session=True,
            )
        return self

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def send(self, number):
        self.process.send_signal(number)

    def stop(self, number=signal.SIGTERM, seconds=20):
        """Ends it; returns the seconds that took."""
        if not self.is_running():
            return 0.0
        begin = time.monotonic()
        self.send(number)
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise Failed(f"{self.name} did not end within {seconds} s of signal {number}") from None
        return time.monotonic() - begin

    def tail(self, lines=15):
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def _die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def wait(what, condition, seconds, every=0.05):
    """Waits until the condition holds; returns what it returned."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"after {seconds:g} s still waiting: {what}")
        time.sleep(every)
