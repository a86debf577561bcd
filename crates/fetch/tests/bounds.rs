//! Answers that lie, redirect, or are no data.

use fibula_fetch::{FetchError, FetchOptions};

use crate::server::{Server, Step, head, whole};
use crate::{content, get, options};

#[test]
fn redirects_are_followed_to_a_bound() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, request| match &*request.path {
        "/a" => whole(302, &[("Location", "/b")], ""),
        "/b" => whole(301, &[("Location", "c")], ""),
        "/c" => whole(200, &[], "one"),
        "/file" => whole(302, &[("Location", "file:///etc/passwd")], ""),
        "/nowhere" => whole(302, &[], ""),
        _ => whole(302, &[("Location", "/loop")], ""),
    });
    assert_eq!(content(&get(options(cache.path()), &server.url("/a")).unwrap()), "one");
    let before = server.requests().len();
    let error = get(options(cache.path()), &server.url("/loop")).unwrap_err();
    assert!(matches!(error, FetchError::Redirect { .. }), "{error}");
    assert_eq!(server.requests().len() - before, 6);
    for path in ["/file", "/nowhere"] {
        let error = get(options(cache.path()), &server.url(path)).unwrap_err();
        assert!(!error.to_string().contains("root"), "{error}");
    }
}

#[test]
fn pages_of_html_are_no_data() {
    let cache = tempfile::tempdir().unwrap();
    let page = [("Content-Type", "text/html; charset=utf-8")];
    let server = Server::start(move |_, request| match &*request.path {
        "/page" => whole(200, &page, "\n <!DOCTYPE html><html>not found</html>"),
        _ => whole(200, &page, "10.0.0.0/8"),
    });
    let error = get(options(cache.path()), &server.url("/page")).unwrap_err();
    assert!(matches!(error, FetchError::Page { .. }), "{error}");
    // Some servers call everything HTML.
    assert_eq!(content(&get(options(cache.path()), &server.url("/list")).unwrap()), "10.0.0.0/8");
}

#[test]
fn lengths_that_lie() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, request| match &*request.path {
        "/long" => vec![head(200, &[("Content-Length", "100")]), Step::Send(b"0123".to_vec())],
        "/short" => vec![
            head(200, &[("Content-Length", "4")]),
            Step::Send(b"0123HTTP/1.1 200 X\r\n\r\n".to_vec()),
        ],
        "/huge" => vec![
            head(200, &[("Content-Length", "99999999999999999999999")]),
            Step::Send(b"0123".to_vec()),
        ],
        "/chunks" => vec![
            head(200, &[("Transfer-Encoding", "chunked")]),
            Step::Send(b"4\r\n0123\r\n9\r\nab".to_vec()),
        ],
        "/whole" => {
            vec![
                head(200, &[("Transfer-Encoding", "chunked")]),
                Step::Send(b"4\r\n0123\r\n0\r\n\r\n".to_vec()),
            ]
        }
        _ => vec![head(200, &[]), Step::Send(b"0123".to_vec())],
    });
    for path in ["/long", "/chunks", "/huge"] {
        let error = get(options(cache.path()), &server.url(path)).unwrap_err();
        assert!(
            matches!(
                error,
                FetchError::Network { .. } | FetchError::Length { .. } | FetchError::Large { .. }
            ),
            "{error}"
        );
    }
    // Without a length, the end of the connection is the end of the file.
    for path in ["/short", "/whole", "/open"] {
        assert_eq!(
            content(&get(options(cache.path()), &server.url(path)).unwrap()),
            "0123",
            "{path}"
        );
    }
}

#[test]
fn files_are_only_so_large() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, request| match &*request.path {
        "/announced" => whole(200, &[], "01234567890"),
        "/open" => vec![head(200, &[]), Step::Send(b"01234567890".to_vec())],
        _ => whole(200, &[], "0123456789"),
    });
    let small = FetchOptions { max_bytes: 10, ..options(cache.path()) };
    for path in ["/announced", "/open"] {
        let error = get(small.clone(), &server.url(path)).unwrap_err();
        assert!(matches!(error, FetchError::Large { bytes: 10, .. }), "{error}");
    }
    assert_eq!(content(&get(small, &server.url("/fits")).unwrap()).len(), 10);
}

#[test]
fn large_files_come_whole() {
    let cache = tempfile::tempdir().unwrap();
    const BYTES: usize = 12 << 20;
    let server = Server::start(|_, _| {
        let length = BYTES.to_string();
        let mut steps = vec![head(200, &[("Content-Length", &length)])];
        steps.extend((0..12).map(|_| Step::Send(vec![b'x'; 1 << 20])));
        steps
    });
    let fetched = get(options(cache.path()), &server.url("/t")).unwrap();
    assert_eq!(fetched.file.bytes, BYTES as u64);
}

#[test]
fn what_is_no_http_is_an_error() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, request| match &*request.path {
        "/garbage" => vec![Step::Send(b"\x00\x01\x02 garbage\r\n\r\n".to_vec())],
        "/headers" => {
            let many = "X: 0123456789012345678901234567890123456789\r\n".repeat(40_000);
            vec![Step::Send(format!("HTTP/1.1 200 X\r\n{many}\r\n").into_bytes())]
        }
        _ => Vec::new(),
    });
    for path in ["/garbage", "/headers", "/nothing"] {
        let error = get(options(cache.path()), &server.url(path)).unwrap_err();
        assert!(matches!(error, FetchError::Network { .. }), "{path}: {error}");
    }
    let error = get(options(cache.path()), "http://127.0.0.1:1/t").unwrap_err();
    assert!(matches!(error, FetchError::Network { .. }), "{error}");
}
