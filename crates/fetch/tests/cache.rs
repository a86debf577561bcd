//! When a server is asked, and what replaces what.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fibula_fetch::{FetchError, FetchOptions, Fetched, Fetcher, Freshness, SourceFile, Url};

use crate::server::{Server, Step, head, whole};
use crate::{Watched, content, get, options};

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn named(name: &str) -> SourceFile {
    SourceFile { name: name.to_owned(), definition: String::new() }
}

#[test]
fn a_file_is_asked_for_again_and_replaced_when_it_changes() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|number, request| match (number, request.header("if-none-match")) {
        (0, None) => whole(
            200,
            &[("ETag", "\"a\""), ("Last-Modified", "Sat, 28 Nov 2026 08:00:00 GMT")],
            "one",
        ),
        (1, Some("\"a\"")) => whole(304, &[], ""),
        (2, Some("\"a\"")) => whole(200, &[("ETag", "\"b\"")], "two"),
        (3, Some("\"b\"")) => whole(200, &[("ETag", "\"c\"")], "three"),
        _ => whole(400, &[], ""),
    });
    let url = server.url("/list.txt");
    let fetch = || get(options(cache.path()), &url).unwrap();
    let first = fetch();
    assert!(matches!(first.freshness, Freshness::New));
    assert_eq!((content(&first), first.file.date()), ("one".to_owned(), 1_795_852_800));
    assert!(first.path.ends_with("list.txt"));
    let second = fetch();
    assert!(matches!(second.freshness, Freshness::Unchanged));
    assert_eq!(second.path, first.path);
    let third = fetch();
    assert!(matches!(third.freshness, Freshness::New));
    assert_eq!((content(&third), content(&first)), ("two".to_owned(), "one".to_owned()));
    assert_eq!(content(&fetch()), "three");
    assert!(!first.path.exists() && third.path.exists(), "only one earlier file stays");

    // Not asked again for an hour.
    let hour = FetchOptions { max_age: Duration::from_secs(3600), ..options(cache.path()) };
    let recent = get(hour, &url).unwrap();
    assert!(matches!(recent.freshness, Freshness::Recent));
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn the_same_bytes_without_validators_are_no_new_file() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, _| whole(200, &[], "one"));
    let first = get(options(cache.path()), &server.url("/")).unwrap();
    let second = get(options(cache.path()), &server.url("/")).unwrap();
    assert!(matches!(second.freshness, Freshness::Unchanged));
    assert_eq!((second.path, files(cache.path()).len()), (first.path, 3), "file, record, lock");
}

#[test]
fn the_old_file_stays_until_the_new_one_passes() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|number, _| match number {
        0 => whole(200, &[], "good"),
        1 => whole(200, &[], "bad"),
        2 => whole(404, &[], ""),
        3 => whole(500, &[], ""),
        _ => whole(200, &[], "good again"),
    });
    let fetch = || get(options(cache.path()), &server.url("/t.txt")).unwrap();
    let first = fetch();
    let kept = |fetched: &Fetched| match &fetched.freshness {
        Freshness::Kept(error) => error.to_string(),
        other => panic!("{other:?}"),
    };
    for sentence in ["the file that came cannot be used: it is bad", "no such file", "answers 500"]
    {
        let next = fetch();
        assert_eq!((content(&next), &next.path), ("good".to_owned(), &first.path));
        assert!(kept(&next).contains(sentence), "{}", kept(&next));
    }
    assert_eq!(content(&fetch()), "good again");
}

#[test]
fn without_an_old_file_the_reason_is_an_error() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, _| whole(200, &[], "bad"));
    let error = get(options(cache.path()), &server.url("/t")).unwrap_err();
    assert!(matches!(error, FetchError::Refused { .. }), "{error}");
    let offline = FetchOptions { offline: true, ..options(cache.path()) };
    let error = get(offline, &server.url("/t")).unwrap_err();
    assert!(matches!(error, FetchError::Offline { .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_damaged_file_of_the_cache_is_not_used() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::of("one");
    let url = server.url("/t");
    let first = get(options(cache.path()), &url).unwrap();
    fs::remove_file(&first.path).unwrap();
    fs::write(&first.path, "0ne").unwrap();
    let offline = FetchOptions { offline: true, ..options(cache.path()) };
    assert!(matches!(get(offline.clone(), &url).unwrap_err(), FetchError::Offline { .. }));
    let second = get(options(cache.path()), &url).unwrap();
    assert_eq!((content(&second), server.requests().len()), ("one".to_owned(), 2));
    let third = get(offline, &url).unwrap();
    assert!(matches!(third.freshness, Freshness::Offline));

    // A record that names a file elsewhere is no record.
    let record =
        files(cache.path()).into_iter().find(|path| path.ends_with("record.json")).unwrap();
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("\"t\"", "\"../t\"")).unwrap();
    assert!(matches!(get(options(cache.path()), &url).unwrap().freshness, Freshness::New));
    fs::write(&record, "{").unwrap();
    assert!(matches!(get(options(cache.path()), &url).unwrap().freshness, Freshness::New));
}

#[test]
fn of_several_urls_the_newest_that_is_there_counts() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, request| match &*request.path {
        "/2" => match request.header("if-none-match") {
            Some(_) => whole(304, &[], ""),
            None => whole(200, &[("ETag", "\"2\"")], "two"),
        },
        _ => whole(404, &[], ""),
    });
    let urls: Vec<Url> =
        ["/4", "/3", "/2", "/1"].map(|path| Url::parse(&server.url(path)).unwrap()).to_vec();
    let fetcher = Fetcher::new(options(cache.path()));
    let first = fetcher.get(&named("mine"), &urls, &mut Watched::default()).unwrap();
    assert_eq!((content(&first), first.file.url), ("two".to_owned(), urls[2].shown()));
    let second = fetcher.get(&named("mine"), &urls, &mut Watched::default()).unwrap();
    assert!(matches!(second.freshness, Freshness::Unchanged));
    assert_eq!(server.requests().len(), 6);
    assert_eq!(fetcher.cached(&named("mine"), &urls[0]).unwrap().sha256, first.file.sha256);
    let none = fetcher.get(&named("other"), &urls[..2], &mut Watched::default()).unwrap_err();
    assert!(matches!(none, FetchError::NotFound { url } if url.ends_with("/4")));
}

#[test]
fn a_file_of_a_new_name_leaves_the_one_before_it() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::of("same");
    let fetcher = Fetcher::new(options(cache.path()));
    let mut paths = Vec::new();
    for day in ["1.csv", "2.csv", "3.csv"] {
        let url = Url::parse(&server.url(&format!("/{day}"))).unwrap();
        let fetched = fetcher.get(&named("daily"), &[url], &mut Watched::default()).unwrap();
        assert!(matches!(fetched.freshness, Freshness::New));
        assert!(fetched.path.ends_with(day));
        paths.push(fetched.path);
    }
    assert_eq!(paths.iter().map(|path| path.exists()).collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn a_source_of_another_definition_is_another_file() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, request| whole(200, &[], &request.path));
    let hour = FetchOptions { max_age: Duration::from_secs(3600), ..options(cache.path()) };
    let fetcher = Fetcher::new(hour);
    for (path, requests) in [("/one", 1), ("/two", 2), ("/one", 2)] {
        let source = SourceFile { definition: path.to_owned(), ..named("mine") };
        let url = Url::parse(&server.url(path)).unwrap();
        let fetched = fetcher.get(&source, &[url], &mut Watched::default()).unwrap();
        assert_eq!((&*content(&fetched), server.requests().len()), (path, requests));
    }
}

#[test]
fn a_server_that_failed_is_not_asked_again_at_once() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|number, _| match number {
        0 | 2 => whole(200, &[], "good"),
        _ => whole(500, &[], ""),
    });
    let url = server.url("/t.txt");
    get(options(cache.path()), &url).unwrap();
    // Whoever always asks is not kept from it.
    let failed = |fetched: &Fetched| match &fetched.freshness {
        Freshness::Kept(error) => matches!(error, FetchError::Failed { .. }),
        other => panic!("{other:?}"),
    };
    assert!(!failed(&get(options(cache.path()), &url).unwrap()));
    let record = files(cache.path()).into_iter().find(|path| path.ends_with("record.json"));
    let record = record.unwrap();
    let text = fs::read_to_string(&record).unwrap();
    let checked = text.lines().find(|line| line.contains("checked")).unwrap();
    fs::write(&record, text.replace(checked, "\"checked\": 0")).unwrap();
    let hour = FetchOptions { max_age: Duration::from_secs(3600), ..options(cache.path()) };
    assert!(failed(&get(hour.clone(), &url).unwrap()));
    assert_eq!(server.requests().len(), 2);
    // What is found later ends it.
    assert!(matches!(get(options(cache.path()), &url).unwrap().freshness, Freshness::Unchanged));
    assert!(matches!(get(hour, &url).unwrap().freshness, Freshness::Recent));
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn two_at_once_ask_once() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::start(|_, _| {
        vec![
            head(200, &[("Content-Length", "3")]),
            Step::Wait(Duration::from_millis(300)),
            Step::Send(b"one".to_vec()),
        ]
    });
    let url = server.url("/t");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let hour = FetchOptions { max_age: Duration::from_secs(3600), ..options(cache.path()) };
            scope.spawn(|| assert_eq!(content(&get(hour, &url).unwrap()), "one"));
        }
    });
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn secrets_of_a_url_are_sent_and_written_nowhere() {
    let cache = tempfile::tempdir().unwrap();
    let server = Server::of("one");
    let host = server.address.strip_prefix("http://").unwrap();
    let url = format!("http://me:verysecret@{host}/t?token=verysecret");
    get(options(cache.path()), &url).unwrap();
    let request = &server.requests()[0];
    assert!(request.path.ends_with("token=verysecret"));
    assert_eq!(request.header("authorization"), Some("Basic bWU6dmVyeXNlY3JldA=="));
    for path in files(cache.path()) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains("verysecret") && !path.to_string_lossy().contains("verysecret"));
    }
}
