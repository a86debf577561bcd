//! Devices and tables that the tests share.

use std::env;
use std::sync::{Arc, Mutex};

use fibula_accel::{Device, DeviceError, DeviceKey, DeviceTable, Image, Slot, Walked, open};
use fibula_core::{Addr, BoxedEngine, BuildError, Hop, Lookup, Memory, Routes};
use fibula_engines::Isa;

/// The device with a driver that the tests use, `opencl:0` unless `FIBULA_TEST_DEVICE` names another one. `None`, and a
/// line that says so, if there is none; with `FIBULA_TEST_DEVICE` set that is an error.
pub fn driven() -> Option<Arc<dyn Device>> {
    let named = env::var("FIBULA_TEST_DEVICE").ok();
    match open(named.as_deref().unwrap_or("opencl:0")) {
        Ok(device) => Some(device),
        Err(error) if named.is_none() => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Every device of this machine that the tests use: one of threads, that with a driver, if it has OpenCL also as one
/// with memory of its own, and the first of CUDA.
pub fn devices() -> Vec<Arc<dyn Device>> {
    let mut devices = vec![open("cpu").expect("there is always a CPU")];
    if let Some(device) = driven() {
        if device.name().starts_with("opencl:") {
            let copies = open(&format!("{}:copies", device.name()));
            devices.push(copies.expect("as the device itself"));
        }
        devices.push(device);
    }
    match open("cuda:0") {
        Ok(device) if devices.iter().all(|other| other.name() != "cuda:0") => devices.push(device),
        Ok(_) | Err(DeviceError::Absent { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    devices
}

/// An engine of the registry.
pub fn build<A: Addr>(name: &str, routes: &Routes<A>) -> Result<BoxedEngine<A>, BuildError> {
    let entry = fibula_baselines::registry().find::<A>(name);
    entry.unwrap_or_else(|| panic!("no engine {name}")).build(routes, Isa::best())
}

/// The keys as a slot takes them.
pub fn put<A: DeviceKey>(slot: &mut dyn Slot, keys: &[A]) {
    slot.keys_mut()[..size_of_val(keys)].copy_from_slice(bytemuck::cast_slice(keys));
}

/// A table on a device as the conformance suite takes it: batches on the device, single addresses by the walk.
pub struct OnDevice<A: Addr> {
    walk: Walked<A>,
    table: Arc<dyn DeviceTable>,
    slot: Mutex<Box<dyn Slot>>,
}

/// Batches are cut into parts of this length, which is no multiple of a work group.
const CAPACITY: usize = 1000;

impl<A: DeviceKey> OnDevice<A> {
    pub fn new(device: &dyn Device, image: Image) -> Self {
        let image = Arc::new(image);
        let table = device.upload(image.clone()).expect("a table on the device");
        let slot = device.slot(A::FAMILY, CAPACITY).expect("a slot").into();
        Self { walk: Walked::new(image), table, slot }
    }
}

impl<A: DeviceKey> Lookup<A> for OnDevice<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.walk.lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        let mut slot = self.slot.lock().expect("no thread panics with it");
        for (addrs, hops) in addrs.chunks(CAPACITY).zip(hops.chunks_mut(CAPACITY)) {
            put(&mut **slot, addrs);
            slot.submit(&self.table, addrs.len()).expect("a batch");
            slot.wait().expect("a batch that is done");
            assert_eq!(slot.hops().len(), hops.len());
            hops.iter_mut().zip(slot.hops()).for_each(|(hop, &bits)| *hop = Hop::from_bits(bits));
        }
    }

    fn memory(&self) -> Memory {
        self.walk.memory()
    }
}
