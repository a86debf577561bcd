"""Rules of packet filters."""

from __future__ import annotations

import gzip
import ipaddress
from pathlib import Path

import fibula
import pandas as pd
import pytest

RULES = """\
src 10.0.0.0/8 tcp dport 22 -> allow label "ssh"
priority 3 src 10.9.0.0/16 -> drop
udp sport 1024-65535 -> mark 7 vrf blue
"""


def test_packets_hit_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(RULES)
    packed = tmp_path / "rules.gz"
    packed.write_bytes(gzip.compress(RULES.encode()))
    for rules in (fibula.Rules.read(path), fibula.Rules.read(packed), fibula.Rules.parse(RULES)):
        assert len(rules) == 3
        hit = rules.lookup("10.0.0.1", ipaddress.ip_address("192.0.2.1"), "tcp", 40000, 22)
        assert hit == {
            "line": 1,
            "rule": 'src 10.0.0.0/8 dport 22 tcp -> allow label "ssh"',
            "action": "allow",
            "label": "ssh",
        }
        assert rules.lookup("10.0.0.1", "192.0.2.1", "icmp") is None
        packets = [
            ("10.0.0.1", "192.0.2.1", 6, 40000, 22),
            ("10.9.0.1", "192.0.2.1", 6, 40000, 22),
            ("2001:db8::1", "2001:db8::2", "udp", 1024, 53),
            ("2001:db8::1", "2001:db8::2", "udp", 1023, 53),
            ("10.0.0.1", "192.0.2.1", "gre", None, None),
        ]
        assert rules.classify(packets * 200) == [1, 2, 3, None, None] * 200


def test_packets_of_many_kinds() -> None:
    rules = fibula.Rules.parse(RULES)
    one = ("10.0.0.1", "192.0.2.1", "tcp", 40000, 22)
    frame = pd.DataFrame([one, one], columns=["src", "dst", "protocol", "sport", "dport"])
    rows = frame.itertuples(index=False)
    for packets in ([one, one], (one, one), [list(one)] * 2, iter([one, one]), zip(*([field] * 2 for field in one)), rows, frame.to_numpy()):
        assert rules.classify(packets) == [1, 1]
    for wrong in ([one[:3]], ["10.0.0.1"], [7], frame):
        with pytest.raises(TypeError, match=r"packet 0 is \(src, dst, protocol, src_port, dst_port\), not .*itertuples"):
            rules.classify(wrong)


def test_other_formats() -> None:
    saved = "*filter\n:INPUT DROP [0:0]\n-A INPUT -s 10.0.0.0/8 -j ACCEPT\nCOMMIT\n"
    rules = fibula.Rules.parse(saved, chain="INPUT")
    hit = rules.lookup("10.0.0.1", "192.0.2.1", "tcp", 1, 2)
    assert hit is not None and hit["action"] == "allow"
    assert rules.lookup("::ffff:10.0.0.1", "192.0.2.1", "tcp", 1, 2) == hit
    both = fibula.Rules.parse(saved.replace(":INPUT", ":FORWARD DROP [0:0]\n:INPUT"))
    assert both.notes[0] == "rules of INPUT were left out"
    assert both.notes[1].startswith("read as rules of IPv4") and len(both.notes) == 2
    listed = fibula.Rules.parse("10.0.0.0/8\n", format="prefixes", source=True)
    assert listed.classify([("10.0.0.1", "192.0.2.1", 6, 1, 2), ("192.0.2.1", "10.0.0.1", 6, 1, 2)]) == [1, None]


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(fibula.SourceError, match="line 1, column 5"):
        fibula.Rules.parse("src 10.0.0.1/8 -> drop")
    with pytest.raises(fibula.SourceError, match="it was read as prefixes, by its first line"):
        fibula.Rules.parse("10.0.0.0/8 dorp")
    with pytest.raises(fibula.SourceError, match="rules: it has no rules"):
        fibula.Rules.parse("# any -> drop\n")
    with pytest.raises(FileNotFoundError):
        fibula.Rules.read(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        fibula.Rules.read(tmp_path)
    rules = fibula.Rules.parse(RULES)
    with pytest.raises(fibula.AddressError, match="different families"):
        rules.lookup("10.0.0.1", "::1", "tcp")
    with pytest.raises(fibula.SourceError, match="no protocol"):
        rules.lookup("10.0.0.1", "10.0.0.2", "tpc")
    with pytest.raises(TypeError, match="both ports"):
        rules.lookup("10.0.0.1", "10.0.0.2", "tcp", 1)
    with pytest.raises(fibula.FibulaError, match="type and code, up to 255, not 0 and 2048"):
        rules.lookup("10.0.0.1", "10.0.0.2", "icmp", 0, 2048)
    for port in (70000, -1, 2**70):
        with pytest.raises(fibula.FibulaError, match=f"a port is a number from 0 to 65535, not {port}"):
            rules.lookup("10.0.0.1", "10.0.0.2", "tcp", 1, port)
        with pytest.raises(fibula.FibulaError, match="a port is a number"):
            rules.classify([("10.0.0.1", "10.0.0.2", "tcp", port, 1)])
    with pytest.raises(TypeError, match="a port is a number from 0 to 65535, not '22'"):
        rules.lookup("10.0.0.1", "10.0.0.2", "tcp", 1, "22")  # type: ignore[arg-type]
