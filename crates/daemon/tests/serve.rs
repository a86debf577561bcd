//! A server: it answers, reloads, keeps its table over a restart, and stops.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use fibula_daemon::config::ServeConfig;
use fibula_daemon::{DaemonError, Notice, Serve, ServeOptions};
use fibula_rib::{Preference, Rib};
use fibula_server::client::{Client, ClientOptions};

use crate::until;

/// An announcement of this prefix.
pub(crate) fn announced(prefix: &str) -> String {
    format!(
        "{{\"timestamp\": 1717245600.25, \"peer\": \"192.0.2.1\", \"peer_asn\": \"64500\", \"host\": \"rrc00.ripe.net\", \"origin\": \"IGP\", \"type\": \"UPDATE\", \
         \"path\": [64500, 3333], \"announcements\": [{{\"next_hop\": \"192.0.2.1\", \"prefixes\": [\"{prefix}\"]}}]}}\n"
    )
}

/// A server that reads this file of RIS lines, with the rest of its configuration.
fn config(lines: &Path, more: &str) -> ServeConfig {
    let text = format!(
        "http = {{ listen = '127.0.0.1:0' }}\n{more}\n[[ris]]\npath = '{}'\nhold = '1d'\n",
        lines.display()
    );
    ServeConfig::parse(&text, "test.toml").unwrap()
}

/// The prefix that the server has for this address.
fn matched(serve: &Serve, address: &str) -> Option<String> {
    let url = format!("http://{}", serve.addresses()[0]);
    let mut client = Client::new(ClientOptions::new(url)).unwrap();
    let lookup = client.lookup(address.parse().unwrap(), Some("ris")).ok()?;
    lookup.tables[0].found.as_ref().map(|route| route.prefix.to_string())
}

#[test]
fn it_answers_from_the_text_of_a_source_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines");
    fs::write(&lines, announced("193.0.0.0/21") + &announced("193.0.6.0/24")).unwrap();
    let serve = Serve::start(ServeOptions::new(config(&lines, ""))).unwrap();
    let found = until("the longest route", || {
        matched(&serve, "193.0.6.139").filter(|prefix| prefix == "193.0.6.0/24")
    });
    assert_eq!(found, "193.0.6.0/24");
    assert_eq!(matched(&serve, "193.0.0.1").as_deref(), Some("193.0.0.0/21"));
    assert_eq!(matched(&serve, "8.8.8.8"), None);
    let address = serve.addresses()[0];
    assert_eq!(serve.stop().unwrap().checkpoints, 0);
    // The port is free again.
    TcpListener::bind(address).unwrap();
}

#[test]
fn a_checkpoint_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let (lines, file) = (folder.path().join("lines"), folder.path().join("rib.fib"));
    fs::write(&lines, announced("193.0.0.0/21")).unwrap();
    let checkpoint = format!("checkpoint = {{ file = '{}' }}", file.display());
    let serve = Serve::start(ServeOptions::new(config(&lines, &checkpoint))).unwrap();
    until("a route", || matched(&serve, "193.0.0.1"));
    assert_eq!(serve.stop().unwrap().checkpoints, 1);
    fs::write(&lines, "").unwrap();
    let serve = Serve::start(ServeOptions::new(config(&lines, &checkpoint))).unwrap();
    assert_eq!(matched(&serve, "193.0.0.1").as_deref(), Some("193.0.0.0/21"));
    drop(serve);
    fs::write(&file, "no checkpoint").unwrap();
    let error = Serve::start(ServeOptions::new(config(&lines, &checkpoint))).unwrap_err();
    assert!(matches!(error, DaemonError::Checkpoint(_)), "{error:?}");
    assert!(error.hint().unwrap().contains("on-damage"));

    // Each damaged file is kept beside, and the table begins empty.
    let path = file.display();
    let aside = format!("checkpoint = {{ file = '{path}', on-damage = 'set-aside' }}");
    for kept in ["rib.fib.damaged", "rib.fib.damaged-1"] {
        let serve = Serve::start(ServeOptions::new(config(&lines, &aside))).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join(kept)).unwrap(), "no checkpoint");
        assert_eq!(serve.stop().unwrap().checkpoints, 1);
        assert!(Rib::open(&file, Preference::default()).is_ok());
        fs::remove_file(&file).unwrap();
        fs::write(&file, "no checkpoint").unwrap();
    }
    assert!(error.hint().unwrap().contains("move the file away"));
}

/// Sources come and go; keys that need a restart are named; an error changes nothing.
#[test]
fn a_configuration_is_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines");
    fs::write(&lines, announced("193.0.0.0/21")).unwrap();
    let serve = Serve::start(ServeOptions::new(config(&lines, ""))).unwrap();
    until("a route", || matched(&serve, "193.0.0.1"));
    let has = |name: &str| serve.board().all().iter().any(|source| source.name == name);
    let more = config(&lines, "limits = { routes = 7 }\n[[fpm]]\nlisten = '127.0.0.1:0'");
    assert_eq!(serve.reload(&more).unwrap().restarts, ["limits.routes"]);
    assert!(has("fpm"));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("[[bmp]]\nlisten = '{}'", taken.local_addr().unwrap());
    let error = serve.reload(&config(&lines, &taken)).unwrap_err();
    assert!(matches!(&error, DaemonError::Refused(all) if all.len() == 1), "{error:?}");
    assert!(has("fpm") && !has("bmp"));
    assert_eq!(matched(&serve, "193.0.0.1").as_deref(), Some("193.0.0.0/21"));
    serve.reload(&config(&lines, "")).unwrap();
    assert!(!has("fpm"));
    serve.stop().unwrap();
}

#[test]
fn notices_come_from_other_threads() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines");
    fs::write(&lines, announced("193.0.0.0/21")).unwrap();
    let text = Arc::new(Mutex::new("[[fpm]]\nlisten = '127.0.0.1:0'".to_owned()));
    let (again, path) = (Arc::clone(&text), lines.clone());
    let reread = move || match &**again.lock().unwrap() {
        "" => ServeConfig::parse("[[fmp]]", "test.toml"),
        more => Ok(config(&path, more)),
    };
    let serve = Serve::start(ServeOptions::new(config(&lines, "")).rereading(reread)).unwrap();
    let (handle, board) = (serve.handle(), Arc::clone(serve.board()));
    let waits = thread::spawn(move || serve.wait().map(|end| end.checkpoints));
    handle.notify(Notice::Reload);
    let names = || board.all().into_iter().map(|source| source.name).collect::<Vec<_>>();
    assert_eq!(names(), ["fpm", "ris"]);
    text.lock().unwrap().clear();
    handle.notify(Notice::Reload);
    assert_eq!(names(), ["fpm", "ris"]);
    handle.notify(Notice::Stop);
    assert_eq!(waits.join().unwrap().unwrap(), 0);
    // Nobody is there any more.
    handle.notify(Notice::Stop);
    handle.notify(Notice::Reload);
}

#[test]
fn what_cannot_start_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines");
    fs::write(&lines, "").unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let fpm = config(&lines, &format!("[[fpm]]\nlisten = '{address}'"));
    let error = Serve::start(ServeOptions::new(fpm)).unwrap_err();
    assert!(matches!(error, DaemonError::Source(_)), "{error:?}");
    let http = format!("http = {{ listen = '{address}' }}\n[[ris]]\npath = '{}'", lines.display());
    let http = ServeConfig::parse(&http, "test.toml").unwrap();
    let error = Serve::start(ServeOptions::new(http)).unwrap_err();
    assert!(matches!(error, DaemonError::Server(_)), "{error:?}");
    let token = "http = { token-file = '/no/such/file' }\n[[fpm]]\nlisten = '127.0.0.1:0'";
    let token = ServeConfig::parse(token, "test.toml").unwrap();
    let error = Serve::check(&token).unwrap_err();
    assert!(error.to_string().starts_with("token-file /no/such/file: "), "{error}");
    // Files without an end are not read to it.
    let token = "http = { token-file = '/dev/zero' }\n[[fpm]]\nlisten = '127.0.0.1:0'";
    let error = Serve::check(&ServeConfig::parse(token, "test.toml").unwrap()).unwrap_err();
    assert!(
        error.to_string().starts_with("token-file /dev/zero: it has more than 4096"),
        "{error}"
    );
    let error = ServeConfig::read("/dev/zero".as_ref()).unwrap_err();
    assert!(error.to_string().contains("more than 16777216 bytes"), "{error}");
}
