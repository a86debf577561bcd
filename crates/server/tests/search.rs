//! The prefixes of an AS, read in pages from many tables, and the memory for questions about many tables.

use std::collections::BTreeSet;
use std::fs;

use fibula_server::api::Search;
use fibula_server::client::query;

use crate::common::{Lab, get, json, refusal};

const ASN: u32 = 64700;

/// The largest memory that this process has used so far, in MiB.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() >> 10
}

fn page(lab: &Lab, after: Option<&str>, limit: usize) -> Search {
    let limit = limit.to_string();
    let query = query(&[("q", Some("AS64700")), ("limit", Some(&limit)), ("after", after)]);
    lab.client().json(&format!("/v1/search{query}")).unwrap()
}

/// Each prefix that stays is on exactly one page, whatever changes between the pages.
#[test]
fn all_prefixes_of_an_as_can_be_read_while_the_tables_change() {
    let mut lab = Lab::new(|_| {});
    let mut expected = BTreeSet::new();
    for at in 0..5001_u32 {
        let (table, prefix) = match at % 3 {
            0 => ("bgp", format!("10.{}.{}.0/24", at >> 8, at & 255)),
            1 => ("bgp/100", format!("10.{}.{}.0/24", at >> 8, at & 255)),
            _ => ("bgp/100", format!("2001:db8:{at:x}::/48")),
        };
        lab.announce(table, &prefix, 0, (1, ASN));
        expected.insert((table.to_owned(), prefix));
    }
    let (mut after, mut seen, mut pages) = (None, BTreeSet::new(), 0);
    loop {
        let found = page(&lab, after.as_deref(), 500);
        let count: usize = found.origins.iter().map(|of| of.prefixes.len()).sum();
        assert!(count <= 500, "{count}");
        assert_eq!(found.truncated, found.next.is_some());
        for of in found.origins {
            for prefix in of.prefixes {
                assert!(seen.insert((of.table.clone(), prefix.clone())), "{prefix} twice");
            }
        }
        pages += 1;
        // Others appear and disappear, before the page's end and behind it.
        let other = format!("10.{}.7.128/25", pages % 20);
        lab.announce("bgp", &other, 1, (1, ASN));
        lab.withdraw("bgp", &format!("10.{}.7.128/25", (pages - 1) % 20), 1);
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    assert!(pages >= 11, "{pages}");
    assert_eq!(expected.difference(&seen).next(), None);
    // The client reads all pages.
    let all = lab.client().search("AS64700", Some("bgp/100")).unwrap();
    assert!(!all.truncated && all.next.is_none());
    let of = &all.origins[0];
    assert_eq!((all.origins.len(), of.prefixes.len() as u64), (1, of.routes.ipv4 + of.routes.ipv6));
    let of_table = expected.iter().filter(|(table, _)| table == "bgp/100").count();
    assert_eq!(of.prefixes.len(), of_table);
}

#[test]
fn cursors_that_are_none_are_refused() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, ASN));
    let mut client = lab.client();
    for (query, status, part) in [
        ("q=AS1&after=x", 400, "`next` in the previous answer"),
        ("q=AS1&after=bgp,x", 400, "is not a prefix"),
        ("q=AS1&after=none,10.0.0.0/8", 404, "no table"),
        ("q=x&after=bgp,10.0.0.0/8", 400, "for the prefixes of an AS"),
    ] {
        let answer = client.get(&format!("/v1/search?{query}"), &[]).unwrap();
        let (found, sentence) = refusal(&answer);
        assert!(found == status && sentence.contains(part), "{query}: {found} {sentence}");
    }
    let answer = client.get("/v1/search?q=AS64700&table=bgp%2F100", &[]).unwrap();
    assert_eq!(json(&answer).get("origins"), None);
    assert_eq!(get(&mut client, "/v1/search?q=AS64700")["origins"][0]["prefixes"][0], "10.0.0.0/8");
}

/// A lab with this many tables of one route in each family.
#[cfg(target_os = "linux")]
fn many_tables(count: usize) -> Lab {
    let mut lab = Lab::new(|_| {});
    for table in 0..count {
        let name: &'static str = Box::leak(format!("bgp/vrf{table}").into_boxed_str());
        lab.announce(name, "10.0.0.0/8", 0, (1, ASN));
        lab.announce(name, "2001:db8::/32", 0, (1, ASN + 1));
    }
    lab
}

/// A search reads the RIB: it copies no table.
#[cfg(target_os = "linux")]
#[test]
fn a_search_in_many_tables_takes_no_memory() {
    let lab = many_tables(600);
    let before = peak();
    let found = page(&lab, None, 1000);
    assert_eq!(found.origins.len(), 600);
    // A copy of a table takes 1.3 MiB, those of all 800 MiB. Other tests run meanwhile.
    let grown = peak() - before;
    assert!(grown < 400, "{grown} MiB");
}

/// Only a few copies of tables are kept.
#[cfg(target_os = "linux")]
#[test]
fn copies_of_many_tables_take_little_memory() {
    let lab = many_tables(400);
    let (before, mut client) = (peak(), lab.client());
    for table in 0..400 {
        let answer = get(&mut client, &format!("/v1/histogram?table=bgp/vrf{table}"));
        assert_eq!((&answer["ipv4"][8], &answer["ipv6"][32]), (&1.into(), &1.into()));
    }
    let grown = peak() - before;
    assert!(grown < 300, "{grown} MiB");
}
