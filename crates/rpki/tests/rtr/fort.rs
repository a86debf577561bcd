//! The validator fort, which serves what it finds valid in a repository that the test signs.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::repository::Repository;
use super::*;

/// fort, which ends with the test. Its log is shown if the test fails.
struct Fort {
    program: Child,
    log: PathBuf,
}

impl Drop for Fort {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        if thread::panicking() {
            eprintln!("{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

impl Fort {
    /// Validates what is in the folder, and serves it at the port.
    fn start(folder: &Path, port: u16) -> Self {
        let log = folder.join("log");
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let mut command = Command::new("fort");
        let path = |option: &str, name: &str| format!("--{option}={}", folder.join(name).display());
        command.args([path("tal", "tals"), path("local-repository", "cache")]);
        command.args(["--mode=server", "--work-offline", "--server.address=127.0.0.1"]);
        command.arg(format!("--server.port={port}"));
        // The least that it takes.
        command.arg("--server.interval.validation=60");
        command.args(["--validation-log.enabled=true", "--validation-log.output=console"]);
        command.stdin(Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Self { program: command.spawn().unwrap(), log }
    }
}

/// A repository in a folder of the test, and the port at which fort serves it.
struct Place {
    folder: tempfile::TempDir,
    repository: Repository,
    port: u16,
}

impl Place {
    fn new(vrps: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tals")).unwrap();
        let tal = folder.path().join("tals/test.tal");
        let repository = Repository::new(folder.path().join("cache"), &tal);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let this = Self { folder, repository, port };
        this.publish(vrps);
        this
    }

    fn publish(&self, vrps: &[&str]) {
        self.repository.publish(&vrps.iter().map(|text| vrp(text)).collect::<Vec<_>>());
    }

    fn fort(&self) -> Fort {
        Fort::start(self.folder.path(), self.port)
    }

    fn options(&self) -> RtrOptions {
        let mut options = RtrOptions::of(vec![format!("127.0.0.1:{}", self.port)]);
        options.retry = Duration::from_millis(10);
        options
    }
}

fn set(vrps: &[&str]) -> Option<Vec<String>> {
    Some(vrps.iter().map(|&text| text.to_owned()).collect())
}

/// The follower is connected, and has this set.
fn follows(vrps: &LiveVrps, expected: &[&str]) -> bool {
    vrps.caches()[0].state == CacheState::Up && held(vrps) == set(expected)
}

#[test]
fn it_is_followed_when_it_starts_stops_and_starts_again() {
    if Command::new("fort").arg("--version").output().is_err() {
        return println!("SKIPPED: fort is not installed");
    }
    let place = Place::new(&[A, B]);
    let fort = place.fort();
    let told = Arc::<Mutex<Vec<String>>>::default();
    let mut options = place.options();
    let list = Arc::clone(&told);
    options.notify = Some(RtrNotify(Arc::new(move |_, event: RtrEvent<'_>| {
        list.lock().unwrap().push(event.to_string());
    })));
    // It has versions 0 and 1, and is asked in version 2 first.
    let (vrps, follower) = follow(options);
    until("the first set", || follows(&vrps, &[A, B]));
    let first = Instant::now();
    let status = &vrps.caches()[0];
    let Some((session, 1)) = status.session else { panic!("{status:?}") };
    assert_eq!((status.vrps, status.resets), (2, 1));

    drop(fort);
    until("the end", || vrps.caches()[0].state != CacheState::Up);
    assert_eq!(held(&vrps), set(&[A, B]), "what was received stays");
    let status = &vrps.caches()[0];
    assert!(status.vrps == 2 && status.expires.is_some(), "{status:?}");

    place.publish(&[B, C]);
    // The second in which it starts is the number of its session, and its first serial number is always 1.
    thread::sleep(Duration::from_secs(1).saturating_sub(first.elapsed()));
    let fort = place.fort();
    until("the next set", || follows(&vrps, &[B, C]));
    let status = &vrps.caches()[0];
    let Some((next, 1)) = status.session else { panic!("{status:?}") };
    assert_ne!(next, session);
    assert_eq!((status.vrps, status.resets), (2, 2));
    // Asked for what has changed in a session that it does not know, it has an error, corrupt data (RFC 8210, 5.1). A
    // client that asked for that session again would not get further.
    let told = told.lock().unwrap().clone();
    assert!(told.iter().any(|text| text == "lost: server reported error 0"), "{told:?}");
    assert_eq!(told.last().unwrap(), "connected, serial 1: 2 VRPs, 0 ASPAs");

    drop(fort);
    until("the end", || vrps.caches()[0].state != CacheState::Up);
    assert_eq!(held(&vrps), set(&[B, C]));
    drop(follower);
}

#[test]
#[ignore = "a minute, in which fort sleeps (./dev test --live)"]
fn it_is_followed_serial_by_serial() {
    let place = Place::new(&[A, B]);
    let _fort = place.fort();
    let (vrps, follower) = follow(place.options());
    until("the first set", || follows(&vrps, &[A, B]));
    let before = vrps.caches()[0].clone();
    let Some((session, 1)) = before.session else { panic!("{before:?}") };
    place.publish(&[B, C]);
    let next = Some((session, 2));
    within(Duration::from_secs(120), "the next serial", || vrps.caches()[0].session == next);
    assert_eq!(held(&vrps), set(&[B, C]));
    let after = &vrps.caches()[0];
    assert_eq!(
        (after.vrps, after.resets, after.updates),
        (2, 1, 2),
        "only what has changed is sent"
    );
    assert_eq!(after.connections, before.connections);
    drop(follower);
}
