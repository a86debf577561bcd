//! Captures as ports: packets are received from a file and sent to another.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fibula_packet::capture::{Container, Step, Time, header, record};

use crate::port::{Port, Queue, Receive, Transmit};
use crate::{Packet, Pool};

/// LINKTYPE_ETHERNET.
const ETHERNET: u16 = 1;

/// Bytes that are read at once.
const READ: usize = 256 << 10;

/// How long written packets may stay in memory.
const SYNC: Duration = Duration::from_millis(100);

/// When packets of a file come in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// As soon as they are asked for.
    #[default]
    Full,
    /// As far apart as their times are. The first one comes at once, and those without a time with the one before.
    Times,
}

/// The options of a capture port.
#[derive(Clone, Debug, Default)]
pub struct PcapOptions {
    /// The router's MAC address there.
    pub mac: [u8; 6],
    /// The longest IP packet that it sends, in bytes.
    pub mtu: u32,
    /// The capture to read, pcap or pcapng; without a file the port receives nothing and ends at once.
    pub input: Option<PathBuf>,
    /// When it comes in.
    pub pace: Pace,
    /// The pcap file for sent packets, with the times at which they were sent. Without a file they are dropped.
    pub output: Option<PathBuf>,
}

/// A port of one queue over files.
///
/// # Errors
/// If a file cannot be opened, or the input is no capture. Packets of another link type than Ethernet, and damage, are
/// errors of [`Receive::receive`], which name file, record (from 1) and byte.
pub fn open<'p>(name: &str, options: &PcapOptions) -> io::Result<Port<'p>> {
    let input = options.input.as_deref().map(|path| Input::open(path, options.pace));
    let output = options.output.as_deref().map(Output::create);
    let queue = Queue {
        receive: Box::new(input.transpose()?.unwrap_or_default()),
        transmit: Box::new(ToFile(output.transpose()?)),
    };
    Ok(Port {
        name: format!("pcap:{name}"),
        interface: 0,
        mac: options.mac,
        mtu: options.mtu,
        is_shared: false,
        queues: vec![queue],
    })
}

/// The receiving half. The default has ended.
#[derive(Default)]
struct Input {
    path: PathBuf,
    /// The file while there is more of it.
    file: Option<File>,
    container: Option<Container>,
    /// The bytes that were read and not used: `data[used..]`.
    data: Vec<u8>,
    used: usize,
    /// Bytes of the file before `data`.
    before: u64,
    /// Packets, good and bad, so far.
    records: u64,
    /// Packets that no slot has room for.
    lost: u64,
    pace: Pace,
    /// The time of the first packet that has one, and when it came in.
    clock: Option<(Duration, Instant)>,
    /// When the next packet is due, if that is known.
    due: Option<Instant>,
}

/// The result of reading the next packet of a file.
enum Next {
    Taken,
    /// It is not time yet.
    Early,
    /// There is none.
    Over,
}

impl Input {
    fn open(path: &Path, pace: Pace) -> io::Result<Self> {
        let file = File::open(path).map_err(|error| of_file(path, error))?;
        let path = path.to_owned();
        let mut input = Self { path, file: Some(file), pace, ..Self::default() };
        while input.data.len() < 24 && input.read()? {}
        let container = Container::recognise(&input.data)
            .ok_or_else(|| input.error("this is not a capture; pcap and pcapng can be read"))?;
        input.container = Some(container);
        Ok(input)
    }

    /// Reads on; false at the end of the file.
    fn read(&mut self) -> io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(false) };
        self.data.drain(..self.used);
        self.before += self.used as u64;
        self.used = 0;
        let have = self.data.len();
        // Packets longer than a reading are read in few ones.
        self.data.resize(have + READ.max(have), 0);
        let result = loop {
            match file.read(&mut self.data[have..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.data.truncate(have + *result.as_ref().unwrap_or(&0));
        let count = result.map_err(|error| of_file(&self.path, error))?;
        if count == 0 {
            self.file = None;
        }
        Ok(count > 0)
    }

    /// Reads the next packet into one with a slot.
    fn next(&mut self, to: &mut Packet<'_>) -> io::Result<Next> {
        loop {
            let Some(container) = &mut self.container else { return Ok(Next::Over) };
            let first = self.before + self.used as u64 == 0;
            match container.next(&self.data[self.used..], first) {
                Step::Packet(len, packet) => {
                    if packet.link != u32::from(ETHERNET) {
                        let what = format!(
                            "its link type is {}, and only Ethernet (1) can be routed",
                            packet.link
                        );
                        self.records += 1;
                        let error = self.error(&what);
                        // A file has one link type, or is not for a router.
                        self.container = None;
                        return Err(error);
                    }
                    if self.pace == Pace::Times
                        && let Some(time) = packet.time
                    {
                        let due = due(&mut self.clock, time);
                        if due > Instant::now() {
                            self.due = Some(due);
                            return Ok(Next::Early);
                        }
                    }
                    let fits = to.fill(packet.data);
                    (self.used, self.due) = (self.used + len, None);
                    self.records += 1;
                    if fits {
                        return Ok(Next::Taken);
                    }
                    self.lost += 1;
                }
                Step::Skip(len) => self.used += len,
                Step::Damaged(len, what) => {
                    self.records += 1;
                    let error = self.error(what);
                    self.used += len;
                    return Err(error);
                }
                Step::Lost(what) => {
                    self.records += 1;
                    let error = self.error(&format!("{what}; what follows cannot be read"));
                    self.container = None;
                    return Err(error);
                }
                Step::Incomplete => {
                    if self.read()? {
                        continue;
                    }
                    self.container = None;
                    if self.used == self.data.len() {
                        return Ok(Next::Over);
                    }
                    self.records += 1;
                    return Err(self.error("the file ends within a record"));
                }
            }
        }
    }

    fn error(&self, what: &str) -> io::Error {
        let at = self.before + self.used as u64;
        let (path, record) = (self.path.display(), self.records);
        let text = match record {
            0 => format!("{path}: {what}"),
            _ => format!("{path}: record {record} at byte {at}: {what}"),
        };
        io::Error::new(io::ErrorKind::InvalidData, text)
    }
}

/// When a packet of this time is due. The first one sets the clock.
fn due(clock: &mut Option<(Duration, Instant)>, time: Time) -> Instant {
    // Times before 1970 are damage of the clock alone.
    let time = Duration::new(time.seconds.max(0) as u64, time.nanos);
    let (first, started) = *clock.get_or_insert_with(|| (time, Instant::now()));
    let due = started.checked_add(time.saturating_sub(first));
    // A time that the system's clock never reaches is damage, too.
    due.unwrap_or(started)
}

fn of_file(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl<'p> Receive<'p> for Input {
    fn receive(
        &mut self,
        pool: &'p Pool,
        burst: &mut Vec<Packet<'p>>,
        most: usize,
    ) -> io::Result<usize> {
        let from = burst.len();
        while burst.len() - from < most {
            let Some(mut packet) = pool.take() else { break };
            let next = self.next(&mut packet);
            if let Ok(Next::Taken) = next {
                burst.push(packet);
                continue;
            }
            pool.give([packet]);
            next?;
            break;
        }
        Ok(burst.len() - from)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        let until = self.due.map(|due| due.saturating_duration_since(Instant::now()));
        match (until, &self.container) {
            (Some(until), _) => thread::sleep(until.min(longest)),
            (None, None) => thread::sleep(longest),
            (None, Some(_)) => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.container.is_none()
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

/// Where packets are written.
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
    /// Whether the file's old content is gone.
    begun: bool,
    synced: Instant,
}

struct ToFile(Option<Output>);

impl Output {
    /// Opens the file, but keeps its old content until the port runs, because the start of the router may still fail.
    fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = BufWriter::with_capacity(READ, file.map_err(|error| of_file(path, error))?);
        Ok(Self { path: path.to_owned(), file, begun: false, synced: Instant::now() })
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.begun {
            let file = self.file.get_ref();
            if file.metadata()?.is_file() {
                file.set_len(0)?;
            }
            self.file.write_all(&header(ETHERNET))?;
            self.begun = true;
        }
        Ok(())
    }

    fn write(&mut self, burst: &[Packet<'_>]) -> io::Result<()> {
        self.begin()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for packet in burst {
            let bytes = packet.bytes();
            // Seconds have 32 bits in the format, up to 2106.
            let record = record(now.as_secs() as u32, now.subsec_micros(), bytes.len() as u32);
            self.file.write_all(&record)?;
            self.file.write_all(bytes)?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.synced = Instant::now();
        self.begin().and_then(|()| self.file.flush()).map_err(|error| of_file(&self.path, error))
    }
}

impl<'p> Transmit<'p> for ToFile {
    fn transmit(&mut self, pool: &'p Pool, burst: &mut Vec<Packet<'p>>) -> io::Result<usize> {
        let Self(output) = self;
        if let Some(output) = output
            && let Err(error) = output.write(burst)
        {
            return Err(of_file(&output.path, error));
        }
        let count = burst.len();
        pool.give(burst.drain(..));
        Ok(count)
    }

    fn flush(&mut self, _: &'p Pool) -> io::Result<()> {
        match &mut self.0 {
            Some(output) if output.synced.elapsed() > SYNC => output.flush(),
            _ => Ok(()),
        }
    }

    fn close(&mut self, _: &'p Pool) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Output::flush)
    }
}
