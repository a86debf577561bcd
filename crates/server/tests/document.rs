//! The OpenAPI document against the server: every path, parameter and answer.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fibula_alarms::Alarm;
use fibula_core::{Attributes as CoreAttributes, BgpAttributes};
use fibula_history::{HistoryBreak, HistoryFolder, HistoryOptions, RouteKey, RouteRecord};
use fibula_rib::{AttributeSet, Peer};
use fibula_rpki::{Aspas, LiveVrps, Revalidator, Vrp, Vrps};
use fibula_server::api::{TopFlow, TopFlows};
use fibula_server::client::{Answer, escape};
use fibula_server::{ActiveAlarms, AsNames, FlowTops, HistoryOnDisk, Server, rfc3339};
use hyper::Method;
use serde_json::{Map, Value};

use crate::common::{Lab, get, json};

/// The errors of a value according to a schema.
fn faults(document: &Value, schema: &Value, value: &Value, place: &str, out: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let path = reference.strip_prefix('#').unwrap();
        let target = document.pointer(path).unwrap_or_else(|| panic!("{reference} is not there"));
        return faults(document, target, value, place, out);
    }
    for alternatives in ["oneOf", "anyOf"] {
        if let Some(all) = schema[alternatives].as_array() {
            let is_one = |schema: &&Value| {
                let mut faulty = Vec::new();
                faults(document, schema, value, place, &mut faulty);
                faulty.is_empty()
            };
            if !all.iter().any(|schema| is_one(&schema)) {
                out.push(format!("{place}: none of {alternatives} is {value}"));
            }
            return;
        }
    }
    let is_of = |kind: &str| match kind {
        "null" => value.is_null(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("{place}: type {other}"),
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind)) {
        out.push(format!("{place}: {value} is not of {kinds:?}"));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        out.push(format!("{place}: {value} is none of {words:?}"));
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        faults(document, &schema["items"], item, &format!("{place}[{at}]"), out);
    }
    if let Some(object) = value.as_object() {
        let (mut known, mut required) = (Map::new(), BTreeSet::new());
        members(document, schema, &mut known, &mut required);
        let more = &schema["additionalProperties"];
        for (name, value) in object {
            let schema = known.get(name).or((!more.is_null()).then_some(more));
            match schema {
                Some(schema) => faults(document, schema, value, &format!("{place}.{name}"), out),
                None => out.push(format!("{place}.{name} is not documented")),
            }
        }
        let missing = required.iter().filter(|name| !object.contains_key(**name));
        out.extend(missing.map(|name| format!("{place}.{name} is missing")));
    }
}

/// The members that a schema names, including those of its parts.
fn members<'a>(
    document: &'a Value,
    schema: &'a Value,
    known: &mut Map<String, Value>,
    required: &mut BTreeSet<&'a str>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        return members(document, target, known, required);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        members(document, part, known, required);
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        known.insert(name.clone(), schema.clone());
    }
    required.extend(schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str));
}

/// A value that a parameter may have.
fn sample(parameter: &Value) -> String {
    match parameter["name"].as_str().unwrap() {
        "address" => "10.1.2.3".to_owned(),
        "file" => "style.css".to_owned(),
        "prefix" if parameter["in"] == "path" => "10.0.0.0/8".to_owned(),
        "at" => "1970-01-01T00:00:05.5Z".to_owned(),
        "from" => "1970-01-01".to_owned(),
        "to" => "1970-01-01T00:00:09Z".to_owned(),
        "after" if parameter["description"].as_str().unwrap().contains("answer of changes") => {
            "9000000-0".to_owned()
        }
        "after" if parameter["description"].as_str().unwrap().contains("`next`") => {
            "bgp,10.0.0.0/8".to_owned()
        }
        "prefix" | "after" => "10.0.0.0/8".to_owned(),
        "table" => "bgp".to_owned(),
        "q" => "AS64600".to_owned(),
        "community" => "64500:*".to_owned(),
        "path_regex" => "_64600$".to_owned(),
        "by" => "src_prefix".to_owned(),
        "as" => "1,2".to_owned(),
        "column" => "address".to_owned(),
        "add" => "prefix,origin_as".to_owned(),
        name => match &parameter["schema"] {
            schema if schema["enum"].is_array() => schema["enum"][1].as_str().unwrap().to_owned(),
            schema if schema["type"] == "integer" => schema["minimum"].to_string(),
            _ => panic!("no sample for {name}"),
        },
    }
}

/// Sends a request with these parameters; returns only the beginning of an answer that does not end.
fn ask(lab: &Lab, method: &str, path: &str, parameters: &[&Value], operation: &Value) -> Answer {
    let (mut path, mut query) = (path.to_owned(), Vec::new());
    for parameter in parameters {
        let (name, value) = (parameter["name"].as_str().unwrap(), escape(&sample(parameter)));
        match parameter["in"].as_str().unwrap() {
            "path" => path = path.replace(&format!("{{{name}}}"), &value),
            _ => query.push(format!("{name}={value}")),
        }
    }
    if !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    let mut client = lab.client();
    if operation["responses"]["200"]["content"]["text/event-stream"].is_object() {
        return begin_of_events(lab, &path);
    }
    match method {
        "get" => client.get(&path, &[]).unwrap(),
        "post" => {
            client.post(&path, "application/x-ndjson", "{\"address\":\"10.1.2.3\"}\n").unwrap()
        }
        other => panic!("{other}"),
    }
}

fn begin_of_events(lab: &Lab, path: &str) -> Answer {
    let mut stream = TcpStream::connect(lab.address()).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut text = [0; 12];
    stream.read_exact(&mut text).unwrap();
    let status = std::str::from_utf8(&text[9..]).unwrap().parse().unwrap();
    let mut headers = hyper::HeaderMap::new();
    headers.insert("content-type", "text/event-stream".parse().unwrap());
    Answer { status, headers, body: bytes::Bytes::new() }
}

fn check(document: &Value, operation: &Value, answer: &Answer, what: &str) {
    let response = &operation["responses"][answer.status.to_string()];
    assert!(response.is_object(), "{what}: status {} is not documented", answer.status);
    let kind = answer.headers["content-type"].to_str().unwrap().split(';').next().unwrap();
    let media = &response["content"][kind];
    assert!(media.is_object(), "{what}: {kind} is not documented");
    if kind == "application/json" && media["schema"].is_object() {
        let mut faulty = Vec::new();
        faults(document, &media["schema"], &json(answer), "answer", &mut faulty);
        assert!(faulty.is_empty(), "{what}: {faulty:#?}");
    }
}

fn alarm() -> Alarm {
    Alarm {
        id: 7,
        rule: "ours".into(),
        kind: "unexpected-origin",
        table: "bgp".into(),
        prefix: "192.0.2.0/24".parse().unwrap(),
        expected: "origin AS64500".to_owned(),
        seen: "origin AS64666".to_owned(),
        peer: "AS64501 (192.0.2.1)".to_owned(),
        as_path: "64501 64666".to_owned(),
        begin: 1_000_000,
        end: None,
    }
}

/// A history of ten seconds in 1970.
fn past(folder: &Path) -> HistoryOnDisk {
    let mut history = HistoryFolder::open(folder, HistoryOptions::default()).unwrap();
    history.begin(0, HistoryBreak::Begin).unwrap();
    let key = |prefix: &str| RouteKey { table: "bgp".into(), prefix: prefix.parse().unwrap() };
    let peer = Some(Arc::new(Peer::new(Some([192, 0, 2, 1].into()), 64500)));
    let bgp =
        BgpAttributes { origin_as: Some(64600), as_path: "64500 64600", ..Default::default() };
    let set = AttributeSet::new(&CoreAttributes::Bgp(&bgp));
    for (time, prefix, best) in [
        (1, "10.0.0.0/8", Some(&set)),
        (2, "11.0.0.0/8", Some(&set)),
        (3, "11.0.0.0/8", None),
        (6, "10.0.0.0/8", None),
    ] {
        let record = RouteRecord::new(time * 1_000_000, peer.clone(), best.cloned());
        history.write(&[(key(prefix), record)]).unwrap();
    }
    history.cover(10_000_000);
    let reader = history.reader();
    HistoryOnDisk(Arc::new(move || Ok(reader.clone())))
}

#[test]
fn past_routes_and_changes() {
    let folder = tempfile::tempdir().unwrap();
    let past = past(folder.path());
    let lab = Lab::new(|options| options.history = Some(past));
    let mut client = lab.client();
    let mut ask = |path: &str| {
        let answer = client.get(&format!("/v1/history/{path}"), &[]).unwrap();
        (answer.status, json(&answer))
    };
    let (status, found) = ask("10.1.2.3?at=1970-01-01T00:00:05Z");
    let route = &found["tables"][0]["match"];
    assert_eq!(
        (status, &route["prefix"], &route["until"]),
        (200, &"10.0.0.0/8".into(), &"1970-01-01T00:00:06.000Z".into())
    );
    assert_eq!(route["attributes"]["as_path"], "64500 64600");
    assert!(found["changes"].is_null() && route["or_before"].is_null());
    let (_, found) = ask("11.0.0.0/8?at=1970-01-01T00:00:05Z");
    assert_eq!(found["tables"][0]["since"], "1970-01-01T00:00:03.000Z");
    let (_, found) = ask("11.0.0.0/8?limit=1");
    let change = &found["changes"][0];
    assert_eq!(change["time"], "1970-01-01T00:00:03.000Z");
    assert!(change["attributes"].is_null() && change["peer"]["asn"] == 64500);
    let next = found["next"].as_str().unwrap();
    let (_, found) = ask(&format!("11.0.0.0/8?limit=1&after={next}"));
    assert_eq!(found["changes"][0]["time"], "1970-01-01T00:00:02.000Z");
    assert!(found["next"].is_null());
    for (path, status, sentence) in [
        ("10.0.0.0/8?at=1970-01-01T00:00:11Z", 404, "reaches until 1970-01-01T00:00:10.000Z"),
        ("10.0.0.0/8?at=tomorrow", 400, "a time is 2024-05-01"),
        ("10.0.0.0/8?at=2199-01-01", 400, "in the future"),
        ("10.0.0.0/8?from=1970-01-02&to=1970-01-01", 400, "later"),
        ("10.0.0.0/8?after=7", 400, "next"),
        ("10.0.0.0/8?after=7-99999999999", 400, "next"),
        ("ten?at=1970-01-01", 400, "not a prefix"),
        ("10.0.0.0/8?at=1970-01-01&table=fpm", 404, "no table"),
    ] {
        let (found, answer) = ask(path);
        let error = answer["error"].as_str().unwrap();
        assert!(found == status && error.contains(sentence), "{path}: {found} {error}");
    }
}

fn top(by: Option<&str>, minutes: u64, limit: usize) -> Result<TopFlows, String> {
    assert!((1..=30).contains(&minutes));
    let flow = |value| TopFlow { value, bytes: 3, packets: 2, flows: 1, missed_bytes: 0 };
    Ok(TopFlows {
        columns: vec!["src_prefix".to_owned()],
        column: Some(by.unwrap_or("src_prefix").to_owned()),
        from: rfc3339(UNIX_EPOCH),
        until: rfc3339(SystemTime::now()),
        bytes: 6,
        packets: 4,
        flows: 2,
        top: [Some("10.0.0.0/8".to_owned()), None].into_iter().map(flow).take(limit).collect(),
    })
}

#[test]
fn the_document_and_the_server_agree() {
    let vrps = Arc::new(LiveVrps::default());
    let shared = Arc::clone(&vrps);
    let alarm = Arc::new(alarm());
    let folder = tempfile::tempdir().unwrap();
    let past = past(folder.path());
    let mut lab = Lab::new(|options| {
        options.vrps = Some(shared);
        options.history = Some(past);
        options.alarms = Some(ActiveAlarms(Arc::new(move || vec![Arc::clone(&alarm)])));
        options.flows = Some(FlowTops(Arc::new(top)));
        options.as_names = Some(Arc::new(AsNames::parse("1,One").unwrap()));
    });
    lab.announce("bgp", "10.0.0.0/8", 0, (2, 64600));
    lab.announce("bgp", "10.1.0.0/16", 1, (1, 64600));
    lab.announce("bgp", "10.1.0.0/16", 2, (3, 64600));
    lab.announce("bgp", "11.0.0.0/8", 2, (3, 64600));
    lab.withdraw("bgp", "11.0.0.0/8", 2);
    lab.live.flush().unwrap();
    let vrp = Vrp::new("10.1.0.0/16".parse().unwrap(), 16, 64600).unwrap();
    let _revalidator = Revalidator::start(Arc::clone(&vrps), Arc::clone(&lab.live)).unwrap();
    let aspas: Aspas = [(64600, vec![1, 2])].into_iter().collect();
    vrps.replace_with_aspas(Arc::new(Vrps::new([vrp])), Arc::new(aspas), [vrp.prefix()]);
    while vrps.revalidated(1).is_empty() {
        std::thread::yield_now();
    }
    let document = get(&mut lab.client(), "/openapi.json");
    assert_eq!(document, Server::openapi());
    assert_eq!(document["openapi"], "3.1.0");
    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations += 1;
            assert!(operation["summary"].as_str().unwrap().ends_with(['.', '`']), "{path}");
            let parameters: Vec<&Value> =
                operation["parameters"].as_array().unwrap().iter().collect();
            let needed: Vec<_> =
                parameters.iter().copied().filter(|p| p["required"] == true).collect();
            let of_path = |p: &&&Value| p["in"] == "path";
            assert_eq!(path.matches('{').count(), parameters.iter().filter(of_path).count());
            // Only the required parameters, all parameters at once, and each optional one by itself.
            let mut sets = vec![needed.clone(), parameters.clone()];
            sets.extend(parameters.iter().map(|one| [&needed[..], &[*one]].concat()));
            for mut set in sets {
                set.dedup();
                let answer = ask(&lab, method, path, &set, operation);
                assert_eq!(answer.status, 200, "{method} {path} {set:?}: {answer:?}");
                check(&document, operation, &answer, path);
            }
            // Undocumented parameters are refused, and so are requests without a required one.
            let other = serde_json::json!({ "name": "q", "in": "query", "schema": {} });
            if !parameters.iter().any(|known| known["name"] == "q") {
                let answer = ask(&lab, method, path, &[&needed[..], &[&other]].concat(), operation);
                if !operation["responses"]["200"]["content"]["text/event-stream"].is_object() {
                    assert_eq!(answer.status, 400, "{path}");
                    check(&document, operation, &answer, path);
                }
            }
            // Parameters outside their ranges and words.
            for parameter in &parameters {
                let wrong = match &parameter["schema"] {
                    schema if schema["enum"].is_array() && parameter["in"] == "query" => "wrong",
                    schema if schema["type"] == "integer" => "-1",
                    _ => continue,
                };
                let name = parameter["name"].as_str().unwrap();
                let path = path.replace("{address}", "10.1.2.3").replace("{prefix}", "10.0.0.0/8");
                let path = format!("{path}?{name}={wrong}&q=x");
                let path = path.replace("&q=x", if path.contains("search") { "&q=x" } else { "" });
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let kind = [("content-type", "text/plain")];
                let answer = lab.client().ask(method, &path, &kind, bytes::Bytes::new()).unwrap();
                assert_eq!(answer.status, 400, "{path}");
                check(&document, operation, &answer, &path);
            }
        }
    }
    assert_eq!(operations, 22);
}

/// The check above detects errors.
#[test]
fn the_check_of_schemas_can_fail() {
    let document = Server::openapi();
    let schema = serde_json::json!({ "$ref": "#/components/schemas/Health" });
    let count = |value: Value| {
        let mut faulty = Vec::new();
        faults(&document, &schema, &value, "answer", &mut faulty);
        faulty.len()
    };
    assert_eq!(count(serde_json::json!({ "status": "ok" })), 0);
    assert_eq!(count(serde_json::json!({ "status": 7 })), 1);
    assert_eq!(count(serde_json::json!({ "status": "ok", "more": 1 })), 1);
    assert_eq!(count(serde_json::json!({})), 1);
    assert_eq!(count(serde_json::json!([])), 1);
}
