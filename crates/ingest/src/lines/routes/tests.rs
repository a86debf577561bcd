use super::super::decode;
use crate::Format;

#[test]
fn ip_route() {
    let sink = decode(
        Format::Routes,
        "default via 192.0.2.1 dev eth0 proto dhcp metric 100\n\
         default via 192.0.2.9 dev eth1 metric 200\n\
         10.0.0.0/8 dev eth1 proto kernel scope link src 10.0.0.9\n\
         192.0.2.77 via inet6 fe80::1 dev eth0 onlink\n\
         blackhole 198.51.100.0/24\n\
         203.0.113.0/24 proto bird metric 32\n\
         \tnexthop via 192.0.2.1 dev eth0 weight 1\n\
         \tnexthop dev ppp0 weight 1\n",
    );
    assert_eq!(
        sink.lines,
        [
            "0.0.0.0/0 = 192.0.2.1, eth0, 100, unicast",
            "10.0.0.0/8 = null, eth1, 0, unicast",
            "192.0.2.77/32 = fe80::1, eth0, 0, unicast",
            "198.51.100.0/24 = null, null, 0, blackhole",
            "203.0.113.0/24 = null, null, 32, unicast",
            "203.0.113.0/24 = 192.0.2.1, eth0, 32, unicast",
            "203.0.113.0/24 = 192.0.2.1 -, eth0 ppp0, 32, unicast",
        ]
    );
    assert_eq!((sink.damage.len(), sink.ignored), (0, 1));
    let sink = decode(
        Format::Routes,
        "fe80::/64 dev eth0 proto kernel metric 256 pref medium\ndefault dev tun0 metric 1024\n\
         nonsense\nnexthop via ::1\n10.0.0.1/8 dev x\n",
    );
    assert_eq!(sink.lines[1], "::/0 = null, tun0, 1024, unicast");
    assert_eq!((sink.lines.len(), sink.damage.len()), (2, 3));
}

#[test]
fn the_family_of_the_default_route() {
    for (text, to) in [
        ("default via inet6 fe80::1 dev eth0", "0.0.0.0/0"),
        ("default dev wg0 metric 1024 pref medium", "::/0"),
        ("default via fe80::1 dev eth0 metric 1024 pref medium", "::/0"),
        ("default via inet 192.0.2.1 dev eth0 pref high", "::/0"),
        ("fe80::/64 dev eth0\ndefault via inet6 fe80::1 dev eth0", "0.0.0.0/0"),
        ("default dev ppp0 scope link", "0.0.0.0/0"),
        ("blackhole default metric 1024 pref medium", "::/0"),
    ] {
        let sink = decode(Format::Routes, &format!("{text}\n"));
        let line = sink.lines.last().expect("a route");
        assert_eq!((line.split(' ').next(), sink.damage.len()), (Some(to), 0), "{text}");
    }
    // The next lines have the same family.
    let text =
        "default dev wg0 metric 1024 pref medium\n2001:db8::/32 dev wg0 metric 1024 pref medium\n";
    let sink = decode(Format::Routes, text);
    let expected = ["::/0 = null, wg0, 1024, unicast", "2001:db8::/32 = null, wg0, 1024, unicast"];
    assert_eq!(sink.lines, expected);
}

#[test]
fn route_n() {
    let sink = decode(
        Format::Routes,
        "Kernel IP routing table\n\
         Destination     Gateway         Genmask         Flags Metric Ref    Use Iface\n\
         0.0.0.0         192.0.2.1       0.0.0.0         UG    100    0        0 eth0\n\
         10.0.0.0        0.0.0.0         255.0.0.0       U     0      0        0 eth1\n\
         198.51.100.0    -               255.255.255.0   !     200    -        0 -\n\
         10.0.0.0        0.0.0.0         255.0.255.0     U     0      0        0 eth1\n",
    );
    assert_eq!(
        sink.lines,
        [
            "0.0.0.0/0 = 192.0.2.1, eth0, 100, unicast",
            "10.0.0.0/8 = null, eth1, 0, unicast",
            "198.51.100.0/24 = null, null, 200, unreachable",
        ]
    );
    assert_eq!(sink.damage.len(), 1);
    let sink = decode(
        Format::Routes,
        "Kernel IPv6 routing table\n\
         Destination                    Next Hop                   Flag Met Ref Use If\n\
         2001:db8::/32                  [::]                       U    256 1     0 eth0\n\
         [::]/0                         fe80::1                    UG   1024 1    0 eth0\n",
    );
    assert_eq!(
        sink.lines,
        ["2001:db8::/32 = null, eth0, 256, unicast", "::/0 = fe80::1, eth0, 1024, unicast"]
    );
}

#[test]
fn columns_by_the_header() {
    let sink = decode(
        Format::Routes,
        "Kernel IP routing table\n\
         Destination     Gateway         Genmask         Flags Metric Ref    Use Iface    MSS   Window irtt\n\
         10.0.0.0        192.0.2.1       255.0.0.0       UG    100    0        0 eth0     0     0      0\n",
    );
    assert_eq!(sink.lines, ["10.0.0.0/8 = 192.0.2.1, eth0, 100, unicast"]);
    let sink = decode(
        Format::Routes,
        "Kernel IPv6 routing table\n\
         Destination                    Next Hop                   Flag Met Ref Use If\n\
         [::]/96                        [::]                       !n   -1  1     0 lo\n\
         ::/0                           fe80::1                    UG   1024 1    0 eth0\n",
    );
    assert_eq!(
        sink.lines,
        ["::/96 = null, lo, 4294967295, unreachable", "::/0 = fe80::1, eth0, 1024, unicast"]
    );
    assert_eq!(sink.damage.len(), 0);
}

#[test]
fn bsd() {
    let sink = decode(
        Format::Routes,
        "Routing tables\n\nInternet:\n\
         Destination        Gateway            Flags     Netif Expire\n\
         default            192.168.1.1        UGS         em0\n\
         10/8               192.168.1.9        UGS         em0\n\
         127.0.0.1          link#2             UH          lo0\n\
         169.254            link#1             UCS         em0      !\n\
         192.168.1          link#1             U           em0\n\
         198.51.100.0/24    127.0.0.1          UGSB        lo0\n\n\
         Internet6:\n\
         Destination                       Gateway                       Flags     Netif Expire\n\
         default                           fe80::1%em0                   UGS         em0\n\
         ::/96                             ::1                           UGRS        lo0\n\
         fe80::%em0/64                     link#1                        U           em0\n\
         192.168.1.2.3      link#1             U           em0\n",
    );
    assert_eq!(
        sink.lines,
        [
            "0.0.0.0/0 = 192.168.1.1, em0, 0, unicast",
            "10.0.0.0/8 = 192.168.1.9, em0, 0, unicast",
            "127.0.0.1/32 = null, lo0, 0, unicast",
            "169.254.0.0/16 = null, em0, 0, unicast",
            "192.168.1.0/24 = null, em0, 0, unicast",
            "198.51.100.0/24 = 127.0.0.1, lo0, 0, blackhole",
            "::/0 = fe80::1%em0, em0, 0, unicast",
            "::/96 = ::1, lo0, 0, unreachable",
            "fe80::/64 = null, em0, 0, unicast",
        ]
    );
    assert_eq!(sink.damage.len(), 1);
}
