//! Connections that are opened here: to an address, named pipes, files, devices.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fibula_feeds::SourceState;
use fibula_feeds::net::{Endpoint, Got, Retry, StreamDevice};

use super::{Net, options, send, source, speaker, table};

const QUICKLY: Retry =
    Retry { first: Duration::from_millis(1), longest: Duration::from_millis(20) };

#[test]
fn a_connection_is_opened_until_somebody_answers() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let endpoint = Endpoint::Connect { address, speaker: speaker(options()), retry: QUICKLY };
    let net = Net::start(vec![source("out", endpoint)]);
    let refused = format!("out: cannot connect to {address}: ");
    net.wait("a few attempts", |net| {
        net.reports().iter().filter(|report| report.starts_with(&refused)).count() > 3
    });
    assert!(net.has_report("the next attempt is made in 20ms"));
    let listener = TcpListener::bind(address).unwrap();
    let (mut daemon, _) = listener.accept().unwrap();
    send(&mut daemon, "peer 0 1\n+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n");
    net.wait("the dump", |net| net.paths().len() == 2);
    drop(daemon);
    let (mut daemon, _) = listener.accept().unwrap();
    send(&mut daemon, "peer 0 1\n+ 0 11.0.0.0/8 2\n");
    net.wait("the sweep", |net| net.paths() == table(&["11.0.0.0/8"], 2));
    net.wait_connections("out", 2);
}

fn path(path: &Path) -> fibula_feeds::net::FeedSource {
    source("lines", Endpoint::Path { path: path.to_owned(), speaker: speaker(options()) })
}

#[test]
fn writers_of_a_named_pipe_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let net = Net::start(vec![path(&fifo)]);
    for round in 1..4 {
        // The pipe opens for writing only when the hub reads it.
        let mut writer = OpenOptions::new().write(true).open(&fifo).unwrap();
        let routes = format!("peer 0 1\n+ 0 10.{round}.0.0/16 {round}\n+ 0 11.0.0.0/8 {round}\n");
        writer.write_all(routes.as_bytes()).unwrap();
        let expected = [&*format!("10.{round}.0.0/16"), "11.0.0.0/8"];
        net.wait("a round", |net| net.paths() == table(&expected, round));
        net.wait("its end", |net| net.state("lines") == Some(SourceState::Up));
        net.wait_connections("lines", round);
        drop(writer);
        net.wait("the loss", |net| net.state("lines") == Some(SourceState::Lost));
    }
    assert!(net.has_report("its writer has closed it"));
    assert!(!net.has_report("the stream ended"));
}

/// Waits for the end of the stream, and for the board, which is written after the report.
fn ended(net: &Net) {
    net.wait("the end", |net| net.has_report("lines: the stream ended"));
    net.wait("the board", |net| {
        let status = net.status("lines").unwrap();
        let is_over = matches!(status.state, SourceState::Idle | SourceState::Lost);
        is_over && status.figures.connections == 1
    });
}

#[test]
fn a_file_is_read_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("lines");
    let mut text = "peer 0 1\n".to_owned();
    (0..20_000).for_each(|i| text += &format!("+ 0 10.{}.{}.0/24 1\n", i / 200, i % 200));
    std::fs::write(&file, text).unwrap();
    let net = Net::start(vec![path(&file)]);
    ended(&net);
    assert_eq!(net.announced("lines"), 20_000);
    assert_eq!(net.paths().len(), 20_000, "it serves for the hold time");
    drop(net);
    let net = Net::start(vec![path(directory.path())]);
    net.wait("a folder is none", |net| net.has_report("is a directory"));
}

/// Behaves like the kernel's routing socket: it sends everything at the beginning, and at times loses some messages.
struct Fragile(UnixStream);

impl AsFd for Fragile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl StreamDevice for Fragile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<Got> {
        match self.0.read(into)? {
            0 => Ok(Got::End),
            1 => Ok(Got::Lost),
            bytes => Ok(Got::Bytes(bytes)),
        }
    }
}

#[test]
fn a_device_that_loses_something_sends_everything_again() {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let opened = Arc::clone(&ends);
    let open = move || -> io::Result<Box<dyn StreamDevice>> {
        let (here, mut there) = UnixStream::pair()?;
        here.set_nonblocking(true)?;
        let mut opened = opened.lock().unwrap();
        match opened.len() {
            0 => there.write_all(b"peer 0 1\n+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n")?,
            1 => {
                opened.push(None);
                return Err(ErrorKind::PermissionDenied.into());
            }
            _ => there.write_all(b"peer 0 1\n+ 0 11.0.0.0/8 2\n")?,
        }
        opened.push(Some(there));
        Ok(Box::new(Fragile(here)))
    };
    let endpoint = Endpoint::Device {
        what: "routing socket".to_owned(),
        open: Box::new(open),
        speaker: speaker(options()),
        retry: QUICKLY,
    };
    let net = Net::start(vec![source("kernel", endpoint)]);
    net.wait("the dump", |net| net.paths().len() == 2);
    net.wait("the end of the dump", |net| net.state("kernel") == Some(SourceState::Up));
    ends.lock().unwrap()[0].as_mut().unwrap().write_all(b"x").unwrap();
    net.wait("the second dump", |net| net.paths() == table(&["11.0.0.0/8"], 2));
    assert!(net.has_report("more came than there was room for"));
    assert!(net.has_report("cannot open routing socket: permission denied"));
    net.wait_connections("kernel", 2);
}

#[test]
fn a_pipe_that_is_not_there_yet_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("late");
    let net = Net::start(vec![path(&file)]);
    net.wait("the first attempt", |net| net.has_report("the next attempt is made in 1s"));
    let trouble = |net: &Net| net.status("lines")?.trouble;
    net.wait("the trouble", |net| trouble(net).is_some_and(|why| why.starts_with("cannot open ")));
    File::create(&file).unwrap().write_all(b"peer 0 1\n+ 0 10.0.0.0/8 1\n").unwrap();
    net.wait("the route", |net| net.paths() == table(&["10.0.0.0/8"], 1));
}

/// The child process of [`standard_input_is_read_to_its_end`].
#[test]
#[ignore = "a test of its own runs it"]
fn reads_standard_input() {
    let net = Net::start(vec![path(Path::new("-"))]);
    ended(&net);
    println!("announced {}", net.announced("lines"));
}

/// From a pipe with a slow writer, a file, nothing, a socket.
#[test]
fn standard_input_is_read_to_its_end() {
    let lines = "peer 0 1\n+ 0 10.0.0.0/8 1\n+ 0 11.0.0.0/8 1\n";
    let run = |input: Stdio, announced: u64, write: &dyn Fn(&mut Child)| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "net::streams::reads_standard_input", "--nocapture"])
            .stdin(input)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        write(&mut child);
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && printed.contains(&format!("announced {announced}\n")),
            "{printed}"
        );
    };
    let slowly = |to: &mut dyn Write| {
        for part in lines.as_bytes().chunks(7) {
            to.write_all(part).unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    run(Stdio::piped(), 2, &|child| slowly(child.stdin.as_mut().unwrap()));
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    file.rewind().unwrap();
    run(file.into(), 2, &|_| {});
    run(Stdio::null(), 0, &|_| {});
    let (theirs, ours) = UnixStream::pair().unwrap();
    let ours = Mutex::new(Some(ours));
    run(OwnedFd::from(theirs).into(), 2, &|_| slowly(&mut ours.lock().unwrap().take().unwrap()));
}
