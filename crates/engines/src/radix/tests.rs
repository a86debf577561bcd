use fibula_core::{Engine, Hop, Lookup, Prefix, Routes};

use super::{Radix, build, node};

fn routes(list: &[(&str, u32)]) -> Routes<u32> {
    list.iter().map(|(prefix, hop)| (prefix.parse().unwrap(), Hop::new(*hop))).collect()
}

/// The nodes as text: prefix, hop, children.
fn nodes(routes: &Routes<u32>) -> Vec<String> {
    let words = build::build(routes).unwrap();
    words
        .chunks_exact(node::stride::<u32>())
        .map(|n| {
            let prefix = Prefix::new(n[0], n[1] as u8).unwrap();
            format!("{prefix} {:?} {} {}", Hop::from_bits(n[2]).index(), n[3], n[4])
        })
        .collect()
}

/// The table drawn in the module's page.
#[test]
fn worked_example() {
    let table =
        routes(&[("10.0.0.0/8", 0), ("10.1.0.0/16", 1), ("10.1.2.0/24", 2), ("10.2.0.0/16", 3)]);
    assert_eq!(
        nodes(&table),
        [
            "0.0.0.0/0 None 1 0",
            "10.0.0.0/8 Some(0) 2 0",
            "10.0.0.0/14 None 3 5",
            "10.1.0.0/16 Some(1) 4 0",
            "10.1.2.0/24 Some(2) 0 0",
            "10.2.0.0/16 Some(3) 0 0",
        ]
    );
    let radix = Radix::build(&table, &Default::default()).unwrap();
    assert_eq!(radix.node_count(), 6);
    assert_eq!(radix.lookup(0x0a01_0909), Hop::new(1));
}

#[test]
fn empty_table_has_a_root() {
    assert_eq!(nodes(&Routes::default()), ["0.0.0.0/0 None 0 0"]);
    let radix = Radix::<u128>::build(&Routes::default(), &Default::default()).unwrap();
    assert_eq!(radix.lookup(u128::MAX), Hop::NONE);
}

#[test]
fn default_route_lies_in_the_root() {
    let table = routes(&[("0.0.0.0/0", 5), ("255.255.255.255/32", 6), ("0.0.0.0/32", 7)]);
    assert_eq!(
        nodes(&table),
        ["0.0.0.0/0 Some(5) 1 2", "0.0.0.0/32 Some(7) 0 0", "255.255.255.255/32 Some(6) 0 0"]
    );
    let radix = Radix::build(&table, &Default::default()).unwrap();
    let got = [0, 1, u32::MAX - 1, u32::MAX].map(|addr| radix.lookup(addr).to_bits());
    assert_eq!(got, [7, 5, 5, 6]);
}

/// Siblings that part right below their parent need no fork.
#[test]
fn parent_is_the_fork() {
    let table = routes(&[("10.0.0.0/8", 0), ("10.0.0.0/9", 1), ("10.128.0.0/10", 2)]);
    assert_eq!(
        nodes(&table),
        [
            "0.0.0.0/0 None 1 0",
            "10.0.0.0/8 Some(0) 2 3",
            "10.0.0.0/9 Some(1) 0 0",
            "10.128.0.0/10 Some(2) 0 0",
        ]
    );
}
