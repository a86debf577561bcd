"""What the tests share: an oracle of plain Python, and tables that nest."""

from __future__ import annotations

import ipaddress
import os
import random
import sys
from collections.abc import Iterator
from typing import Any

import fibula
import pytest

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@pytest.fixture(scope="session", autouse=True)
def _no_configuration() -> Iterator[None]:
    """Nothing of what the person who runs the tests has configured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIBULA_CONFIG", "")
        patch.delenv("FIBULA_TABLE", raising=False)
        patch.delenv("FIBULA_OFFLINE", raising=False)
        yield


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command: the program that FIBULA_BIN names, and otherwise the package's, under the name that pages use."""
    path = os.environ.get("FIBULA_BIN")
    if path is None:
        script = tmp_path_factory.mktemp("bin") / "fibula"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fibula "$@"\n')
        script.chmod(0o755)
        path = str(script)
    return path


class Oracle:
    """Longest match by trying every length that there is, longest first: slow, and obviously right."""

    def __init__(self, rows: dict[str, dict[str, Any]]) -> None:
        self.rows = {ipaddress.ip_network(prefix): values for prefix, values in rows.items()}
        self.lengths = {bits: sorted({n.prefixlen for n in self.rows if n.max_prefixlen == bits}) for bits in (32, 128)}

    def covering(self, address: Address) -> Iterator[Network]:
        for length in reversed(self.lengths[address.max_prefixlen]):
            network = ipaddress.ip_network((address, length), strict=False)
            if network in self.rows:
                yield network

    def lookup(self, text: str) -> dict[str, Any] | None:
        address = ipaddress.ip_address(text)
        if isinstance(address, ipaddress.IPv6Address):
            address = address.ipv4_mapped or address
        network = next(self.covering(address), None)
        return None if network is None else {"prefix": str(network), **self.rows[network]}


def nested(seed: int, count: int) -> dict[str, dict[str, Any]]:
    """Prefixes of both families of which many lie inside others, at both ends of the space, too."""
    source = random.Random(seed)
    rows: dict[str, dict[str, Any]] = {}
    for bits, family in ((32, ipaddress.IPv4Network), (128, ipaddress.IPv6Network)):
        ends = [0, 1, (1 << bits) - 1, (1 << bits) - 2]
        near = [source.getrandbits(bits) for _ in range(12)] + ends
        for _ in range(count):
            address = source.choice(near) ^ (source.getrandbits(12) << source.randrange(bits - 12))
            length = source.choice([source.randint(0, bits), bits, bits - 1, bits // 2, 8, 1])
            network = family((address, length), strict=False)
            if network.version == 6 and ipaddress.IPv6Network("::ffff:0:0/96").supernet_of(network):
                continue
            asn = source.choice([None, source.getrandbits(32), 64500])
            rows[str(network)] = {"asn": asn, "name": source.choice([None, "Zürich", "a, b", f"n{source.randrange(50)}"])}
    return rows


def probes(rows: dict[str, Any]) -> list[str]:
    """Both ends of every prefix, and the addresses beside them."""
    found = {"0.0.0.0", "255.255.255.255", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::ffff:10.0.0.1"}
    for prefix in rows:
        network = ipaddress.ip_network(prefix)
        kind, most = type(network[0]), (1 << network.max_prefixlen) - 1
        first, last = int(network[0]), int(network[-1])
        found.update(str(kind(at)) for at in (first - 1, first, first + 1, last - 1, last, last + 1) if 0 <= at <= most)
    return sorted(found)


@pytest.fixture(scope="session")
def rows() -> dict[str, dict[str, Any]]:
    return nested(1, 250)


@pytest.fixture(scope="session")
def oracle(rows: dict[str, dict[str, Any]]) -> Oracle:
    return Oracle(rows)


@pytest.fixture(scope="session")
def table(rows: dict[str, dict[str, Any]]) -> fibula.Table:
    return fibula.Table.build(rows)


@pytest.fixture(scope="session")
def addresses(rows: dict[str, dict[str, Any]]) -> list[str]:
    return probes(rows)


@pytest.fixture(scope="session")
def answers(oracle: Oracle, addresses: list[str]) -> list[dict[str, Any] | None]:
    """What the oracle says about the addresses."""
    return [oracle.lookup(text) for text in addresses]


@pytest.fixture
def small() -> fibula.Table:
    """A table that fits into one's head."""
    return fibula.Table.build(
        {
            "10.0.0.0/8": {"site": "hq", "vlan": 1},
            "10.20.0.0/16": {"site": "zurich", "vlan": 20},
            "2001:db8::/32": {"site": "hq", "vlan": None},
        }
    )
