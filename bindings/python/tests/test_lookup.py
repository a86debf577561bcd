"""Single answers."""

from __future__ import annotations

import ipaddress
from typing import Any

import fibula
import numpy as np
import pytest

from conftest import Oracle


def test_every_boundary(table: fibula.Table, addresses: list[str], answers: list[dict[str, Any] | None]) -> None:
    for text, expected in zip(addresses, answers):
        address = ipaddress.ip_address(text)
        assert table.lookup(text) == expected, text
        assert table.lookup(address) == expected, text
        assert table.lookup(address.packed) == expected, text
        if address.version == 4 or int(address) >= 2**32:
            assert table.lookup(int(address)) == expected, text


def test_forms_of_an_address(small: fibula.Table) -> None:
    expected = {"prefix": "10.20.0.0/16", "site": "zurich", "vlan": 20}
    for address in (
        "10.20.0.1",
        " 10.20.0.1\n",
        "::ffff:10.20.0.1",
        "::FFFF:0A14:0001",
        0x0A140001,
        np.uint32(0x0A140001),
        (0xFFFF << 32) | 0x0A140001,
        bytes([10, 20, 0, 1]),
        bytearray([10, 20, 0, 1]),
        ipaddress.ip_address("::ffff:10.20.0.1").packed,
        ipaddress.ip_address("10.20.0.1"),
        ipaddress.ip_address("::ffff:10.20.0.1"),
    ):
        assert small.lookup(address) == expected, address
    assert small.lookup("192.0.2.1") is None
    assert small.lookup(2**128 - 1) is None


@pytest.mark.parametrize(
    "bad", ["", "10.20.0", "10.20.0.01", "10.20.0.1/32", "fe80::1%eth0", "[::1]", b"", b"abc", -1, 2**128]
)
def test_not_an_address(small: fibula.Table, bad: Any) -> None:
    with pytest.raises(fibula.AddressError, match="address"):
        small.lookup(bad)
    # Whoever catches what `ipaddress` raises catches this, too.
    assert issubclass(fibula.AddressError, fibula.FibulaError) and issubclass(fibula.FibulaError, ValueError)


def test_a_zone_is_refused_in_objects_too(small: fibula.Table) -> None:
    with pytest.raises(fibula.AddressError):
        small.lookup(ipaddress.ip_address("fe80::1%eth0"))


@pytest.mark.parametrize("bad", [None, 1.5, True, ["10.0.0.1"], object()])
def test_wrong_types(small: fibula.Table, bad: Any) -> None:
    with pytest.raises(TypeError, match="an address is a str, an int"):
        small.lookup(bad)


def test_covering(table: fibula.Table, oracle: Oracle, addresses: list[str]) -> None:
    for text in addresses[::7]:
        address = ipaddress.ip_address(text)
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            continue
        expected = [{"prefix": str(network), **oracle.rows[network]} for network in oracle.covering(address)]
        assert table.covering(text) == expected, text


def test_covering_a_prefix(table: fibula.Table, oracle: Oracle, rows: dict[str, Any]) -> None:
    for text in list(rows)[::5]:
        prefix = ipaddress.ip_network(text)
        covering = [network for network in oracle.covering(prefix[0]) if network.prefixlen <= prefix.prefixlen]
        assert [record["prefix"] for record in table.covering(prefix)] == [str(network) for network in covering]


def test_covered(table: fibula.Table, oracle: Oracle, rows: dict[str, Any]) -> None:
    inside: Any
    for text in [*list(rows)[::5], "0.0.0.0/0", "::/0", "203.0.113.0/24"]:
        prefix: Any = ipaddress.ip_network(text)
        inside = [network for network in oracle.rows if network.version == prefix.version and network.subnet_of(prefix)]
        inside.sort(key=lambda network: (int(network[0]), network.prefixlen))
        assert table.covered(text) == [{"prefix": str(network), **oracle.rows[network]} for network in inside], text


def test_prefixes_that_are_none(small: fibula.Table) -> None:
    assert [record["vlan"] for record in small.covering("::ffff:10.20.0.0/112")] == [20, 1]
    for bad in ("10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/x", "x/8"):
        with pytest.raises(fibula.AddressError):
            small.covered(bad)
    with pytest.raises(TypeError):
        small.covered(None)  # type: ignore[arg-type]


def test_what_it_says_of_itself(small: fibula.Table, table: fibula.Table, rows: dict[str, Any]) -> None:
    assert len(small) == 3 and len(table) == len(rows)
    assert small.columns == {"site": str, "vlan": int}
    assert repr(small) == "<fibula.Table in memory: 3 prefixes, columns ['site', 'vlan']>"
    stats = small.stats()
    assert (stats["v4"]["routes"], stats["v6"]["routes"], stats["path"]) == (2, 1, None)
    assert stats["v4"]["engine"] == "runmap" and stats["v4"]["engine_bytes"] > 0
    assert stats["columns"][1] == {"name": "vlan", "kind": "int", "distinct": 2}
    assert stats["sources"][0]["announced"] == 3
