//! The validity of routes in answers, and the state of the validator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fibula_rpki::{Aspas, LiveVrps, ReceivedFrom, Relations, Revalidator, Vrp, Vrps};
use serde_json::{Value, json};

use crate::common::{Lab, get, refusal};

fn vrp(prefix: &str, max_len: u64, asn: u32) -> Vrp {
    Vrp::new(prefix.parse().unwrap(), max_len, asn).unwrap()
}

/// A server with VRPs: those, if there are some, are valid from the start.
fn lab(vrps: Option<&[Vrp]>) -> (Lab, Arc<LiveVrps>) {
    lab_with(vrps, Relations::default())
}

fn lab_with(vrps: Option<&[Vrp]>, relations: Relations) -> (Lab, Arc<LiveVrps>) {
    let live = Arc::new(LiveVrps::default());
    if let Some(vrps) = vrps {
        live.replace(Some(Vrps::new(vrps.iter().copied())), vrps.iter().map(|vrp| vrp.prefix()));
    }
    let shared = Arc::clone(&live);
    let mut lab = Lab::new(|options| {
        (options.vrps, options.relations) = (Some(shared), Arc::new(relations));
    });
    lab.announce("bgp", "10.0.0.0/8", 0, (2, 64600));
    lab.announce("bgp", "10.1.0.0/16", 0, (2, 64600));
    lab.announce("bgp", "10.1.0.0/16", 1, (3, 64601));
    lab.announce("bgp", "2001:db8::/32", 0, (2, 64602));
    lab.live.flush().unwrap();
    (lab, live)
}

#[test]
fn answers_have_the_validity_of_the_moment() {
    let (lab, live) = lab(None);
    let mut client = lab.client();
    let before = get(&mut client, "/v1/lookup/10.1.2.3");
    assert_eq!(before.pointer("/tables/0/match/rpki"), None, "nothing is known yet: {before}");

    let ten = vrp("10.1.0.0/16", 16, 64601);
    live.replace(Some(Vrps::new([ten, vrp("10.0.0.0/8", 8, 64600)])), [ten.prefix()]);
    let all = get(&mut client, "/v1/lookup/10.1.2.3");
    let rpki = |at: &str| all.pointer(at).cloned().unwrap_or_default();
    let vrps = json!(["10.1.0.0/16-16 AS64601", "10.0.0.0/8-8 AS64600"]);
    let expected = json!({ "validity": "invalid-length", "vrps": vrps });
    assert_eq!(rpki("/tables/0/match/rpki"), expected);
    let wide = json!({ "validity": "valid", "vrps": ["10.0.0.0/8-8 AS64600"] });
    assert_eq!(rpki("/tables/0/covering/1/rpki"), wide);
    let none = get(&mut client, "/v1/lookup/2001:db8::1");
    let rpki = none.pointer("/tables/0/match/rpki");
    assert_eq!(rpki, Some(&json!({ "validity": "not-found" })));

    // Each path has its own origin.
    let paths = get(&mut client, "/v1/routes/10.1.0.0/16");
    let paths = paths.pointer("/tables/0/routes/0/paths").and_then(Value::as_array).unwrap();
    let validity = |at: usize| paths[at].pointer("/rpki/validity").and_then(Value::as_str);
    assert_eq!((validity(0), validity(1)), (Some("invalid-length"), Some("valid")));

    // A bulk answer has columns, by the VRPs of its copy of the table.
    let mut bulk = |body: &str| {
        let path = "/v1/lookup?table=bgp&add=rpki,rpki_vrps";
        let answer = client.post(path, "text/csv", format!("a\n{body}\n")).unwrap();
        String::from_utf8(answer.body.to_vec()).unwrap()
    };
    let text = bulk("10.2.3.4");
    assert_eq!(text, "a,a_rpki,a_rpki_vrps\n10.2.3.4,valid,10.0.0.0/8-8 AS64600\n");
    // The next set, once the copy is too old.
    live.replace(Some(Vrps::new([ten])), ["10.0.0.0/8".parse().unwrap()]);
    let start = Instant::now();
    while !bulk("10.2.3.4").contains("10.2.3.4,not-found,") {
        assert!(start.elapsed() < Duration::from_secs(60), "a copy with the new VRPs");
        std::thread::sleep(Duration::from_millis(50));
    }
    // Nothing is known any more.
    live.replace(None, [ten.prefix()]);
    let after = get(&mut client, "/v1/lookup/10.1.2.3");
    assert_eq!(after.pointer("/tables/0/match/rpki"), None);
}

/// Paths are verified by the relation of the peer that sent them.
#[test]
fn answers_have_the_validity_of_paths() {
    let aspas: Aspas = [(64600, vec![1]), (64601, vec![3])].into_iter().collect();
    let aspas = Arc::new(aspas);
    let customer = Relations::parse(b"64501,customer", ReceivedFrom::Unknown).unwrap();
    for (relations, second) in [(Relations::default(), "unknown"), (customer, "invalid")] {
        let (mut lab, live) = lab_with(Some(&[]), relations);
        lab.announce("bgp", "11.0.0.0/8", 1, (3, 64601));
        lab.live.flush().unwrap();
        let mut client = lab.client();
        // Without ASPAs there is nothing to say.
        let before = get(&mut client, "/v1/lookup/10.1.2.3");
        assert_eq!(before.pointer("/tables/0/match/aspa"), None, "{before}");
        assert_eq!(get(&mut client, "/v1/rpki")["aspas"], json!(0));

        live.replace_with_aspas(Arc::default(), Arc::clone(&aspas), []);
        let found = get(&mut client, "/v1/lookup/10.1.2.3");
        assert_eq!(found.pointer("/tables/0/match/aspa"), Some(&json!("valid")), "{found}");
        let other = get(&mut client, "/v1/lookup/2001:db8::1");
        assert_eq!(other.pointer("/tables/0/match/aspa"), Some(&json!("unknown")), "{other}");
        // The second peer's path is 1 2 64601, and AS 2 is no provider of AS 64601.
        let routes = get(&mut client, "/v1/routes/10.1.0.0/16");
        let paths = routes.pointer("/tables/0/routes/0/paths").and_then(Value::as_array).unwrap();
        assert_eq!([&paths[0]["aspa"], &paths[1]["aspa"]], [&json!("valid"), &json!(second)]);
        // Bulk answers have the same.
        let addresses = ["10.1.2.3", "11.1.2.3", "2001:db8::1"];
        let body = format!("a\n{}\n", addresses.join("\n"));
        let answer = client.post("/v1/lookup?table=bgp&add=peer,aspa", "text/csv", body).unwrap();
        let row = |address: &&str| {
            let found = get(&mut lab.client(), &format!("/v1/lookup/{address}?table=bgp"));
            let best = &found["tables"][0]["match"];
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            format!("{address},{},{}\n", text(&best["peer"]["address"]), text(&best["aspa"]))
        };
        let rows: String = addresses.iter().map(row).collect();
        assert_eq!(answer.body, format!("a,a_peer,a_aspa\n{rows}"));
        assert!(rows.contains(&format!(",{second}\n")), "{rows}");

        assert_eq!(get(&mut client, "/v1/rpki")["aspas"], json!(2));
        let metrics = client.get("/metrics", &[]).unwrap();
        let text = String::from_utf8(metrics.body.to_vec()).unwrap();
        assert!(text.lines().any(|line| line == "fibula_rpki_aspas 2"), "{text}");
        live.replace(None, []);
        let after = get(&mut client, "/v1/lookup/10.1.2.3");
        assert_eq!(after.pointer("/tables/0/match/aspa"), None, "expired: {after}");
    }
}

#[test]
fn the_state_of_the_validator_and_the_routes_that_changed() {
    let first = vrp("10.1.0.0/16", 16, 64600);
    let (lab, live) = lab(Some(&[first]));
    let _revalidator = Revalidator::start(Arc::clone(&live), Arc::clone(&lab.live)).unwrap();
    let until = |sets| {
        let start = Instant::now();
        while live.counts().sets < sets {
            assert!(start.elapsed() < Duration::from_secs(60), "revalidated");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    until(1);
    live.replace(Some(Vrps::new([vrp("10.1.0.0/16", 16, 1)])), [first.prefix()]);
    until(2);
    let mut client = lab.client();
    let status = get(&mut client, "/v1/rpki");
    assert_eq!(status["known"], json!(true));
    assert_eq!((&status["generation"], &status["vrps"]["ipv4"]), (&json!(2), &json!(1)));
    assert_eq!((&status["validated"], &status["newly_invalid"]), (&json!(2), &json!(1)));
    let changes = status["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2);
    let newest = &changes[0];
    assert_eq!((&newest["table"], &newest["prefix"]), (&json!("bgp"), &json!("10.1.0.0/16")));
    assert_eq!((&newest["before"], &newest["after"]), (&json!("valid"), &json!("invalid-origin")));
    assert_eq!(get(&mut client, "/v1/rpki?limit=0")["changes"], json!([]));
    let metrics = client.get("/metrics", &[]).unwrap();
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    for line in [
        "fibula_rpki_vrps{family=\"ipv4\"} 1",
        "fibula_rpki_known 1",
        "fibula_rpki_newly_invalid_total 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
}

#[test]
fn without_a_validator_there_is_no_state() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (2, 64600));
    let mut client = lab.client();
    let (status, text) = refusal(&client.get("/v1/rpki", &[]).unwrap());
    assert_eq!(status, 404);
    assert!(text.contains("[rpki]"), "{text}");
}
