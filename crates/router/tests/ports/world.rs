//! A network namespace with a pair of interfaces, and ports at both ends.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use fibula_router::port::Queue;
use fibula_router::port::afpacket::{self, AfPacketOptions};
use fibula_router::port::afxdp::{self, AfXdp, AfXdpOptions, Copying, Mode};
use fibula_router::port::tap::{self, TapOptions};
use fibula_router::{Packet, Pool};

/// How long something that must happen may take.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Runs an ignored test of this binary in a network namespace that nothing else is in.
#[track_caller]
pub fn inside(test: &str) {
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--"]).arg(env::current_exe().unwrap());
    unshare.args(["--exact", test, "--ignored", "--nocapture"]);
    let Ok(run) = unshare.output() else {
        println!("SKIPPED: there is no unshare");
        return;
    };
    let said = String::from_utf8_lossy(&run.stdout);
    let errors = String::from_utf8_lossy(&run.stderr);
    if errors.contains("Operation not permitted") && !said.contains("running 1 test") {
        println!("SKIPPED: this user may not make a network namespace");
        return;
    }
    assert!(run.status.success() && said.contains("running 1 test"), "{said}\n{errors}");
    // The steps that a test could not do on this machine.
    said.lines().filter(|line| line.contains("SKIPPED")).for_each(|line| println!("{line}"));
}

#[track_caller]
pub fn run(command: &str) {
    let mut words = command.split(' ');
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A pair of interfaces that send no packets of their own: `dA` and `dB`.
pub fn pair(queues: u32) {
    run("sysctl -qw net.ipv6.conf.default.disable_ipv6=1");
    let count = format!("numtxqueues {queues} numrxqueues {queues}");
    run(&format!("ip link add dA {count} type veth peer name dB {count}"));
    run("ip link set dA up");
    run("ip link set dB up");
}

/// A kind of port.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PortKind {
    Packet,
    Native,
    Generic,
    Tap,
}

/// An opened port of the pool.
pub struct Opened<'p> {
    pub pool: &'p Pool,
    pub mac: [u8; 6],
    pub queues: Vec<Queue<'p>>,
    pub xdp: Option<AfXdp>,
}

pub fn pool() -> Pool {
    Pool::new(16_384, 2048)
}

pub fn open<'p>(kind: PortKind, name: &str, pool: &'p Pool) -> Opened<'p> {
    open_with(kind, name, pool, 1, 256)
}

pub fn open_with<'p>(
    kind: PortKind,
    name: &str,
    pool: &'p Pool,
    queues: u16,
    ring: u32,
) -> Opened<'p> {
    let packet = AfPacketOptions { queues, ..Default::default() };
    let tap = TapOptions { queues, ..Default::default() };
    let xdp = |mode| {
        let ring = Some(ring);
        let options = AfXdpOptions { mode, copying: Copying::Copy, ring, ..Default::default() };
        let (port, xdp) = afxdp::open(name, pool, &options).unwrap();
        assert_eq!((xdp.mode(), xdp.is_zero_copy()), (mode, false));
        (port, Some(xdp))
    };
    let (port, xdp) = match kind {
        PortKind::Packet => (afpacket::open(name, pool, &packet).unwrap(), None),
        PortKind::Tap => (tap::open(name, pool, &tap).unwrap(), None),
        PortKind::Native => xdp(Mode::Native),
        PortKind::Generic => xdp(Mode::Generic),
    };
    assert!(port.interface > 0 && port.mtu == 1500 && port.name.ends_with(name));
    assert_eq!(port.is_shared, kind == PortKind::Packet);
    Opened { pool, mac: port.mac, queues: port.queues, xdp }
}

impl<'p> Opened<'p> {
    pub fn packet(&self, bytes: &[u8]) -> Packet<'p> {
        let mut packet = self.pool.take().expect("enough slots");
        assert!(packet.fill(bytes));
        packet
    }

    /// Sends all of them by a queue.
    pub fn send(&mut self, queue: usize, mut burst: Vec<Packet<'p>>) {
        let began = Instant::now();
        let transmit = &mut self.queues[queue].transmit;
        while !burst.is_empty() {
            assert!(began.elapsed() < LIMIT, "{} packets cannot be sent", burst.len());
            transmit.transmit(self.pool, &mut burst).unwrap();
            transmit.flush(self.pool).unwrap();
        }
    }

    /// Sends as many of them as there is room for, somewhere on the way.
    pub fn send_what_fits(&mut self, mut burst: Vec<Packet<'p>>) {
        let transmit = &mut self.queues[0].transmit;
        while transmit.transmit(self.pool, &mut burst).unwrap() > 0 {
            transmit.flush(self.pool).unwrap();
        }
        self.pool.give(burst);
    }

    /// Receives so many packets, by whatever queue; fewer if no more come within a time.
    pub fn receive(&mut self, count: usize) -> Vec<Vec<u8>> {
        self.receive_within(count, LIMIT)
    }

    pub fn receive_within(&mut self, count: usize, longest: Duration) -> Vec<Vec<u8>> {
        let began = Instant::now();
        let mut found = Vec::new();
        while found.len() < count && began.elapsed() < longest {
            let mut burst = Vec::new();
            for queue in &mut self.queues {
                let most = (count - found.len() - burst.len()).min(64);
                let before = burst.len();
                let came = queue.receive.receive(self.pool, &mut burst, most).unwrap();
                assert!(came == burst.len() - before && came <= most);
            }
            if burst.is_empty() {
                self.queues[0].receive.wait(Duration::from_millis(1)).unwrap();
            }
            found.extend(burst.iter().map(|packet| packet.bytes().to_vec()));
            self.pool.give(burst);
        }
        found
    }
}

/// A UDP packet in a frame of that length; its payload and its ports distinguish frames.
pub fn frame(to: [u8; 6], len: usize, number: u32, tag: Option<u16>) -> Vec<u8> {
    let mut frame = to.to_vec();
    frame.extend([2, 0, 0, 0, 0, 99]);
    if let Some(tag) = tag {
        frame.extend([0x81, 0]);
        frame.extend(tag.to_be_bytes());
    }
    let ip = frame.len() + 2;
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(((len - ip) as u16).to_be_bytes());
    frame.extend([
        0,
        0,
        0,
        0,
        64,
        17,
        0,
        0,
        198,
        18,
        0,
        1,
        198,
        18,
        (number >> 8) as u8,
        number as u8,
    ]);
    let checksum = fibula_packet::checksum::compute(&frame[ip..]);
    frame[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend((number as u16).to_be_bytes());
    frame.extend([0, 9]);
    frame.extend(((len - ip - 20) as u16).to_be_bytes());
    frame.extend([0, 0]); // no checksum
    frame.extend(number.to_be_bytes());
    frame.extend((frame.len()..len).map(|at| (at as u32 ^ number) as u8));
    frame.truncate(len);
    frame
}
