"""Routes that neighbours announce: random, but the same for the same seed."""

import dataclasses
import ipaddress
import random
import zlib

# Where routes lie: not in 10/8 and fd00::/8, in which the links are, nor in 198.18/15, where static ones are.
V4 = [*range(11, 100), *range(110, 127), *range(128, 169), *range(173, 192), *range(199, 224)]
V6 = 0x2400, 0x2FFF

# Lengths, as often as they are named.
LENGTHS4 = [8, 10, 11, 12, 13, 14, 15, 16, 16, 17, 18, 19, 20, 21, 22, 22, 22, 23, 23, *[24] * 12, 25, 27, 28, 30, 32]
LENGTHS6 = [19, 24, 28, 29, 30, 32, 32, 32, 33, 36, 40, 44, *[48] * 8, 52, 56, 60, 64, 64, 96, 112, 126, 127, 128]

# Next hops of a neighbour: hosts of the link that end in these numbers.
HOPS = range(10, 18)


@dataclasses.dataclass(frozen=True)
class Announcement:
    """What a neighbour says of a prefix, its own AS in the path left out."""

    hop: int  # the last number of the next hop's address
    path: tuple  # AS numbers
    med: int | None
    communities: tuple  # pairs of numbers


def prefixes(rng, count, bits):
    """Prefixes of many lengths, about four in ten within another one."""
    lengths = LENGTHS4 if bits == 32 else LENGTHS6
    found = {(0, 0): None}
    listed = [(0, 0)]
    while len(listed) < count:
        length = rng.choice(lengths)
        outer, outer_length = rng.choice(listed)
        if outer_length == 0 or outer_length >= length or rng.random() < 0.5:
            first = rng.choice(V4) if bits == 32 else rng.randint(*V6)
            outer_length = 8 if bits == 32 else 16
            outer = first << (bits - outer_length)
        inner = rng.getrandbits(length - outer_length) if length > outer_length else 0
        prefix = outer | inner << (bits - length), length
        if prefix not in found:
            found[prefix] = None
            listed.append(prefix)
    network = ipaddress.IPv4Network if bits == 32 else ipaddress.IPv6Network
    return [str(network(prefix)) for prefix in listed]


def announcement(rng):
    path = tuple(rng.randint(64600, 64900) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 4))))
    if rng.random() < 0.1:
        path += (rng.randint(4_200_000_000, 4_294_967_294),)
    med = rng.randint(0, 500) if rng.random() < 0.3 else None
    communities = tuple(sorted({(rng.randint(64600, 64900), rng.randint(0, 999)) for _ in range(rng.choice((0, 0, 1, 3)))}))
    return Announcement(rng.choice(HOPS), path, med, communities)


def second(prefix, said):
    """A further path of a prefix, for those whom a neighbour tells several (ADD-PATH); most prefixes have none."""
    if zlib.crc32(prefix.encode()) % 4:
        return None
    hop = HOPS[(said.hop + 1) % len(HOPS)]
    return dataclasses.replace(said, hop=hop, path=(64599, *said.path))


class Neighbours:
    """What each of several neighbours announces, of both families, and how that changes. `overlap` is the share of prefixes
    that two of them announce."""

    def __init__(self, names, count4, count6, seed, overlap=0.15):
        self.rng = rng = random.Random(seed)
        self.names = list(names)
        # By neighbour and family: prefix -> announcement.
        self.said = {(name, family): {} for name in names for family in (4, 6)}
        # What was withdrawn, and comes back with a later change.
        self.silent = {key: {} for key in self.said}
        for family, count, bits in ((4, count4, 32), (6, count6, 128)):
            for number, prefix in enumerate(prefixes(rng, count, bits)):
                said = announcement(rng)
                first, second = rng.sample(self.names, 2)
                self.said[first, family][prefix] = said
                fate = rng.random()
                if number == 0 or fate < min(overlap, 0.02):  # paths that are as good: several next hops on two devices
                    other = dataclasses.replace(said, hop=rng.choice(HOPS), med=None)
                    self.said[first, family][prefix] = dataclasses.replace(said, med=None)
                    self.said[second, family][prefix] = other
                elif fate < overlap:
                    self.said[second, family][prefix] = announcement(rng)

    def change(self):
        """A fifth of the announcements goes, three tenths get another next hop; what went before comes back. A prefix changes
        at one neighbour only, so that no router sees it without a route meanwhile that has one before and afterwards."""
        touched = set()
        for key, said in self.said.items():
            returning, self.silent[key] = self.silent[key], {}
            for prefix in list(said):
                fate = self.rng.random()
                if fate >= 0.5 or prefix in touched:
                    continue
                touched.add(prefix)
                if fate < 0.2:
                    self.silent[key][prefix] = said.pop(prefix)
                else:
                    hop = self.rng.choice([hop for hop in HOPS if hop != said[prefix].hop])
                    said[prefix] = dataclasses.replace(said[prefix], hop=hop)
            for prefix, announced in returning.items():
                if prefix in touched or prefix in said:
                    self.silent[key].setdefault(prefix, announced)
                else:
                    touched.add(prefix)
                    said[prefix] = announced

    def prefixes(self, family, names=None):
        """All prefixes that any of these neighbours announces."""
        return set().union(*(self.said[name, family] for name in names or self.names))
