"""The steps of the test, in order. After each one the tables are equal, and the client's answers were true."""

import signal
import time

import client
import daemons
import fibula
import gobgp
import lab
import oracle
from lab import Failed

STEPS = []


def step(function):
    """Registers a step; its docstring is what is said of it."""
    STEPS.append(function)
    return function


def run(router, until=None):
    for function in STEPS:
        begin = time.monotonic()
        router.notes = []
        function(router)
        notes = "".join(f"; {note}" for note in router.notes)
        router.say(f"{time.monotonic() - begin:6.1f} s  {function.__doc__}{notes}")
        if function.__name__ == until:
            return


def settled(router, truths=None, **options):
    """Rest, all equal, and the client's answers since `truths` were made were true."""
    router.rest(options.pop("condition", router.has_all))
    router.compare(**options)
    if truths is not None:
        router.learn(truths)


@step
def load(router):
    """loaded: FPM, kernel, BMP and BGP"""
    daemons.links()
    router.server.start()
    router.frr.start()
    for name, bird in router.birds.items():
        router.write(name)
        bird.start()
    router.frr.set_table_100(daemons.TABLE_100)
    settled(router)
    router.has_configured_routes()
    router.has_table_100()
    router.notes.append(f"{len(router.zebra)} routes")
    router.begin_asking()
    router.write_archives()


@step
def churn(router):
    """a fifth withdrawn, three tenths to other next hops, all neighbours at once"""
    truths = router.truths()
    router.neighbours.change()
    router.configure()
    settled(router, truths)
    router.has_configured_routes()
    router.judge(truths)


@step
def churn_twice(router):
    """two such changes, the second one while the first is on its way"""
    truths = router.truths()
    configurations = [router.configuration()]
    for _ in range(2):
        router.neighbours.change()
        configurations.append(router.configuration())
        router.configure()
    settled(router, truths)
    router.has_configured_routes()
    for truth in truths.values():
        truth.pool = client.Pool(configurations)
    router.judge(truths)


def without(router, *names):
    """Whether FRR has heard nothing of these neighbours, and all of the others."""

    def condition():
        heard = 0
        for about in daemons.vtysh_json("show bgp summary json").values():
            heard += sum(peer["pfxRcd"] for peer in about["peers"].values())
        said = router.neighbours.said.items()
        return heard == sum(len(routes) for (name, _), routes in said if name not in names)

    return condition


@step
def sessions(router):
    """a neighbour ends its sessions with the router, another one is killed; both come back"""
    truths = router.truths()
    router.birds["b"].daemon.stop(signal.SIGKILL)
    router.birds["a"].command('disable "router*"')
    settled(router, truths, condition=without(router, "a", "b"), silent=("b",))
    router.birds["a"].command('enable "router*"')
    router.birds["b"].start()
    settled(router, truths)
    for truth in truths.values():
        truth.pool = client.Pool([router.configuration(), router.configuration("c")])
    router.judge(truths)


@step
def link(router):
    """a link goes down and comes up, several times"""
    truths = router.truths()
    lab.run("ip", "link", "set", "dA", "down")
    settled(router, truths, condition=without(router, "a"), silent=None)
    for state in ("up", "down", "up"):
        lab.run("ip", "link", "set", "dA", state)
        time.sleep(0.2)
    # The kernel forgets ECMP members on links that went down, and zebra does not tell it again.
    router.is_installed = False
    settled(router, truths)
    between = [router.configuration(), router.configuration("bc")]
    truths["fpm"].pool = client.Pool(between)
    truths["kernel"].pool = client.Flushed(between, truths["kernel"].states, oracle.interface("dA"))
    router.judge(truths)


@step
def archives(router):
    """an MRT file, put into the folder after the load"""
    router.until_equal("mrt", lambda: router.archived, router.server.paths)


@step
def ris(router):
    """RIS Live lines, written into the pipe after the load"""
    router.until_equal("ris", lambda: router.archived, router.server.paths)


@step
def reload(router):
    """SIGHUP, with another setting of one source: its session begins anew, and no other one"""
    truths = router.truths()
    before = router.server.sessions()
    router.server.reload(bmp_hold="90s")
    name = "bmp 127.0.0.1"

    def is_another():
        return router.server.sessions().get(name, before[name]) != before[name]

    lab.wait("BMP's session is another one", is_another, 30)
    settled(router, truths)
    router.judge(truths)
    before, after = ({name: since for name, since in sessions.items() if not name.startswith("bmp")}
                     for sessions in (before, router.server.sessions()))
    if before != after:
        raise Failed(f"sessions that had nothing to do with it are others:\n  {before}\n  {after}")


@step
def restart(router):
    """fibula ends (SIGTERM), and goes on from its checkpoint"""
    truths = router.truths()
    router.client.pause()
    router.notes.append(f"ended in {router.server.stop():.2f} s")
    router.server.start()
    # FRR has not connected yet: this is from the checkpoint.
    for name in ("fpm", "bmp/pre-policy"):
        found = router.server.tables().get(name)
        if not found or not (found["ipv4"] or {}).get("routes"):
            raise Failed(f"table {name} is not in the checkpoint: {found}")
    router.client.resume()
    router.has_resent = True
    settled(router, truths)
    router.judge(truths)


@step
def crash(router):
    """fibula is killed in the middle of a change, and started again"""
    truths = router.truths()
    configurations = [router.configuration()]
    router.neighbours.change()
    configurations.append(router.configuration())
    router.configure()
    time.sleep(0.3)
    router.client.pause()
    router.server.stop(signal.SIGKILL)
    router.neighbours.change()
    configurations.append(router.configuration())
    router.configure()
    router.server.start()
    router.client.resume()
    router.has_resent = router.is_bmp_doubtful = True
    settled(router, truths)
    for truth in truths.values():
        truth.pool = client.Pool(configurations)
    router.judge(truths)


@step
def overrun(router):
    """the kernel has more to say than fibula's socket holds (ENOBUFS)"""
    truths = router.truths()
    before = router.server.overruns()
    router.client.pause()
    router.server.daemon.send(signal.SIGSTOP)
    try:
        # In pieces: zebra, which hears them too, would end if its own socket overflowed.
        every = [f"route add {prefix} via 10.9.2.20 table 200" for prefix in burst(router.scale.burst)]
        for first in range(0, len(every), 500):
            lab.run("ip", "-batch", "-", text="\n".join(every[first:first + 500]))
        lab.run("ip", "route", "flush", "table", "200", "root", "40.0.0.0/9")
    finally:
        router.server.daemon.send(signal.SIGCONT)
    router.client.resume()
    settled(router, truths)
    router.judge(truths)
    lost = router.server.overruns() - before
    if lost < 1:
        raise Failed("the kernel's messages were not lost: the step tests nothing")
    router.notes.append(f"lost {lost} times")
    lab.run("ip", "route", "flush", "table", "200")
    settled(router, truths)
    router.judge(truths)


def burst(count):
    return [f"40.{number >> 8 & 255}.{number & 255}.{(number >> 16) * 16}/28" for number in range(count)]


@step
def zebra(router):
    """zebra is killed; FRR is started again"""
    truths = router.truths()
    router.frr.restart()
    refilled(router, truths, daemons.LATER_TABLE_100)


@step
def inline(router):
    """FRR ends and is started again, without next-hop groups in FPM"""
    truths = router.truths()
    router.frr.restart(kill=False, next_hop_groups=False)
    router.is_inline = True
    refilled(router, truths, daemons.TABLE_100)


def refilled(router, truths, table_100):
    """After FRR was started again."""
    router.frr.set_table_100(table_100)
    router.has_resent, router.is_installed, router.was_refilled, router.is_bmp_doubtful = False, True, True, True
    settled(router, truths, condition=lambda: router.has_all() and len(oracle.zebra()) >= len(router.zebra))
    router.has_table_100()
    # A new zebra removes what its predecessor left in the kernel, and has no routes until the other daemons tell it.
    said = router.configuration()
    inline = {prefix: {oracle.inline_hop(prefix, hop) for hop in hops} for prefix, hops in said.items()}
    for truth in truths.values():
        # zebra hears of the next hops of a static route one by one.
        own = [{prefix: set(hops) for prefix, (_kind, hops) in state.items()} for state in truth.states]
        truth.pool = client.Refilled([said, inline, *own])
    router.judge(truths)


@step
def end(router):
    """fibula ends while it is asked"""
    router.client.stop()
    # Where all threads of this program wait while one of them reads a daemon's whole table, so does the client.
    slowest = f"{router.client.slowest * 1000:.0f} ms, this program's own pauses included"
    router.notes.append(f"{router.client.asked} answers, the slowest after {slowest}")
    router.server.stop()
    if router.server.daemon.process.returncode != 0:
        raise Failed(f"fibula ended with {router.server.daemon.process.returncode}:\n{router.server.daemon.tail()}")


@step
def unprivileged(router):
    """as nobody, without capabilities: BGP, also with a password"""
    # A folder that nobody may enter can have the program.
    program = lab.LAB / "fibula"
    program.touch()
    lab.run("mount", "--bind", str(fibula.program().absolute()), str(program))
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
              "--no-new-privs"]
    sources = fibula.collector("".join(map(fibula.neighbour, daemons.NEIGHBOURS)))
    server = fibula.Small("unprivileged", sources, [*nobody, str(program)])
    server.start()
    rights = [line for line in server.status() if line.startswith(("Uid", "CapPrm", "CapEff", "CapBnd"))]
    if any(set(line.split()[1:]) not in ({"65534"}, {"0" * 16}) for line in rights):
        raise Failed(f"the server has rights: {rights}")
    router.server = server
    expected = oracle.announced(router.neighbours, collector=True)
    router.until_equal("bgp", lambda: expected, server.paths)
    server.stop()
    signed = [each.name for each in daemons.NEIGHBOURS if each.password]
    router.notes.append(f"{len(expected)} paths; signed: {', '.join(signed)}")


@step
def go_bgp(router):
    """GoBGP: its BGP session, and its BMP, before and after policy and of its own choice (Loc-RIB)"""
    if not gobgp.is_there():
        router.notes.append("SKIPPED: the package gobgpd is missing")
        return
    if router.scale.routes4 > 10_000:
        # The command gobgp takes minutes to print such a table.
        router.notes.append("with the small tables alone")
        return
    daemon = gobgp.GoBgp()
    server = router.server = fibula.Small("gobgp", gobgp.sources())
    server.start()
    router.frr.add(f"{gobgp.NET4}2", gobgp.ASN)
    daemon.start()
    for is_changed in (False, True):
        if is_changed:
            daemon.forget()
            router.neighbours.change()
            router.configure()
        announced = {prefix for said in router.neighbours.said.values() for prefix in said}
        lab.wait("GoBGP has all routes", lambda: {prefix for _, prefix in daemon.received()} == announced,
                 router.scale.patience, 0.5)
        for view in ("pre-policy", "post-policy"):
            router.until_equal(f"bmp/{view}", daemon.received, server.paths)
        router.until_equal("bmp/loc-rib", daemon.chosen, server.paths)
        router.until_equal("bgp", daemon.sent, server.paths)
        router.notes.append(f"{len(daemon.chosen())} routes")
    server.stop()
