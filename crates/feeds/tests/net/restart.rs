//! The process ends and starts again, from a checkpoint, with several sources.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fibula_feeds::net::{Endpoint, FeedSource, Folder, Hub, speaking};
use fibula_feeds::{Board, Checkpoints, Clock, LiveFeed, Positions, SessionOptions, SystemClock};
use fibula_fib::FibOptions;
use fibula_ingest::Decoder;
use fibula_rib::{Live, LiveOptions, Peer, Preference, Restored, Rib};

use super::{LIMIT, connect, listen, ms, options, send, source, table};
use crate::common::{Lines, Paths, paths};

/// A process with a table from its checkpoint, until the test kills it.
struct Process<'a> {
    live: &'a Live,
    board: &'a Board,
    reports: &'a Mutex<Vec<String>>,
}

impl Process<'_> {
    fn wait(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            assert!(began.elapsed() < LIMIT, "{what}: {:?} {:#?}", self.paths(), self.board.all());
            thread::sleep(ms(1));
        }
    }

    fn paths(&self) -> Paths {
        self.live.with_rib(paths)
    }
}

/// Runs a process with a checkpoint every few milliseconds. It ends as if killed: the last checkpoint stays unchanged.
fn process(checkpoint: &Path, sources: Vec<FeedSource>, test: impl FnOnce(&Process<'_>)) {
    let restored = match checkpoint.exists() {
        true => Rib::open(checkpoint, Preference::default()).unwrap(),
        false => Restored { rib: Rib::default(), position: String::new(), feed: None },
    };
    let peers = speaking(&restored.rib);
    let options = LiveOptions::default();
    let live = Live::start(restored.rib, &[0], FibOptions::default(), options, |_| {}).unwrap();
    let (board, reports) = (Arc::new(Board::default()), Arc::new(Mutex::new(Vec::new())));
    let reports_in_hub = Arc::clone(&reports);
    let mut hub = Hub::new(Arc::clone(&board), move |report| {
        reports_in_hub.lock().unwrap().push(report.to_string());
    })
    .unwrap();
    let positions = Positions::read(&restored.position);
    for mut source in sources {
        if let Endpoint::Folder(folder) = &mut source.endpoint {
            folder.after = positions.get(&source.name).map(str::to_owned);
        }
        hub.add(source).unwrap();
    }
    let clock = SystemClock::default();
    let written = Checkpoints::new(checkpoint, ms(5), "", clock.now(), |e| panic!("{e}"));
    let mut feed = LiveFeed::with_clock(&live, clock).with_checkpoints(Some(written));
    hub.adopt(&peers, &mut feed).unwrap();
    let handle = hub.handle();
    thread::scope(|scope| {
        let thread = scope.spawn(move || hub.run(&mut feed));
        test(&Process { live: &live, board: &board, reports: &reports });
        handle.stop();
        thread.join().unwrap().unwrap();
    });
}

/// The table of a checkpoint, and the last file that it includes.
fn held(checkpoint: &Path) -> (Paths, Option<String>) {
    let Ok(restored) = Rib::open(checkpoint, Preference::default()) else {
        return Default::default();
    };
    let positions = Positions::read(&restored.position);
    (paths(&restored.rib), positions.get("mrt").map(str::to_owned))
}

fn folder(path: &Path) -> FeedSource {
    let endpoint = Endpoint::Folder(Folder {
        path: path.to_owned(),
        after: None,
        settle: Duration::ZERO,
        settings: String::new(),
        decoder: Arc::new(|| Box::new(Lines::default()) as Box<dyn Decoder>),
        peer: Peer { source: Some("mrt".into()), ..Peer::default() },
        table: String::new(),
    });
    source("mrt", endpoint)
}

#[test]
fn sources_go_on_from_a_checkpoint() {
    let directory = tempfile::tempdir().unwrap();
    let (files, checkpoint) = (directory.path().join("files"), directory.path().join("rib.fib"));
    fs::create_dir(&files).unwrap();
    fs::write(files.join("updates.1000"), "peer 0 9\n+ 0 10.0.0.0/8 9\n").unwrap();
    let sources = |hold: u64| {
        let options = SessionOptions { hold: ms(hold), ..options() };
        vec![listen("lines", "127.0.0.0/8", options), folder(&files)]
    };
    let old = directory.path().join("old.fib");
    let mut expected = table(&["10.0.0.0/8", "11.0.0.0/8"], 1);
    expected.insert((2, "10.0.0.0/8".parse().unwrap()), 2);
    expected.insert((9, "10.0.0.0/8".parse().unwrap()), 9);
    process(&checkpoint, sources(60_000), |process| {
        let address = process.board.all()[0].endpoint.parse().unwrap();
        let mut daemons = ["127.0.0.2", "127.0.0.3"].map(|from| connect(from, address));
        send(&mut daemons[0], "peer 0 1 view\n+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n");
        send(&mut daemons[1], "peer 0 2\n+ 0 10.0.0.0/8 2\n");
        // An idle loop writes the last changes.
        let expected = (expected.clone(), Some("updates.1000".to_owned()));
        process.wait("the checkpoint", |_| held(&checkpoint) == expected);
        fs::copy(&checkpoint, &old).unwrap();
        // The kill happens here, so later changes are not stored.
        send(&mut daemons[0], "+ 0 12.0.0.0/8 1\n");
        process.wait("one more", |process| process.paths().len() == 5);
    });
    // The kill: the checkpoint is the earlier one.
    fs::remove_file(&checkpoint).unwrap();
    fs::rename(&old, &checkpoint).unwrap();

    // The file changes, to show that it is not read again; another one appears.
    fs::write(files.join("updates.1000"), "peer 0 9\n+ 0 99.0.0.0/8 9\n").unwrap();
    fs::write(files.join("updates.2000"), "peer 0 9\n+ 0 11.0.0.0/8 9\n").unwrap();
    process(&checkpoint, sources(60_000), |process| {
        expected.insert((9, "11.0.0.0/8".parse().unwrap()), 9);
        process.wait("the folder", |process| process.paths() == expected);
        let of = |name: &str| process.board.all().into_iter().find(|status| status.name == name);
        assert_eq!(of("lines 127.0.0.2").unwrap().state.name(), "lost");
        let address = process.board.all()[0].endpoint.parse().unwrap();
        // The first daemon comes back with fewer routes; the second stays away.
        let mut daemon = connect("127.0.0.2", address);
        send(&mut daemon, "peer 7 1 view\n+ 7 10.0.0.0/8 1\n");
        expected.remove(&(1, "11.0.0.0/8".parse().unwrap()));
        process.wait("the sweep", |process| process.paths() == expected);
        let expected = (expected, Some("updates.2000".to_owned()));
        process.wait("the checkpoint", |_| held(&checkpoint) == expected);
    });

    // Another start: no daemon comes back, and the folder is no longer configured.
    process(&checkpoint, sources(100).into_iter().take(1).collect(), |process| {
        process.wait("the hold time", |process| process.paths().is_empty());
        let reports = process.reports.lock().unwrap().clone();
        let orphans = "mrt: the checkpoint has 1 peers of this source, which is not configured: their \
                       routes are gone";
        assert!(reports.iter().any(|report| report == orphans), "{reports:#?}");
        process.wait("the checkpoint", |_| held(&checkpoint) == Default::default());
    });
}
