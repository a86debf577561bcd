//! The ports of the measured router, by their names on the command line.

use std::time::Duration;

use fibula_core::Addr;
use fibula_papers::out::Failure;

#[cfg(feature = "dpdk")]
use crate::devices::Traffic;
use crate::router::{Bench, Measured, Subject};
use crate::shape::Form;

/// Ports of a kind.
pub struct Ports {
    /// Its name.
    pub name: String,
    /// None: memory.
    #[cfg(feature = "dpdk")]
    devices: Option<Traffic>,
}

impl Ports {
    /// Prepares the packets that come in.
    pub fn new<A: Addr>(name: &str, bench: &Bench<A>) -> Result<Self, Failure> {
        #[cfg(not(feature = "dpdk"))]
        let _ = bench;
        Ok(Self {
            name: name.to_owned(),
            #[cfg(feature = "dpdk")]
            devices: match name {
                "null" => Some(Traffic::null(bench)?),
                "pcap" => {
                    let file = format!("fibula-planb-{}", std::process::id());
                    Some(Traffic::capture(bench, &std::env::temp_dir().join(file))?)
                }
                _ => None,
            },
        })
    }

    /// How many flows come in.
    pub fn flows<A: Addr>(&self, bench: &Bench<A>) -> usize {
        #[cfg(feature = "dpdk")]
        if let Some(devices) = &self.devices {
            return devices.flows(bench);
        }
        bench.flows()
    }

    /// Takes the time of a router between them.
    pub fn run<A: Addr>(
        &self,
        bench: &Bench<A>,
        subject: Subject<'_, A>,
        form: Form,
        time: Duration,
    ) -> Result<Measured, Failure> {
        #[cfg(feature = "dpdk")]
        if let Some(devices) = &self.devices {
            return bench.run_between(devices, subject, form, time);
        }
        bench.run(subject, form, time)
    }
}
