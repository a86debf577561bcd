use super::*;
use crate::Collected;

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
    let columns = sink.info.unwrap().columns;
    (columns.iter().map(|c| format!("{}:{:?}", c.name, c.kind)).collect(), sink.lines)
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
        ["asn:Int", "drop:Str"],
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
        ["n:Str"],
        ["10.0.0.0/24 = 1.5", "10.1.0.0/16 = null"]
    );
}

#[test]
fn damage() {
    let what =
        |text: &str| decode(text).damage.iter().map(|d| d.what.to_string()).collect::<Vec<_>>();
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
fn damage_says_where() {
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
    // Prefixes beside ranges are ranges, too.
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
}
