use super::*;
use crate::{Collected, ColumnDecl};

fn decode(text: &str) -> Collected {
    let mut sink = Collected::default();
    let taken = JsonDecoder::new(HostBits::Refuse).decode(text.as_bytes(), Tail::End, &mut sink);
    assert_eq!(taken, Ok(text.len()));
    assert!(detect(text.as_bytes()), "{text}");
    sink
}

/// The columns and the routes.
fn clean(text: &str) -> (Vec<String>, Vec<String>) {
    let sink = decode(text);
    assert_eq!(sink.damage, [], "{text}");
    let info = sink.info.unwrap();
    let kind = |column: &ColumnDecl| {
        let typed = info.types.iter().find(|(name, _)| *name == column.name);
        typed.map_or(format!("{:?}", column.kind), |(_, of)| format!("{of:?}"))
    };
    let columns = info.columns.iter().map(|c| format!("{}:{}", c.name, kind(c))).collect();
    (columns, sink.lines)
}

/// The messages about damaged records.
fn what(text: &str) -> Vec<String> {
    decode(text).damage.iter().map(|damage| damage.what.to_string()).collect()
}

macro_rules! gives {
    ($text:expr, [$($column:expr),*], [$($line:expr),* $(,)?]) => {
        let (columns, lines) = clean($text);
        assert_eq!(columns, [$($column),*] as [&str; _], "{}", $text);
        assert_eq!(lines, [$($line),*] as [&str; _], "{}", $text);
    };
}

#[test]
fn what_providers_publish() {
    gives!(
        r#"{"syncToken": "1", "createDate": "2026-01-01", "prefixes": [
            {"ip_prefix": "192.0.2.0/24", "region": "eu-1", "service": "S3"}],
            "ipv6_prefixes": [{"ipv6_prefix": "2001:db8::/32", "region": "us-1", "service": "EC2"}]}"#,
        ["region:Str", "service:Str"],
        ["192.0.2.0/24 = eu-1, S3", "2001:db8::/32 = us-1, EC2"]
    );
    gives!(
        r#"{"syncToken": "1", "prefixes": [{"ipv4Prefix": "192.0.2.0/24", "scope": "a"},
            {"ipv6Prefix": "2001:db8::/32", "scope": "b"}]}"#,
        ["scope:Str"],
        ["192.0.2.0/24 = a", "2001:db8::/32 = b"]
    );
    gives!(
        r#"{"changeNumber": 7, "cloud": "Public", "values": [{"id": "Sql", "name": "Sql",
            "properties": {"changeNumber": 3, "region": "", "systemService": "Az",
            "addressPrefixes": ["192.0.2.0/24", "2001:db8::/32"]}}]}"#,
        ["id:Str", "name:Str", "changeNumber:Int", "region:Str", "systemService:Str"],
        ["192.0.2.0/24 = Sql, Sql, 3, , Az", "2001:db8::/32 = Sql, Sql, 3, , Az"]
    );
    gives!(
        r#"{"addresses": ["192.0.2.0/24"], "ipv6_addresses": ["2001:db8::/32"]}"#,
        ["list:Str"],
        ["192.0.2.0/24 = addresses", "2001:db8::/32 = ipv6_addresses"]
    );
}

#[test]
fn arrays_and_objects_of_prefixes() {
    gives!(
        r#"["192.0.2.0/24", "2001:db8::1", "10.0.0.0-10.0.0.3"]"#,
        [],
        ["192.0.2.0/24", "2001:db8::1/128", "10.0.0.0/30"]
    );
    gives!(
        r#"{"192.0.2.0/24": {"asn": 64500, "drop": true}, "10.0.0.0/8": {"asn": 7}}"#,
        ["asn:Int", "drop:Bool"],
        ["192.0.2.0/24 = 64500, true", "10.0.0.0/8 = 7, null"]
    );
    gives!(r#"{"192.0.2.0/24": "AS1"}"#, ["value:Str"], ["192.0.2.0/24 = AS1"]);
    // A gateway is no route.
    gives!(
        r#"[{"prefix": "192.0.2.0/24", "next_hop": "192.0.2.1"}, {"ip": "10.0.0.1", "next_hop": "10.0.0.2"}]"#,
        ["next_hop:Str"],
        ["192.0.2.0/24 = 192.0.2.1", "10.0.0.1/32 = 10.0.0.2"]
    );
    gives!(
        r#"[{"start_ip": "10.0.0.0", "end_ip": "10.0.0.255", "n": 1.5}, {"cidr": "::ffff:10.1.0.0/112"}]"#,
        ["n:Double"],
        ["10.0.0.0/24 = 1.5", "10.1.0.0/16 = null"]
    );
}

#[test]
fn damage() {
    assert_eq!(what(r#"["192.0.2.0/24", "oops"]"#).len(), 1);
    assert_eq!(what(r#"["192.0.2.1/24"]"#).len(), 1);
    assert_eq!(
        what(r#"[{"cidr": "10.0.0.0/8", "n": 1}, {"cidr": "10.0.0.300/8", "n": 2}]"#),
        ["no prefix in {\"cidr\": \"10.0.0.300/8\", \"n\": 2}"]
    );
    assert!(what("{\"a\": [").iter().all(|what| what.starts_with("not JSON")));
    assert_eq!(decode("{}").lines.len(), 0);
    let many: Vec<String> = (0..300).map(|i| format!("\"c{i}\": {i}")).collect();
    let sink = decode(&format!("[{{\"cidr\": \"10.0.0.0/8\", {}}}]", many.join(",")));
    assert_eq!((sink.damage.len(), sink.lines.len()), (1, 1));
}

#[test]
fn damage_has_its_position() {
    let places = |text: &str| {
        let places = decode(text).damage.iter().map(|d| (d.record, d.offset as usize)).collect();
        let at: Vec<(u64, usize)> = places;
        at.into_iter().map(|(record, at)| (record, text[at..].to_owned())).collect::<Vec<_>>()
    };
    let text = "[\n \"192.0.2.0/24\", \"oops\", \"192.0.2.1/24\"]";
    assert_eq!(
        places(text),
        [(2, "\"oops\", \"192.0.2.1/24\"]".into()), (3, "\"192.0.2.1/24\"]".into())]
    );
    let barren = "[{\"cidr\": \"10.0.0.0/8\"},\n {\"cidr\":\n \"10.0.0.300/8\"}]";
    assert_eq!(places(barren), [(2, "{\"cidr\":\n \"10.0.0.300/8\"}]".into())]);
    assert_eq!(places("{\"a\": \n[ x"), [(1, "x".into())]);
    // A byte order mark counts.
    let marked = format!("\u{feff}{text}");
    assert_eq!(places(&marked)[0].1, places(text)[0].1);
}

#[test]
fn ranges_that_overlap_are_cut_as_in_text() {
    let range = |first: u8, last: u8, name: &str| {
        format!(r#"{{"start_ip": "10.0.0.{first}", "end_ip": "10.0.0.{last}", "name": "{name}"}}"#)
    };
    let text = format!("[{}, {}]", range(0, 5, "A"), range(3, 9, "B"));
    let sink = decode(&text);
    assert_eq!(
        sink.lines,
        ["10.0.0.0/30 = A", "10.0.0.4/31 = A", "10.0.0.6/31 = B", "10.0.0.8/31 = B"]
    );
    assert_eq!(sink.noted.len(), 1, "{:?}", sink.noted);
    // Prefixes next to ranges are ranges, too.
    let text = format!(r#"[{}, {{"cidr": "10.0.0.0/28", "name": "P"}}]"#, range(0, 5, "A"));
    let lines = decode(&text).lines;
    assert!(lines.contains(&"10.0.0.8/29 = P".to_owned()), "{lines:?}");
    assert!(!lines.contains(&"10.0.0.4/31 = P".to_owned()), "{lines:?}");
}

#[test]
fn mapped_prefixes_are_counted() {
    let sink =
        decode(r#"["::ffff:10.1.0.0/112", "10.2.0.0/16", "::ffff:10.3.0.0-::ffff:10.3.0.1"]"#);
    assert_eq!(sink.lines, ["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/31"]);
    assert_eq!(sink.noted.len(), 2, "{:?}", sink.noted);
}

#[test]
fn of_a_name_that_comes_twice_the_last_counts() {
    gives!(r#"[{"cidr": "10.0.0.0/8", "n": 1, "n": 2}]"#, ["n:Int"], ["10.0.0.0/8 = 2"]);
    gives!(r#"[{"cidr": "10.0.0.0/8", "n": 1, "n": null}]"#, ["n:Str"], ["10.0.0.0/8 = null"]);
    gives!(
        r#"[{"cidr": "10.0.0.0/8", "n": {"a": 1}, "n": {"b": 2}}]"#,
        ["n.b:Int"],
        ["10.0.0.0/8 = 2"]
    );
    let sink = decode(r#"[{"v4": "10.0.0.0/8", "\u00764": "11.0.0.0/8"}]"#);
    assert_eq!((sink.lines, sink.noted), (vec!["11.0.0.0/8".to_owned()], vec![REPLACED]));
    // Two routes for a prefix are counted as in other tables.
    assert_eq!(decode(r#"{"10.0.0.0/8": 1, "10.0.0.0/8": 2}"#).lines.len(), 2);
}

/// As in columns of text.
#[test]
fn netmasks_and_lengths_have_members_of_their_own() {
    for length in [
        r#""mask": "24""#,
        r#""mask": "/24""#,
        r#""netmask": "255.255.255.0""#,
        r#""Prefix-Length": 24"#,
        r#""prefixlen": 24"#,
        r#""cidr": 24"#,
    ] {
        gives!(
            &format!(r#"[{{"subnet": "10.10.1.0", {length}, "site": "a"}}]"#),
            ["site:Str"],
            ["10.10.1.0/24 = a"]
        );
    }
    gives!(
        r#"[{"network": "2001:db8::", "bits": 32}, {"network": "10.0.0.0", "bits": 8}]"#,
        [],
        ["2001:db8::/32", "10.0.0.0/8"]
    );
    // A prefix needs none, and a member that is no length is a value.
    gives!(
        r#"[{"prefix": "10.0.0.0/8", "mask": "255.0.0.0"}, {"prefix": "11.0.0.0/8", "mask": null}]"#,
        ["mask:Str"],
        ["10.0.0.0/8 = 255.0.0.0", "11.0.0.0/8 = null"]
    );
    gives!(
        r#"[{"ip": "10.0.0.1", "length": 1500}, {"ip": "10.0.0.2", "length": 32}, {"ip": "10.0.0.3", "length": 60}]"#,
        ["length:Int"],
        ["10.0.0.1/32 = 1500", "10.0.0.2/32 = 32", "10.0.0.3/32 = 60"]
    );
    // As in Atlassian's file; the length has its own name.
    gives!(
        r#"{"items": [{"network": "192.0.2.0", "mask_len": 24, "cidr": "192.0.2.0/24"}]}"#,
        ["network:Str", "mask_len:Int"],
        ["192.0.2.0/24 = 192.0.2.0, 24"]
    );
}

#[test]
fn a_wrong_length_is_damage() {
    let text = |length: &str| {
        let good = r#"{"subnet": "10.0.0.0", "mask": 8}"#;
        format!(r#"[{good}, {{"subnet": "10.1.0.0", "mask": {length}}}, {good}]"#)
    };
    assert_eq!(
        what(&text("\"255.0.255.0\"")),
        ["not an address, a prefix or a range: \"10.1.0.0\", netmask or length \"255.0.255.0\""]
    );
    assert_eq!(
        what(&text("33")),
        ["the prefix length exceeds the family's bits: \"10.1.0.0\", netmask or length \"33\""]
    );
    for length in ["8", "\"\"", "null", "{}"] {
        let sink = decode(&text(length));
        assert_eq!((sink.damage.len(), sink.lines.len()), (1, 2), "{length}");
    }
}

#[test]
fn an_object_belongs_to_the_prefix_under_a_known_name() {
    gives!(
        r#"[{"aggregate": "10.0.0.0/8", "prefix": "10.1.0.0/16", "next_hop": "10.9.9.1/32", "parent": {"prefix": "10.0.0.0/12"}}]"#,
        ["aggregate:Str", "next_hop:Str", "parent.prefix:Str"],
        ["10.1.0.0/16 = 10.0.0.0/8, 10.9.9.1/32, 10.0.0.0/12"]
    );
    // The likeliest name, but prefixes before addresses.
    gives!(
        r#"[{"ip": "10.0.0.1/32", "cidr": "10.0.0.0/8"}]"#,
        ["ip:Str"],
        ["10.0.0.0/8 = 10.0.0.1/32"]
    );
    gives!(
        r#"[{"network": "10.0.0.0", "range": "10.0.0.0-10.0.0.3"}]"#,
        ["network:Str"],
        ["10.0.0.0/30 = 10.0.0.0"]
    );
    // A name counts if most of its values are prefixes.
    gives!(
        r#"[{"network": "office", "cidr": "10.0.0.0/8"}, {"network": "lab", "v6": "2001:db8::/32"}]"#,
        ["network:Str"],
        ["10.0.0.0/8 = office", "2001:db8::/32 = lab"]
    );
    gives!(
        r#"[{"network": "office", "subnets": [{"network": "10.0.0.0/8"}, {"network": "11.0.0.0/8"}]}]"#,
        ["network:Str"],
        ["10.0.0.0/8 = office", "11.0.0.0/8 = office"]
    );
    // None is as good as missing.
    gives!(
        r#"[{"ip_prefix": "10.0.0.0/8", "ipv6_prefix": null}, {"ip_prefix": null, "ipv6_prefix": "2001:db8::/32"}]"#,
        ["ipv6_prefix:Str", "ip_prefix:Str"],
        ["10.0.0.0/8 = null, null", "2001:db8::/32 = null, null"]
    );
    // Valid members elsewhere do not replace the invalid one.
    let good = r#"{"prefix": "10.0.0.0/8"}"#;
    for wrong in ["\"10.0.0.300/8\"", "\"default\"", "167772160", "\"10.0.0.1/8\""] {
        let text = format!(r#"[{good}, {{"prefix": {wrong}, "aggregate": "11.0.0.0/8"}}]"#);
        let sink = decode(&text);
        assert_eq!((sink.damage.len(), sink.lines.len()), (1, 1), "{wrong}");
    }
    let ranges = r#"[{"first": "10.0.0.0", "last": "10.0.0.3"}, {"first": "10.0.0.9", "last": "10.0.0.7", "of": "10.0.0.0/8"}]"#;
    assert_eq!(what(ranges), ["the range ends before it starts: \"10.0.0.9\" to \"10.0.0.7\""]);
}

#[test]
fn objects_inside_of_objects_have_values() {
    gives!(
        r#"[{"prefix": "10.0.0.0/8", "location": {"name": "Z", "at": {"lat": 47.5}, "none": {}}, "n": 1}]"#,
        ["location.name:Str", "location.at.lat:Double", "n:Int"],
        ["10.0.0.0/8 = Z, 47.5, 1"]
    );
    // A member of the whole name comes before.
    gives!(
        r#"[{"prefix": "10.0.0.0/8", "a.b": 1, "a": {"b": 2}}, {"a": {"b": 2}, "a.b": 1, "prefix": "11.0.0.0/8"}]"#,
        ["a.b:Int"],
        ["10.0.0.0/8 = 1", "11.0.0.0/8 = 1"]
    );
    gives!(
        r#"{"10.0.0.0/8": {"geo": {"country": "CH"}}}"#,
        ["geo.country:Str"],
        ["10.0.0.0/8 = CH"]
    );
    gives!(
        r#"[{"name": "Sql", "owner": {"name": "x"}, "properties": {"region": "eu", "addressPrefixes": ["10.0.0.0/8"]}}]"#,
        ["name:Str", "owner.name:Str", "region:Str"],
        ["10.0.0.0/8 = Sql, x, eu"]
    );
}

/// They are no routes either: addresses of name servers, say.
#[test]
fn lists_beside_a_prefix_are_counted() {
    let text = r#"[{"prefix": "10.0.0.0/8", "dns": ["10.0.0.53", "x"], "a": {"tags": [1]}, "none": []},
        {"v4": "11.0.0.0/8", "tags": ["a"]}]"#;
    let sink = decode(text);
    assert_eq!(sink.lines, ["10.0.0.0/8", "11.0.0.0/8"]);
    assert_eq!((sink.damage.len(), sink.noted), (0, vec![LEFT_OUT; 3]));
    let sink =
        decode(r#"{"10.0.0.0/8": [{"prefix": "10.0.0.0/8", "nexthops": [{"ip": "10.0.0.1"}]}]}"#);
    assert_eq!((sink.lines, sink.noted), (vec!["10.0.0.0/8".to_owned()], vec![LEFT_OUT]));
}

#[test]
fn columns_have_the_kinds_of_their_values() {
    gives!(
        r#"[{"cidr": "10.0.0.0/8", "on": true, "lat": 47.25, "n": -3, "id": 7, "of": 1, "s": "7", "wide": 123456789012345678901234},
            {"cidr": "11.0.0.0/8", "on": false, "lat": 1, "n": 1.50e3, "id": null, "of": true, "s": "8", "wide": 1}]"#,
        ["on:Bool", "lat:Double", "n:Double", "id:Int", "of:Str", "s:Str", "wide:Str"],
        [
            "10.0.0.0/8 = true, 47.25, -3, 7, 1, 7, 123456789012345678901234",
            "11.0.0.0/8 = false, 1, 1.50e3, null, true, 8, 1"
        ]
    );
    gives!(
        r#"[{"cidr": "10.0.0.0/8", "none": null, "big": 1e999, "empty": ""}]"#,
        ["none:Str", "big:Str", "empty:Str"],
        ["10.0.0.0/8 = null, 1e999, "]
    );
}

#[test]
fn what_has_no_prefix_in_a_list_of_prefixes_is_damage() {
    for text in [
        r#"["10.0.0.0/8", 64500]"#,
        r#"["10.0.0.0/8", null]"#,
        r#"[["10.0.0.0/8"], ["x"]]"#,
        r#"[{"cidr": "10.0.0.0/8"}, "10.0.0.300/8"]"#,
    ] {
        let sink = decode(text);
        assert_eq!((sink.lines.len(), sink.damage.len()), (1, 1), "{text}");
    }
    let long = format!(r#"["10.0.0.0/8", "{}"]"#, "x".repeat(100_000));
    assert!(what(&long)[0].len() < 200);
}
