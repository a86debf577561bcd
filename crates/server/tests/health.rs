//! Whether the server is well and ready, and its metrics.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use fibula_feeds::{Figures, SourceState, SourceStatus};

use crate::common::{Lab, get, json, refusal};

pub(crate) fn source(state: SourceState) -> SourceStatus {
    SourceStatus {
        name: "bmp".to_owned(),
        kind: "bmp",
        endpoint: "127.0.0.1:5000".to_owned(),
        table: "bgp".to_owned(),
        state,
        figures: Figures {
            connections: 2,
            bytes: 300,
            remarks: BTreeMap::from([("sysName", "r1".to_owned())]),
            ..Figures::default()
        },
        since: SystemTime::UNIX_EPOCH,
        until: None,
        last: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(86_400)),
        trouble: None,
    }
}

#[test]
fn ready_once_a_table_was_complete() {
    let mut lab = Lab::new(|_| {});
    let mut client = lab.client();
    let mut ready = || client.get("/readyz", &[]).unwrap();
    assert_eq!(refusal(&ready()), (503, "no table is complete so far".to_owned()));
    lab.board.set(source(SourceState::Idle));
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 1));
    assert_eq!(ready().status, 503);
    lab.board.update("bmp", |status| status.state = SourceState::Resync);
    assert_eq!(ready().status, 503, "it has not sent everything");
    lab.board.update("bmp", |status| status.state = SourceState::Up);
    assert_eq!(json(&ready())["status"], "ok");
    lab.board.update("bmp", |status| status.state = SourceState::Resync);
    assert_eq!(ready().status, 200, "readers have the old table meanwhile");
    let mut client = lab.client();
    assert_eq!(get(&mut client, "/v1/table")["tables"][0]["complete"], false);
    let sources = get(&mut client, "/v1/peers")["sources"].clone();
    assert_eq!(
        sources,
        serde_json::json!([{
            "name": "bmp", "kind": "bmp", "endpoint": "127.0.0.1:5000", "table": "bgp", "state": "resync",
            "since": "1970-01-01T00:00:00.000Z", "until": null, "last": "1970-01-02T00:00:00.000Z", "connections": 2, "bytes": 300,
            "announced": 0, "withdrawn": 0, "damaged": 0, "ignored": 0, "noted": {}, "remarks": { "sysName": "r1" },
            "trouble": null,
        }])
    );
}

/// A damaged file is a gap in the table, even if it was complete before.
#[test]
fn not_ready_while_a_damaged_file_is_missing() {
    let mut lab = Lab::new(|_| {});
    let mut client = lab.client();
    let mut ready = || client.get("/readyz", &[]).unwrap();
    lab.board.set(source(SourceState::Up));
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 1));
    assert_eq!(ready().status, 200);
    lab.board.update("bmp", |status| {
        status.state = SourceState::Damaged;
        status.trouble = Some("rib.1000: behind byte 9: its last record is cut".to_owned());
    });
    let why = "bmp: rib.1000: behind byte 9: its last record is cut";
    assert_eq!(refusal(&ready()), (503, why.to_owned()));
    lab.board.update("bmp", |status| status.state = SourceState::Up);
    assert_eq!(ready().status, 200);
}

/// The routes of a lost connection are used for a while: its peers are not up.
#[test]
fn peers_of_a_lost_connection_are_lost() {
    let mut lab = Lab::new(|_| {});
    let mut client = lab.client();
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 1));
    let mut lost = SourceStatus { name: "bmp 10.9.9.9".to_owned(), ..source(SourceState::Lost) };
    lost.until = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(120));
    // Another session, whose name begins as this one's.
    lab.board.set(SourceStatus { name: "bmp 10.9.9.90".to_owned(), ..source(SourceState::Up) });
    lab.board.set(lost.clone());
    let answer = get(&mut client, "/v1/peers");
    let (first, second) = (&answer["peers"][0], &answer["peers"][1]);
    assert_eq!(
        (&first["state"], &first["until"]),
        (&"lost".into(), &"1970-01-01T00:02:00.000Z".into())
    );
    assert_eq!((&second["state"], second["until"].is_null()), (&"down".into(), true));
    assert_eq!(answer["sources"][0]["until"], "1970-01-01T00:02:00.000Z");
    let metrics = client.get("/metrics", &[]).unwrap();
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    assert!(text.contains("\nfibula_peers_lost 1\n"), "{text}");
    lab.board.set(SourceStatus { state: SourceState::Up, until: None, ..lost });
    assert_eq!(get(&mut client, "/v1/peers")["peers"][0]["state"], "up");
}

/// A change that readers do not see in time. The pace of this lab is a millisecond; the limit is less.
#[test]
fn not_well_while_changes_wait_too_long() {
    let mut lab = Lab::new(|options| options.longest_lag = Duration::ZERO);
    let mut client = lab.client();
    assert_eq!(client.get("/healthz", &[]).unwrap().status, 200);
    let mut count = 0;
    let late = loop {
        lab.announce("bgp", "10.0.0.0/8", 0, (1, count));
        let answer = client.get("/healthz", &[]).unwrap();
        if answer.status != 200 {
            break answer;
        }
        count += 1;
        assert!(count < 10_000, "no change was ever waiting");
    };
    let (status, sentence) = refusal(&late);
    assert!(
        status == 503 && sentence.starts_with("table bgp: the oldest change waits for"),
        "{sentence}"
    );
    lab.live.flush().unwrap();
    assert_eq!(client.get("/healthz", &[]).unwrap().status, 200);
}

/// Every line follows Prometheus' text format: names and labels, and one head for each name.
#[test]
fn metrics_are_prometheus() {
    let mut lab = Lab::new(|_| {});
    lab.fill(1, 100);
    let mut status = SourceStatus { name: "a \"b\"\\".to_owned(), ..source(SourceState::Up) };
    status.figures.noted.insert("empty AS paths, kept as they are", 3);
    lab.board.set(status);
    let mut client = lab.client();
    client.get("/v1/lookup/10.0.0.1", &[]).unwrap();
    client.get("/v1/lookup/x", &[]).unwrap();
    let answer = client.get("/metrics", &[]).unwrap();
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    let mut kinds = BTreeMap::new();
    let mut samples = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert_eq!(kinds.insert(name, kind), None, "{line}");
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            assert_eq!(samples.insert(sample, value), None, "{line}");
            let name = sample.split('{').next().unwrap();
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(
                base.map_or(kinds.contains_key(name), |base| kinds[base] == "histogram"),
                "{line}"
            );
            assert!(name.starts_with("fibula_"));
        }
    }
    let prefixes = lab.prefixes("bgp", |prefix| matches!(prefix, fibula_core::AnyPrefix::V4(_)));
    let of =
        |sample: &str| samples.get(sample).copied().unwrap_or_else(|| panic!("{sample} in {text}"));
    assert_eq!(of(r#"fibula_routes{table="bgp",family="ipv4"}"#), prefixes.len().to_string());
    let visible = r#"fibula_change_visible_seconds_bucket{table="bgp",family="ipv4",le=""#;
    let limits = ["0.005", "0.01", "0.05", "1", "+Inf"];
    let buckets = limits.map(|le| of(&format!("{visible}{le}\"}}")).parse::<u64>().unwrap());
    assert!(buckets.is_sorted() && buckets[4] >= prefixes.len() as u64, "{buckets:?}");
    assert_eq!(
        of(r#"fibula_change_visible_seconds_count{table="bgp",family="ipv4"}"#),
        buckets[4].to_string()
    );
    assert_eq!(of(r#"fibula_audit_differences_total{table="bgp",family="ipv4"}"#), "0");
    assert_eq!(of(r#"fibula_source_state{source="a \"b\"\\",kind="bmp",state="up"}"#), "1");
    assert_eq!(of(r#"fibula_source_bytes_total{source="a \"b\"\\",kind="bmp"}"#), "300");
    let noted = r#"what="empty AS paths, kept as they are""#;
    assert_eq!(
        of(&format!(r#"fibula_source_noted_total{{source="a \"b\"\\",kind="bmp",{noted}}}"#)),
        "3"
    );
    let lookups =
        r#"fibula_http_requests_total{method="GET",endpoint="/v1/lookup/{address}",status="#;
    assert_eq!(
        (of(&format!("{lookups}\"2xx\"}}")), of(&format!("{lookups}\"4xx\"}}"))),
        ("1", "1")
    );
    assert_eq!(of("fibula_http_connections"), "1");
}
