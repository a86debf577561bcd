"""Routes that BIRD announces to FRR, and FRR tells the router (FPM) and its own kernel."""

import json
import random
import time

import daemons
import lab
import routes
import town
import wire
from lab import Failed

SEED = 1
PORT = 9001
SCALES = {False: (1_000, 200), True: (100_000, 20_000)}
# Addresses that are tried.
SAMPLE = {4: 200, 6: 60}


def plain(hop=2):
    return routes.Announcement(hop, (), None, ())


def announced(options):
    """By neighbour and family: what BIRD says. Random routes of a and c; b and c both have the shared prefixes."""
    rng = random.Random(SEED)
    said = {(each.name, family): {} for each in daemons.NEIGHBOURS for family in (4, 6)}
    for family, count, bits in zip((4, 6), SCALES[options.large], (32, 128)):
        for prefix in routes.prefixes(rng, count, bits)[1:]:
            said[rng.choice("ac"), family][prefix] = plain()
    for family, prefix, ways in town.routes():
        for name in "bc" if len(ways) > 1 else "c":
            said[name, family][prefix] = plain()
    return said


def start(options, say):
    """BIRD and FRR, until the kernel has all; returns FRR and the arguments of the router."""
    said = announced(options)
    birds = [daemons.Bird(each) for each in daemons.NEIGHBOURS]
    frr = daemons.Frr(bmp=False, collector=False)
    frr.start()
    for bird in birds:
        bird.write({family: said[bird.neighbour.name, family] for family in (4, 6)})
        bird.start()
    wanted = [len({prefix for (_, of), prefixes in said.items() if of == family for prefix in prefixes}) for family in (4, 6)]
    begin = time.monotonic()

    def has_all():
        return all(kernel_has(family) >= count for family, count in zip((4, 6), wanted))

    lab.wait("the kernel has all routes", has_all, 300, 0.2)
    say(f"BIRD -> FRR -> the kernel: {wanted[0]} + {wanted[1]} routes after {time.monotonic() - begin:.1f} s")
    return frr, ["--fpm", f"127.0.0.1:{daemons.FPM_PORT}"]


def kernel_has(family):
    return lab.run("ip", f"-{family}", "route", "show", "proto", "bgp").count("\n")


def check(here, say):
    """Addresses under the routes: a packet to each leaves by the interface that the kernel's table says."""
    rng = random.Random(SEED)
    names = {device: name for name, device in town.DEVICES.items()}
    for family in (4, 6):
        shown = json.loads(lab.run("ip", "-j", f"-{family}", "route", "show", "proto", "bgp"))
        prefixes = [route["dst"] for route in shown]
        addresses = [route.partition("/")[0] for route in rng.sample(prefixes, min(len(prefixes), SAMPLE[family]))]
        expected = {}
        for address in addresses:
            way = json.loads(lab.run("ip", "-j", "route", "get", address))[0]
            expected[address] = names[way["dev"]]
        # Whatever comes to a neighbour is delivered there.
        any_address = {4: "0.0.0.0", 6: "::"}[family]
        receivers = {}
        for name in "abc":
            everything = "0.0.0.0/0" if family == 4 else "::/0"
            lab.run("ip", "-n", name, f"-{family}", "rule", "add", "pref", "5", "iif", f"{town.DEVICES[name]}-far", "lookup", "77")
            lab.run("ip", "-n", name, f"-{family}", "route", "add", "local", everything, "dev", "lo", "table", "77")
            receivers[name] = wire.udp(name, any_address, PORT)
        sender = wire.udp("b", {4: "10.9.2.2", 6: "fd09:2::2"}[family])
        counted = 0
        for address, name in expected.items():
            if name == "b":
                continue
            sender.sendto(address.encode(), (address, PORT))
            ready = wire.readable(list(receivers.values()), 2)
            got = [other for other, receiver in receivers.items() if receiver in ready]
            text = ready[0].recv(200).decode() if ready else None
            if got != [name] or text != address:
                raise Failed(f"a packet to {address} came to {got or 'nobody'}, and the kernel says {name}")
            counted += 1
        for each in (sender, *receivers.values()):
            each.close()
        for name in "abc":
            lab.run("ip", "-n", name, f"-{family}", "rule", "del", "pref", "5")
            lab.run("ip", "-n", name, f"-{family}", "route", "flush", "table", "77")
        say(f"{counted} of {len(shown)} IPv{family} routes lead where the kernel's lead")
