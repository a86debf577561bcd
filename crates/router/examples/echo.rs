//! What ports can do without a router between them: packets from one to the other, with their MAC addresses swapped.
//!
//! ```text
//! echo forward KIND:NAME KIND:NAME SECONDS     from the first port to the second
//! echo send KIND:NAME TO FROM SECONDS          60-byte UDP packets between these MAC addresses
//! echo generate NAME TO FROM SECONDS          the same, made in the kernel; the other end must run an XDP program
//! echo sink KIND:NAME SECONDS                  takes what comes as cheaply as the kind can
//! ```
//!
//! Kinds are afxdp, afxdp-generic, afpacket and tap. Each says millions of packets a second.

#[cfg(target_os = "linux")]
fn main() {
    if let Err(error) = ports::run() {
        eprintln!("echo: {error}");
        std::process::exit(1);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this example needs Linux");
}

#[cfg(target_os = "linux")]
mod ports {
    use std::error::Error;
    use std::thread;
    use std::time::{Duration, Instant};

    use fibula_packet::checksum;
    use fibula_router::Pool;
    use fibula_router::port::afpacket::{self, AfPacketOptions};
    use fibula_router::port::afxdp::{self, AfXdpOptions, Generator, Mode};
    use fibula_router::port::tap::{self, TapOptions};
    use fibula_router::port::{Port, Queue};

    const BURST: usize = 64;
    type Outcome = Result<(), Box<dyn Error>>;

    pub fn run() -> Outcome {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words[..] {
            ["forward", from, to, seconds] => forward(from, to, seconds.parse()?),
            ["send", port, to, from, seconds] => send(port, mac(to)?, mac(from)?, seconds.parse()?),
            ["generate", name, to, from, seconds] => {
                generate(name, mac(to)?, mac(from)?, seconds.parse()?)
            }
            ["sink", port, seconds] => sink(port, seconds.parse()?),
            _ => {
                Err("forward PORT PORT SECONDS | generate NAME MAC MAC SECONDS | send PORT MAC MAC SECONDS | sink PORT SECONDS"
                    .into())
            }
        }
    }

    fn open<'p>(name: &str, pool: &'p Pool) -> Result<Port<'p>, Box<dyn Error>> {
        let xdp = |device: &str, mode| {
            let options = AfXdpOptions { mode, ..AfXdpOptions::default() };
            afxdp::open(device, pool, &options).map(|(port, _)| port)
        };
        Ok(match name.split_once(':').ok_or("a port is KIND:NAME")? {
            ("afxdp", device) => xdp(device, Mode::Native)?,
            ("afxdp-generic", device) => xdp(device, Mode::Generic)?,
            ("afpacket", device) => afpacket::open(device, pool, &AfPacketOptions::default())?,
            ("tap", device) => tap::open(device, pool, &TapOptions::default())?,
            _ => return Err(format!("{name}: no such kind of port").into()),
        })
    }

    fn only(port: Port<'_>) -> Queue<'_> {
        port.queues.into_iter().next().expect("a port has a queue")
    }

    /// Calls it until so much time has passed; says how long that took.
    fn repeat(seconds: f64, mut step: impl FnMut() -> Outcome) -> Result<f64, Box<dyn Error>> {
        let began = Instant::now();
        while began.elapsed().as_secs_f64() < seconds {
            for _ in 0..64 {
                step()?;
            }
        }
        Ok(began.elapsed().as_secs_f64())
    }

    fn report(what: &str, packets: u64, seconds: f64) {
        println!("{what}: {packets} packets, {:.3} Mpps", packets as f64 / seconds / 1e6);
    }

    fn forward(from: &str, to: &str, seconds: f64) -> Outcome {
        let pool = Pool::new(16_384, 2048);
        let (mut from, mut to) = (only(open(from, &pool)?), only(open(to, &pool)?));
        let (mut received, mut sent, mut full) = (0, 0, 0);
        let mut burst = Vec::with_capacity(BURST);
        let seconds = repeat(seconds, || {
            received += from.receive.receive(&pool, &mut burst, BURST)? as u64;
            if burst.is_empty() {
                to.transmit.flush(&pool)?;
                from.receive.wait(Duration::from_millis(1))?;
                return Ok(());
            }
            for packet in &mut burst {
                let (to, from) = packet.bytes_mut()[..12].split_at_mut(6);
                to.swap_with_slice(from);
            }
            sent += to.transmit.transmit(&pool, &mut burst)? as u64;
            to.transmit.flush(&pool)?;
            full += burst.len() as u64;
            pool.give(burst.drain(..));
            Ok(())
        })?;
        report("received", received, seconds);
        report("sent", sent, seconds);
        report("no room to send", full, seconds);
        report("lost before they were received", from.receive.lost(), seconds);
        Ok(())
    }

    fn frame(to: [u8; 6], from: [u8; 6]) -> [u8; 60] {
        let mut frame = [0; 60];
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&from);
        frame[12..24].copy_from_slice(b"\x08\0\x45\0\0\x2e\0\0\0\0\x40\x11");
        frame[26..42].copy_from_slice(b"\xc6\x12\0\x01\xc6\x12\0\x02\0\x07\0\x09\0\x1a\0\0");
        let sum = checksum::compute(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    fn generate(name: &str, to: [u8; 6], from: [u8; 6], seconds: f64) -> Outcome {
        let generator = Generator::new(name, &frame(to, from))?;
        let mut made = 0;
        // Each call sets much up: it must make many.
        let began = Instant::now();
        while began.elapsed().as_secs_f64() < seconds {
            generator.make(1 << 18)?;
            made += 1 << 18;
        }
        report("made", made, began.elapsed().as_secs_f64());
        Ok(())
    }

    fn send(port: &str, to: [u8; 6], from: [u8; 6], seconds: f64) -> Outcome {
        let pool = Pool::new(8192, 2048);
        let mut queue = only(open(port, &pool)?);
        let frame = frame(to, from);
        let mut burst = Vec::with_capacity(BURST);
        let mut sent = 0;
        let seconds = repeat(seconds, || {
            let missing = BURST - burst.len();
            pool.take_many(&mut burst, missing);
            for packet in &mut burst {
                assert!(packet.fill(&frame));
            }
            sent += queue.transmit.transmit(&pool, &mut burst)? as u64;
            Ok(queue.transmit.flush(&pool)?)
        })?;
        pool.give(burst);
        report("sent", sent, seconds);
        Ok(())
    }

    /// An XDP socket that no program reads drops packets when its ring is full; the kernel counts them.
    fn sink(port: &str, seconds: f64) -> Outcome {
        let pool = Pool::new(4096, 2048);
        let mut queue = only(open(port, &pool)?);
        if port.starts_with("afxdp") {
            thread::sleep(Duration::from_secs_f64(seconds));
            let mut burst = Vec::new();
            let kept = queue.receive.receive(&pool, &mut burst, usize::MAX)? as u64;
            pool.give(burst);
            report("came", kept + queue.receive.lost(), seconds);
            return Ok(());
        }
        let (mut came, mut burst) = (0, Vec::new());
        let seconds = repeat(seconds, || {
            came += queue.receive.receive(&pool, &mut burst, BURST)? as u64;
            if burst.is_empty() {
                queue.receive.wait(Duration::from_millis(1))?;
            }
            pool.give(burst.drain(..));
            Ok(())
        })?;
        report("came", came, seconds);
        report("lost", queue.receive.lost(), seconds);
        Ok(())
    }

    fn mac(text: &str) -> Result<[u8; 6], Box<dyn Error>> {
        let bytes: Result<Vec<u8>, _> =
            text.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
        bytes?.try_into().map_err(|_| format!("{text} is not a MAC address").into())
    }
}
