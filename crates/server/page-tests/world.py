"""The routes that tests ask for: two tables, four peers, a chain of routes, and markup wherever a feed may send text."""

from mock import Mock

ATTACK = "<script>window.attacked = true</script>"


def bgp(path, next_hop, **more):
    origin = path.split()[-1]
    return {"kind": "bgp", "next_hop": next_hop, "as_path": path, "origin_as": int(origin) if origin.isdigit() else None, "origin": "igp", **more}


def hops(*gateways, kind="unicast"):
    return {"kind": "next_hops", "type": kind, "next_hops": [{"gateway": g, "interface": 3, "weight": 1} for g in gateways]}


def world():
    mock = Mock()
    one = mock.peer("10.0.0.1", 64500, "bgp")
    two = mock.peer("10.0.0.2", 64501, "bgp")
    zebra = mock.peer("127.0.0.1", 0, "fpm")
    evil = mock.peer(None, 0, f"bmp {ATTACK}")
    for prefix, path in [("0.0.0.0/0", "64500 174"), ("193.0.0.0/16", "64500 1103 3333"), ("193.0.0.0/21", "64500 1103 3333"), ("193.0.22.0/23", "64500 1103 3333"),
                         ("193.0.6.0/24", "64500 2914 1103 3333 3333 3333"), ("2001:67c:2e8::/48", "64500 1103 3333"), ("8.8.8.0/24", "64500 15169"), ("10.0.0.0/8", "64500 65000")]:
        mock.announce("bgp", prefix, one, bgp(path, "10.0.0.1", local_pref=100, med=10, communities="64500:1 64500:100"))
    mock.announce("bgp", "193.0.0.0/21", two, bgp("64501 3257 1103 3333", "10.0.0.2", local_pref=100))
    mock.announce("bgp", "193.0.6.0/24", two, bgp("64501 1103 3333", "10.0.0.2", local_pref=100))
    mock.announce("fpm", "0.0.0.0/0", zebra, hops("10.0.0.1"))
    mock.announce("fpm", "193.0.0.0/21", zebra, hops("10.0.0.1", "10.0.0.2"))
    mock.announce("fpm", "192.0.2.0/24", zebra, hops(kind="blackhole"))
    mock.announce(f"bmp/{ATTACK}", "203.0.113.0/24", evil, bgp(f"64666 {ATTACK} 64667", "10.0.0.66", communities=ATTACK))
    mock.names = {"3333": "RIPE NCC", "1103": ATTACK}  # as examples/glass.rs has them
    mock.past("bgp", "193.0.6.0/24", 5400, bgp("64500 1103 3333", "10.0.0.1"))
    mock.past("bgp", "193.0.6.0/24", 1800, bgp(f"64500 {ATTACK} 64666", "10.0.0.1"))
    mock.past("bgp", "193.0.6.0/24", 900, None)
    for ago in range(750, 600, -1):
        mock.past("bgp", "8.8.8.0/24", ago, bgp(f"64500 {64000 + ago}", "10.0.0.1"))
    mock.top("src_origin_as", ("3333", 3_000_000_000, 2_500_000, 700, 0), ("15169", 500_000_000, 600_000, 90, 40), (None, 1_000_000, 9000, 5, 0))
    mock.top("dst_prefix", ("193.0.6.0/24", 9_000_000, 8000, 7, 0), ("8.8.8.0/24", 800, 8, 1, 0))
    mock.top("exporter", (ATTACK, 10, 1, 1, 0))
    return mock
