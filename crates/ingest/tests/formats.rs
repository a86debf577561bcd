//! The tables that people have, as they have them: small ones of each kind in `testdata/formats`.

use fibula_ingest::{Collected, ReadError, ReadOptions, ReadReport, SourceSpec, read};

use crate::common::cuts;

fn read_table(name: &str) -> Result<(ReadReport, Collected), ReadError> {
    let mut sink = Collected::default();
    let spec = SourceSpec::new(cuts().join("formats").join(name));
    let report = read(&spec, &mut ReadOptions::default(), &mut sink)?;
    Ok((report, sink))
}

/// The content of the file, all of it sound.
#[track_caller]
fn gives(name: &str, format: &str, columns: &[&str], lines: &[&str]) -> Collected {
    let (report, sink) = read_table(name).unwrap();
    assert_eq!(sink.lines, lines, "{name}");
    assert_eq!((report.format, &*sink.damage), (format, &[][..]), "{name}");
    let info = sink.info.as_ref().unwrap();
    let names: Vec<&str> = info.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, columns, "{name}");
    sink
}

#[test]
fn what_providers_publish() {
    gives(
        "aws.json",
        "json",
        &["region", "service", "network_border_group"],
        &[
            "192.0.2.0/24 = eu-1, STORE, eu-1",
            "198.51.100.0/25 = us-1, COMPUTE, us-1",
            "2001:db8::/40 = eu-1, STORE, eu-1",
        ],
    );
    gives(
        "gcp.json",
        "json",
        &["service", "scope"],
        &["192.0.2.0/24 = Cloud, europe-1", "2001:db8::/32 = Cloud, asia-1"],
    );
    gives(
        "azure.json",
        "json",
        &["name", "id", "changeNumber", "region", "systemService"],
        &[
            "192.0.2.8/30 = ActionGroup, ActionGroup, 36, , ActionGroup",
            "2001:db8:0:1::/64 = ActionGroup, ActionGroup, 36, , ActionGroup",
        ],
    );
    gives(
        "fastly.json",
        "json",
        &["list"],
        &[
            "192.0.2.0/24 = addresses",
            "198.51.100.0/24 = addresses",
            "2001:db8::/32 = ipv6_addresses",
        ],
    );
}

#[test]
fn what_registries_and_tools_print() {
    gives(
        "delegated.txt",
        "delegated",
        &["registry", "country", "date", "status"],
        &[
            "192.0.2.0/24 = apnic, AU, 20110811, assigned",
            "198.51.100.0/25 = apnic, JP, 20120101, allocated",
            "198.51.100.128/26 = apnic, JP, 20120101, allocated",
            "2001:db8::/35 = apnic, JP, 19990813, allocated",
        ],
    );
    gives(
        "bgpdump-m.txt",
        "bgpdump",
        &[],
        &[
            "+ 0 198.51.100.0/24 192.0.2.1 64510",
            "+ 0 203.0.113.0/24 192.0.2.1 64511",
            "+ 0 2001:db8::/32 2001:db8::1 64512",
            "- 0 203.0.113.0/24",
        ],
    );
    // Of FRR 8.4.
    gives(
        "show-bgp.txt",
        "show-bgp",
        &[],
        &[
            "+ 0 10.0.0.0/8 192.0.2.3 none",
            "+ 1 100.100.100.100/32 192.0.2.2 65011",
            "+ 0 100.100.100.104/30 192.0.2.3 none",
            "+ 1 172.16.0.0/16 192.0.2.2 65011",
            "+ 1 192.168.1.0/24 192.0.2.2 65011",
            "+ 2 198.51.100.0/24 none none",
            "+ 0 203.0.113.128/25 192.0.2.3 none",
            "+ 3 2001:db8::/32 ::ffff:192.0.2.3 none",
            "+ 4 2001:db8:1234:5678:9abc::/80 ::ffff:192.0.2.2 65011",
        ],
    );
    let columns = ["gateway", "interface", "metric", "kind"];
    gives(
        "ip-route.txt",
        "routes",
        &columns,
        &[
            "0.0.0.0/0 = 192.0.2.1, eth0, 100, unicast",
            "10.0.0.0/8 = 192.0.2.2, eth0, 0, unicast",
            "192.0.2.0/24 = null, eth0, 100, unicast",
            "198.51.100.0/24 = null, null, 0, blackhole",
        ],
    );
    gives(
        "route-n.txt",
        "routes",
        &columns,
        &[
            "0.0.0.0/0 = 192.0.2.1, eth0, 100, unicast",
            "10.0.0.0/8 = 192.0.2.2, eth0, 0, unicast",
            "192.0.2.0/24 = null, eth0, 100, unicast",
        ],
    );
}

#[test]
fn networks_lists_and_indicators() {
    gives(
        "netmask.csv",
        "text",
        &["value"],
        &["10.0.0.0/8 = a", "192.0.2.0/24 = b", "0.0.0.0/0 = default"],
    );
    gives(
        "length.csv",
        "text",
        &["value"],
        &["10.0.0.0/8 = a", "192.0.2.0/24 = b", "2001:db8::/32 = c"],
    );
    gives(
        "indicators.csv",
        "text",
        &["value1", "value2", "value3"],
        &[
            "192.0.2.7/32 = 2026-01-01 00:00:01, 443, Alpha",
            "198.51.100.9/32 = 2026-01-01 00:00:02, 8080, Beta",
        ],
    );
    gives(
        "list.txt",
        "text",
        &["value"],
        &["192.0.2.0/24 = SBL000001", "198.51.100.7/32 = SBL000002"],
    );
}

#[test]
fn what_is_read_otherwise_than_it_is_written_is_noted() {
    let (report, _) = read_table("overlap.csv").unwrap();
    assert_eq!((report.noted.len(), report.noted[0].1), (1, 1));
    let (report, sink) = read_table("mapped.csv").unwrap();
    assert_eq!(sink.lines, ["192.0.2.0/24 = a", "2001:db8::/32 = b"]);
    assert_eq!((report.noted.len(), report.noted[0].1), (1, 1));
}

#[test]
fn what_is_no_table_is_refused() {
    let error = read_table("page.csv").unwrap_err();
    assert!(matches!(error, ReadError::NoTable { .. }), "{error}");
    let error = read_table("two-bits.txt.gz").unwrap_err();
    assert!(matches!(error, ReadError::Archive { .. }), "{error}");
    assert!(error.to_string().contains("checksum"), "{error}");
}
