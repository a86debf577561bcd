//! Bad requests of every kind: a status and a sentence.

use bytes::Bytes;
use hyper::Method;

use crate::common::{Lab, raw, refusal};

#[test]
fn bad_questions_are_refused_with_a_sentence() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    lab.announce("bgp/100", "10.0.0.0/8", 0, (1, 64600));
    let mut client = lab.client();
    for (path, status, part) in [
        ("/v1/lookup/nonsense", 400, "\"nonsense\" is not an address; addresses look like"),
        ("/v1/lookup/10.0.0.1/8", 400, "\"10.0.0.1/8\" is not an address"),
        ("/v1/lookup/10.0.0.256", 400, "is not an address"),
        ("/v1/lookup/%ff", 400, "not UTF-8"),
        ("/v1/lookup/10.0.0.1?table=bmp", 404, "no table \"bmp\"; there are: bgp, bgp/100"),
        ("/v1/lookup/10.0.0.1?table=", 400, "the parameter table is empty"),
        ("/v1/lookup/10.0.0.1?tabel=bgp", 400, "no parameter \"tabel\"; there are: table"),
        ("/v1/lookup/10.0.0.1?table=bgp&table=bgp", 400, "table occurs twice"),
        ("/v1/lookup/10.0.0.1?table=%zz", 400, "not UTF-8"),
        ("/v1/routes/10.0.0.0/33", 400, "is not a prefix"),
        ("/v1/routes/10.0.0.1/8", 400, "is not a prefix"),
        ("/v1/routes/x", 400, "prefixes look like"),
        ("/v1/routes/10.0.0.0/8?view=all", 400, "not one of: exact, covering, covered"),
        ("/v1/routes/10.0.0.0/8?limit=0", 400, "not a number from 1 to 1000"),
        ("/v1/routes/10.0.0.0/8?limit=many", 400, "limit is \"many\""),
        ("/v1/routes/10.0.0.0/8?table=x", 404, "no table \"x\""),
        ("/v1/search", 400, "the parameter q is missing"),
        ("/v1/history?prefix=10.0.0.0/99", 400, "is not a prefix"),
        ("/v1/history?table=x", 404, "no table"),
        ("/v1/history?origin_as=4294967296", 400, "not a number"),
        ("/v1/changes?since=-1", 400, "not a number"),
        ("/v1/changes?table=x", 404, "no table"),
        ("/v1/histogram", 400, "name one table with the parameter table: bgp, bgp/100"),
        ("/v1/hilbert?table=x", 404, "no table"),
        ("/v1/peers?x=1", 400, "no parameter \"x\"; there are: none"),
        ("/v1/nothing", 404, "no path \"/v1/nothing\"; /openapi.json lists all"),
        ("/v1/lookup/", 404, "no path"),
        ("/v2/lookup/10.0.0.1", 404, "no path"),
    ] {
        let (got, sentence) = refusal(&client.get(path, &[]).unwrap());
        assert_eq!(got, status, "{path}: {sentence}");
        assert!(sentence.contains(part), "{path}: {sentence}");
    }
    let long = format!("/v1/lookup/{}", "x".repeat(5000));
    let (_, sentence) = refusal(&client.get(&long, &[]).unwrap());
    assert!(sentence.len() < 200, "{sentence}");
    let bad_id = client.get("/v1/changes", &[("last-event-id", "x")]).unwrap();
    assert_eq!(refusal(&bad_id).0, 400);
}

#[test]
fn methods_are_those_of_the_path() {
    let lab = Lab::new(|_| {});
    let mut client = lab.client();
    let mut ask = |method: Method, path: &str| {
        let answer = client.ask(method, path, &[], Bytes::new()).unwrap();
        let allow = answer.headers.get("allow").map(|allow| allow.to_str().unwrap().to_owned());
        (answer.status, allow)
    };
    let get = Some("GET".to_owned());
    assert_eq!(ask(Method::POST, "/v1/peers"), (405, get.clone()));
    assert_eq!(ask(Method::DELETE, "/v1/lookup/10.0.0.1"), (405, get.clone()));
    assert_eq!(ask(Method::GET, "/v1/lookup"), (405, Some("POST".to_owned())));
    assert_eq!(ask(Method::OPTIONS, "/v1/peers"), (405, get));
    assert_eq!(ask(Method::HEAD, "/v1/peers"), (200, None));
    // No other site's page may read answers.
    let answer = client.get("/v1/peers", &[("origin", "http://evil.example")]).unwrap();
    assert!(answer.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
    assert_eq!(answer.headers["x-content-type-options"], "nosniff");
    assert_eq!(answer.headers["cache-control"], "no-store");
}

#[test]
fn a_head_has_no_body() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 64600));
    let head = raw(
        lab.address(),
        b"HEAD /v1/peers HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    );
    let get = raw(
        lab.address(),
        b"GET /v1/peers HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    );
    let (of_get, body) = get.split_once("\r\n\r\n").unwrap();
    let length = format!("content-length: {}", body.len());
    assert!(of_get.contains(&length) && head.contains(&length), "{head}");
    assert!(head.ends_with("\r\n\r\n") && head.starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn bytes_that_are_no_request_are_refused() {
    let lab = Lab::new(|options| options.limits.head_bytes = 4096);
    for (bytes, status) in [
        (&b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..], "400"),
        (b"nonsense\r\n\r\n", "400"),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", "400"),
        (b"GET /v1/peers HTTP/1.1\r\nhost: \xff\r\nconnection: close\r\n\r\n", "403"),
    ] {
        let answer = raw(lab.address(), &[bytes, b"\r\n"].concat());
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(20_000));
    let answer = raw(lab.address(), long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let mut client = lab.client();
    assert_eq!(client.get("/healthz", &[]).unwrap().status, 200, "others are served");
}

#[test]
fn only_those_with_the_token_are_answered() {
    let lab = Lab::new(|options| options.token = Some("correct horse".to_owned()));
    let mut client = lab.client();
    let mut ask = |path: &str, token: Option<&str>| {
        let headers: Vec<_> = token.iter().map(|token| ("authorization", *token)).collect();
        client.get(path, &headers).unwrap()
    };
    for token in [
        None,
        Some("Bearer wrong"),
        Some("Bearer correct hors"),
        Some("Bearer correct horses"),
        Some("Basic correct horse"),
        Some("correct horse"),
        Some("Bearer"),
        Some("Bearer "),
    ] {
        let answer = ask("/v1/peers", token);
        assert_eq!(refusal(&answer).0, 401, "{token:?}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        assert_eq!(ask("/metrics", token).status, 401);
        assert_eq!(ask("/v1/changes", token).status, 401);
    }
    for token in ["Bearer correct horse", "bearer correct horse"] {
        assert_eq!(ask("/v1/peers", Some(token)).status, 200);
    }
    for open in ["/", "/app.js", "/style.css", "/healthz", "/openapi.json"] {
        assert_eq!(ask(open, None).status, 200, "{open}");
    }
    let mut options = fibula_server::client::ClientOptions::new(lab.url());
    options.token = Some("correct horse".to_owned());
    let mut client = fibula_server::client::Client::new(options).unwrap();
    assert!(client.lookup("10.0.0.1".parse().unwrap(), None).is_ok());
    let mut client = lab.client();
    let refused = client.lookup("10.0.0.1".parse().unwrap(), None).unwrap_err().to_string();
    assert!(refused.contains("status 401") && refused.contains("requires a token"), "{refused}");
}

#[test]
fn names_of_other_sites_are_refused_on_loopback() {
    let lab = Lab::new(|options| options.hosts = vec!["lg.example".to_owned()]);
    let ask = |host: &str| {
        let request =
            format!("GET /v1/peers HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        raw(lab.address(), request.as_bytes())
    };
    assert!(ask("evil.example").starts_with("HTTP/1.1 403"));
    assert!(ask("evil.example").contains("is not called"));
    assert!(ask("lg.example:80").starts_with("HTTP/1.1 200"));
}
