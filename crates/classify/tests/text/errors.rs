//! Errors in texts of rules.

use fibula_classify::text::{RuleFormat, RuleOptions, read};

use super::read_as;

/// Errors say where, and what to do; nothing of the text is taken.
#[test]
fn errors_have_places() {
    use RuleFormat::{Classbench, Iptables, Nftables, Prefixes, Rules};
    let filter = "*filter\n:FORWARD DROP [0:0]\n";
    let chain = "table ip t {\n chain c {\n  type filter hook forward priority 0; policy drop;\n";
    let cases: &[(RuleFormat, &str, (u32, u32), &str)] = &[
        (Rules, "any -> drop\nsrc 10.0.0.1/8 -> drop", (2, 5), "bits are set"),
        (Rules, "any", (1, 1), "no action"),
        (Rules, "-> drop", (1, 1), "begins with `any`"),
        (Rules, "tcp src -> drop", (1, 5), "needs a value"),
        (Rules, "tcp dport 65536 -> drop", (1, 11), "not a port"),
        (Rules, "tcp dport 9-8 -> drop", (1, 11), "ends before it starts"),
        (Rules, "tcp udp -> drop", (1, 5), "no packet can meet"),
        (Rules, "icmp dport 53 -> drop", (1, 12), "no packet can meet"),
        (Rules, "priority 9 -> drop", (1, 12), "begins with `any`"),
        (Rules, "any -> mark 1 mark 2", (1, 15), "one mark only"),
        (Rules, "any -> drop label a label b", (1, 21), "one label only"),
        (Rules, "src 10.0.0.0/+8 -> drop", (1, 5), "not an address"),
        (Rules, "src 10.0.0.0/08 -> drop", (1, 5), "not an address"),
        (Rules, "any -> dorp", (1, 8), "no action: drop"),
        (Rules, "any ->", (1, 5), "missing behind"),
        (Rules, "any -> drop allow", (1, 5), "leave one out"),
        (Rules, "any -> mark 65536", (1, 13), "up to 65535"),
        (Rules, "any -> mark 0", (1, 13), "leave it out"),
        (Rules, "any -> vrf a table 2", (1, 14), "one table only"),
        (Rules, "any -> drop label \"x", (1, 19), "not closed"),
        (Rules, "ünter 4 -> drop", (1, 1), "is no condition"),
        (Rules, "any priority 3 -> drop", (1, 5), "line's beginning"),
        (Rules, "vlan 4096 -> drop", (1, 6), "12 bits only"),
        (Classbench, "@10.0.0.0/8 0.0.0.0/0 0 : 9 0 : 9", (1, 1), "a filter is"),
        (Classbench, "10.0.0.0/8 0.0.0.0/0 0 : 9 0 : 9 6/255", (1, 1), "no @"),
        (Classbench, "@10.0.0.0/8 0.0.0.0/0 0 : 9 0 - 9 6/255", (1, 31), "a filter is"),
        (Classbench, "@10.0.0.0/8 0.0.0.0/0 0 : 9 0 : 99999 6/255", (1, 33), "not a port"),
        (Iptables, &format!("{filter}-A FORWARD -p tcp -j DROP"), (1, 1), "cut off"),
        (Iptables, &format!("{filter}COMMIT\n{filter}COMMIT"), (4, 1), "second table"),
        (Iptables, "*nat\n*filter\n", (2, 1), "table nat has not ended"),
        (Iptables, &format!("{filter}:FORWARD ACCEPT [0:0]\nCOMMIT"), (3, 1), "twice"),
        (Iptables, &format!("{filter}-A FORWARD -j DROP -j ACCEPT"), (3, 20), "second target"),
        (
            Iptables,
            &format!("{filter}-A FORWARD -p tcp --tcp-flags SYN SYN,ACK -j DROP"),
            (3, 35),
            "bits are set",
        ),
        (Iptables, "-A FORWARD -j DROP", (1, 1), "no table"),
        (Iptables, "*filter\n-A FORWARD -j DROP", (2, 4), "policy"),
        (Iptables, "*filter\n:INPUT DROP [0:0]\nCOMMIT", (3, 1), "no chain FORWARD"),
        (Iptables, &format!("{filter}-A FORWARD -i eth0 -j DROP"), (3, 12), "`-i`"),
        (Iptables, &format!("{filter}-A FORWARD ! -s 10.0.0.0/8 -j DROP"), (3, 12), "`!`"),
        (Iptables, &format!("{filter}-A FORWARD -m state --state NEW -j DROP"), (3, 15), "state"),
        (Iptables, &format!("{filter}-A FORWARD -j mychain"), (3, 15), "mychain"),
        (Iptables, &format!("{filter}-A FORWARD -p tcp"), (3, 1), "no target"),
        (Iptables, &format!("{filter}-A FORWARD -p tcp --dport http0 -j DROP"), (3, 27), "ports"),
        (Nftables, "tabel ip t {", (1, 1), "`table`"),
        (Nftables, "table ip t {\n", (1, 12), "not closed"),
        (Nftables, "table ip t {\n}\n", (2, 2), "no chain has the hook"),
        (Nftables, &format!("{chain}  ct state new accept\n }}\n}}"), (4, 3), "`ct state`"),
        (Nftables, &format!("{chain}  ip saddr != 1.2.3.4 drop\n }}\n}}"), (4, 12), "`!=`"),
        (Nftables, &format!("{chain}  ip saddr @x drop\n }}\n}}"), (4, 12), "no set `x`"),
        (Nftables, &format!("{chain}  ip saddr 1.2.3.4\n }}\n}}"), (4, 3), "does not decide"),
        (Nftables, &format!("{chain}  jump other\n }}\n}}"), (4, 3), "`jump other`"),
        (Nftables, &format!("{chain}  tcp dport {{ 1, 2 : 3 }} drop\n }}\n}}"), (4, 20), "plain"),
        (
            Nftables,
            "table inet t {\n chain c {\n  type filter hook forward device \"eth0\" priority 0;\n }\n}",
            (3, 28),
            "one interface",
        ),
        (Nftables, &format!("{chain}  tcp dport 20- drop\n }}\n}}"), (4, 13), "not a value"),
        (Prefixes, "10.0.0.0/33", (1, 1), "not a prefix"),
        (Prefixes, "10.0.0.0/8 le 24", (1, 12), "`ge` and `le`"),
        (Prefixes, "10.0.0.0/8 drop it", (1, 17), "nothing may follow"),
        (Prefixes, "ip prefix-list A seq 9 deny ::/0", (1, 29), "`ipv6 prefix-list`"),
        (Prefixes, "ipv6 prefix-list A seq 9 deny 10.0.0.0/8", (1, 31), "`ip prefix-list`"),
        (
            Prefixes,
            "ip prefix-list A seq 9 deny 10.0.0.0/8\nip prefix-list A seq 5 permit 10.1.0.0/16",
            (2, 22),
            "in the order of their numbers",
        ),
        (Prefixes, "ip prefix-list A permi 10.0.0.0/8", (1, 18), "permit"),
    ];
    for (format, text, place, what) in cases {
        let error = read_as(*format, text).expect_err(text);
        assert_eq!((error.line, error.column), *place, "{error}: {text}");
        assert!(error.what.contains(what), "{error}: {text}");
    }
    let latin = read(b"any -> drop\ntcp \xe4", Rules, &RuleOptions::default());
    let error = latin.unwrap_err();
    assert_eq!((error.line, error.column), (2, 5), "{error}");
}
