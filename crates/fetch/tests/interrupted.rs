//! Transfers that break off, and go on.

use std::time::{Duration, Instant};

use fibula_fetch::{FetchError, FetchOptions, Fetcher, Freshness, SourceFile, Url};

use crate::server::{Server, Step, head, whole};
use crate::{Watched, content, get, options};

const TEXT: &str = "0123456789";

/// An answer whose body breaks off.
fn cut(etag: Option<&str>, bytes: usize) -> Vec<Step> {
    let mut headers = vec![("Content-Length", "10")];
    headers.extend(etag.map(|etag| ("ETag", etag)));
    vec![head(200, &headers), Step::Send(TEXT.as_bytes()[..bytes].to_vec())]
}

fn thrice(cache: &std::path::Path) -> FetchOptions {
    FetchOptions { attempts: 3, ..options(cache) }
}

#[test]
fn a_transfer_goes_on_where_it_broke_off() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|number, request| {
        let range = request.header("range");
        match (number, range, request.header("if-range")) {
            (0, None, None) => cut(Some("\"a\""), 4),
            (1, Some("bytes=4-"), Some("\"a\"")) => {
                let headers =
                    [("Content-Length", "6"), ("Content-Range", "bytes 4-9/10"), ("ETag", "\"a\"")];
                vec![head(206, &headers), Step::Send(b"456".to_vec())]
            }
            (2, Some("bytes=7-"), Some("\"a\"")) => {
                whole(206, &[("Content-Range", "bytes 7-9/10"), ("ETag", "\"a\"")], "789")
            }
            _ => whole(400, &[], ""),
        }
    });
    let mut watched = Watched::default();
    let url = Url::parse(&server.url("/t")).unwrap();
    let fetcher = Fetcher::new(thrice(cache.path()));
    let fetched = fetcher.get(&SourceFile::default(), &[url], &mut watched).unwrap();
    assert_eq!((content(&fetched).as_str(), watched.again, watched.checked), (TEXT, 2, 1));
    assert_eq!(watched.progress.last(), Some(&(10, Some(10))));
    let known = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882";
    assert_eq!(fetched.file.sha256, known);
    // The next process checks the digest of the whole file.
    let offline = FetchOptions { offline: true, ..options(cache.path()) };
    assert_eq!(content(&get(offline, &server.url("/t")).unwrap()), TEXT);
}

#[test]
fn another_process_goes_on_too() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|number, request| match (number, request.header("range")) {
        (0, None) => cut(Some("\"a\""), 4),
        (1, Some("bytes=4-")) => whole(206, &[("Content-Range", "bytes 4-9/10")], "456789"),
        _ => whole(400, &[], ""),
    });
    let error = get(options(cache.path()), &server.url("/t")).unwrap_err();
    assert!(matches!(error, FetchError::Network { .. } | FetchError::Length { .. }), "{error}");
    assert_eq!(content(&get(options(cache.path()), &server.url("/t")).unwrap()), TEXT);
}

#[test]
fn a_file_that_changed_meanwhile_is_read_from_its_beginning() {
    for second in [
        whole(200, &[("ETag", "\"b\"")], "abcdefghijkl"),
        whole(206, &[("Content-Range", "bytes 3-9/10")], "3456789"),
        whole(206, &[("Content-Range", "bytes 4-11/12"), ("ETag", "\"b\"")], "efghijkl"),
        whole(206, &[("Content-Range", "bytes 4-9/10"), ("ETag", "\"b\"")], "efghij"),
        whole(416, &[("Content-Range", "bytes */3")], ""),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let second = std::sync::Mutex::new(Some(second));
        let server = Server::start(move |number, _| match number {
            0 => cut(Some("\"a\""), 4),
            1 => second.lock().unwrap().take().unwrap(),
            _ => whole(200, &[("ETag", "\"b\"")], "abcdefghijkl"),
        });
        let fetched = get(thrice(cache.path()), &server.url("/t")).unwrap();
        assert_eq!(content(&fetched), "abcdefghijkl");
    }
}

#[test]
fn without_a_strong_validator_nothing_is_joined() {
    for etag in [None, Some("W/\"a\"")] {
        let cache = tempfile::tempdir().unwrap();
        let server = Server::start(move |_, request| match request.header("range") {
            None => cut(etag, 4),
            Some(_) => whole(206, &[("Content-Range", "bytes 4-9/10")], "xxxxxx"),
        });
        let error = get(thrice(cache.path()), &server.url("/t")).unwrap_err();
        assert!(error.to_string().contains("t: "), "{error}");
        assert_eq!(server.requests().len(), 3);
        assert!(server.requests().iter().all(|request| request.header("range").is_none()));
    }
}

#[test]
fn errors_of_the_server_are_asked_again_others_not() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|number, _| match number {
        0 => whole(503, &[], ""),
        1 => Vec::new(),
        _ => whole(200, &[], "one"),
    });
    let fetched = get(thrice(cache.path()), &server.url("/t")).unwrap();
    assert!(matches!(fetched.freshness, Freshness::New));
    let server = Server::start(|_, _| whole(403, &[], ""));
    let error = get(thrice(cache.path()), &server.url("/u")).unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 403, .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_server_that_stalls_is_left() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, request| match &*request.path {
        "/head" => vec![Step::Wait(Duration::from_secs(20))],
        _ => vec![
            head(200, &[("Content-Length", "10")]),
            Step::Send(b"0".to_vec()),
            Step::Wait(Duration::from_secs(20)),
        ],
    });
    for path in ["/head", "/body"] {
        let started = Instant::now();
        let short = FetchOptions { silence: Duration::from_millis(300), ..options(cache.path()) };
        let error = get(short, &server.url(path)).unwrap_err();
        assert!(matches!(error, FetchError::Silent { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    }
}

#[test]
fn a_server_that_drips_is_left_in_the_end() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, _| {
        let mut steps = vec![head(200, &[("Content-Length", "1000")])];
        for _ in 0..200 {
            steps.extend([Step::Send(b"0".to_vec()), Step::Wait(Duration::from_millis(50))]);
        }
        steps
    });
    let short = FetchOptions { total: Duration::from_millis(700), ..options(cache.path()) };
    let error = get(short, &server.url("/t")).unwrap_err();
    assert!(matches!(error, FetchError::Late { .. }), "{error}");
}
