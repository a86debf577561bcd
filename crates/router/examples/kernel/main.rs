//! The smallest router: one thread forwards between the ports that are named; routes, neighbours and addresses are what
//! the command `ip` says of the kernel's, asked ten times a second. It shows how the parts fit together, and tests
//! ports with real traffic. `fibula route` is the router to use.
//!
//! ```text
//! cargo run --example kernel -- --port afxdp:eth1 --port afpacket:eth2
//! ```

#[cfg(target_os = "linux")]
mod table;

#[cfg(target_os = "linux")]
fn main() {
    if let Err(error) = router::run() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("this example needs Linux");
}

#[cfg(target_os = "linux")]
mod router {
    use std::collections::HashSet;
    use std::error::Error;
    use std::net::UdpSocket;
    use std::sync::{Arc, Mutex};
    use std::thread;
    use std::time::{Duration, Instant};

    use fibula_router::forward::Waiting;
    use fibula_router::port::afpacket::{self, AfPacketOptions};
    use fibula_router::port::afxdp::{self, AfXdp, AfXdpOptions, Mode};
    use fibula_router::port::{Port, tap};
    use fibula_router::{ForwardOptions, Forwarder, Outcome, Packet, Pool};

    use super::table::{Device, Table};

    const BURST: usize = 256;
    /// Packets that wait for a neighbour.
    const WAITING: usize = 256;

    pub fn run() -> Result<(), Box<dyn Error>> {
        let pool = Pool::new(32_768, 2048);
        let (mut ports, mut handles) = (Vec::new(), Vec::new());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--port" => {
                    let (port, handle) = open(&arguments.next().ok_or("--port KIND:NAME")?, &pool)?;
                    ports.push(port);
                    handles.extend(handle);
                }
                // Whoever installs routes, the kernel has them.
                "--kernel" => {}
                "--fpm" => drop(arguments.next()),
                _ => return Err(format!("{argument}: there are only --port KIND:NAME").into()),
            }
        }
        let devices: Vec<_> = ports
            .iter()
            .map(|port| Device {
                name: port.name.split_once(':').map_or("", |(_, name)| name).to_owned(),
                mac: port.mac,
                mtu: port.mtu,
            })
            .collect();
        let first = Table::read(&devices)?;
        handles.iter().try_for_each(|handle| handle.set_local(&first.local))?;
        let table = Mutex::new(Arc::new(first));
        thread::scope(|scope| {
            scope.spawn(|| keep(&table, &devices, &handles));
            eprintln!("forwards between {} ports", ports.len());
            forward(&pool, &mut ports, &table).inspect_err(|error| {
                eprintln!("{error}");
                std::process::exit(1);
            })
        })?;
        Ok(())
    }

    fn open<'p>(name: &str, pool: &'p Pool) -> Result<(Port<'p>, Option<AfXdp>), Box<dyn Error>> {
        let xdp = |device: &str, mode| {
            let options = AfXdpOptions { mode, ..AfXdpOptions::default() };
            let (port, handle) = afxdp::open(device, pool, &options)?;
            let zero_copy = if handle.is_zero_copy() { "zero copy" } else { "copy" };
            eprintln!("{}: {:?}, {zero_copy}", port.name, handle.mode());
            Ok((port, Some(handle)))
        };
        match name.split_once(':') {
            Some(("afxdp", device)) => xdp(device, Mode::Auto),
            Some(("afxdp-generic", device)) => xdp(device, Mode::Generic),
            Some(("afpacket", device)) => {
                Ok((afpacket::open(device, pool, &AfPacketOptions::default())?, None))
            }
            Some(("tap", device)) => Ok((tap::open(device, pool, &Default::default())?, None)),
            _ => Err(format!("{name}: a port is afxdp:NAME, afpacket:NAME or tap:NAME").into()),
        }
    }

    /// Asks for the table again and again.
    fn keep(table: &Mutex<Arc<Table>>, devices: &[Device], handles: &[AfXdp]) {
        loop {
            thread::sleep(Duration::from_millis(100));
            match Table::read(devices) {
                Ok(new) => {
                    let old = table.lock().expect("nobody panics with it").clone();
                    if old.said != new.said {
                        for handle in handles {
                            if let Err(error) = handle.set_local(&new.local) {
                                eprintln!("{error}");
                            }
                        }
                        *table.lock().expect("nobody panics with it") = Arc::new(new);
                    }
                }
                Err(error) => eprintln!("{error}"),
            }
        }
    }

    fn forward<'p>(
        pool: &'p Pool,
        ports: &mut [Port<'p>],
        table: &Mutex<Arc<Table>>,
    ) -> std::io::Result<()> {
        let mut forwarder = Forwarder::new(ForwardOptions::default());
        let mut outcome = Outcome::default();
        let (mut burst, mut waiting) = (Vec::new(), Vec::<(Waiting, Packet<'p>)>::new());
        let mut current = table.lock().expect("nobody panics with it").clone();
        loop {
            let mut came = 0;
            for (number, port) in ports.iter_mut().enumerate() {
                for queue in &mut port.queues {
                    let from = burst.len();
                    came += queue.receive.receive(pool, &mut burst, BURST)?;
                    burst[from..].iter_mut().for_each(|packet| packet.port = number as u16);
                }
            }
            let newest = table.lock().expect("nobody panics with it").clone();
            if !Arc::ptr_eq(&current, &newest) {
                burst.extend(waiting.drain(..).map(|(_, packet)| packet));
                current = newest;
            }
            if burst.is_empty() {
                thread::sleep(Duration::from_micros(200));
            }
            forwarder.forward(&current.view(), pool, Instant::now(), &mut burst, &mut outcome);
            for (port, send) in ports.iter_mut().zip(&mut outcome.send) {
                let transmit = &mut port.queues[0].transmit;
                if !send.is_empty() {
                    transmit.transmit(pool, send)?;
                    transmit.flush(pool)?;
                    pool.give(send.drain(..)); // what there is no room for
                } else if came == 0 {
                    transmit.flush(pool)?;
                }
            }
            pool.give(outcome.dropped.drain(..));
            // A packet for this machine is dropped: the kernel has its own ways to them.
            pool.give(outcome.host.drain(..));
            ask(&outcome.waiting);
            waiting.append(&mut outcome.waiting);
            let late = waiting.len().saturating_sub(WAITING);
            pool.give(waiting.drain(..late).map(|(_, packet)| packet));
        }
    }

    /// Has the kernel find out the MAC addresses of neighbours: it must, to send them something.
    fn ask(waiting: &[(Waiting, Packet<'_>)]) {
        let hops: HashSet<_> = waiting.iter().map(|(hop, _)| hop.next_hop).collect();
        for hop in hops {
            let any = if hop.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let _ = UdpSocket::bind(any).and_then(|socket| socket.send_to(b"?", (hop, 9)));
        }
    }
}
