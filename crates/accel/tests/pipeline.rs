//! Batches that are divided over slots, and over a device and the CPU, with and without failures.

use std::sync::Arc;
use std::time::Duration;

use fibula_accel::{CpuDevice, Device, DeviceKey, Division, Faults, Image, Offloaded, Pipeline};
use fibula_core::{BoxedEngine, Hop, Lookup, Routes};
use fibula_testkit::{probes, tables};

use crate::common::{build, devices};

/// A table, keys, and their hops by the engine.
struct Case<A: DeviceKey> {
    engine: BoxedEngine<A>,
    keys: Vec<A>,
    expected: Vec<Hop>,
}

impl<A: DeviceKey> Case<A> {
    fn new(engine: &str, keys: u64) -> Self {
        let routes: Routes<A> = tables::dense(7, 3000);
        let engine = build(engine, &routes).unwrap();
        let keys: Vec<A> = probes::random(&routes, keys, 3).collect();
        let mut expected = vec![Hop::NONE; keys.len()];
        engine.lookup_batch(&keys, &mut expected);
        Self { engine, keys, expected }
    }

    fn offloaded(&self, device: &dyn Device) -> Offloaded<'_, A> {
        let image = Arc::new(Image::of(&*self.engine).unwrap());
        Offloaded { engine: &self.engine, table: device.upload(image).unwrap() }
    }
}

fn every_length<A: DeviceKey>(engine: &str) {
    const CAPACITY: usize = 20_000;
    let case = Case::<A>::new(engine, 4 * CAPACITY as u64 + 5);
    for device in devices() {
        let table = case.offloaded(&*device);
        for slots in [1, 2, 4] {
            let mut pipeline = Pipeline::new(device.clone(), slots, CAPACITY).unwrap();
            for len in [0, 1, CAPACITY - 1, CAPACITY, CAPACITY + 1, 3 * CAPACITY, case.keys.len()] {
                let mut hops = vec![Hop::new(99); len];
                let summary = pipeline.look_up(&table, &case.keys[..len], &mut hops);
                assert_eq!((summary.on_device, summary.on_cpu, summary.failures), (len, 0, 0));
                assert!(hops == case.expected[..len], "{}, {slots} slots, {len}", device.name());
            }
        }
    }
}

#[test]
fn hops_are_in_the_order_of_the_keys() {
    every_length::<u32>("runmap");
    every_length::<u128>("wideleaf");
}

/// Whatever fails, every key has its hop.
#[test]
fn failed_parts_go_to_the_cpu() {
    let case = Case::<u32>::new("sail-l", 60_000);
    for (seed, one_in, for_good) in
        [(1, 2, false), (2, 5, false), (3, 1, false), (4, 5, true), (5, 1, true)]
    {
        let faults = Faults { delay: Duration::from_micros(100), one_in, for_good, seed };
        let device = Arc::new(CpuDevice::new(faults));
        let table = case.offloaded(&*device);
        let mut pipeline = Pipeline::new(device, 3, 1000).unwrap();
        let (mut failures, mut on_cpu) = (0, 0);
        for _ in 0..2 {
            let mut hops = vec![Hop::new(99); case.keys.len()];
            let summary = pipeline.look_up(&table, &case.keys, &mut hops);
            assert!(hops == case.expected, "{faults:?}");
            assert_eq!(summary.on_device + summary.on_cpu, case.keys.len());
            assert_eq!(summary.error.is_some(), summary.failures > 0);
            failures += summary.failures;
            on_cpu += summary.on_cpu;
        }
        assert!(failures > 0 && on_cpu > 0, "{faults:?}");
        // A device that has gone is asked no more.
        assert!(!for_good || failures <= 12, "{faults:?}: {failures} failures");
    }
}

#[test]
fn device_and_cpu_share_a_batch() {
    let case = Case::<u32>::new("runmap", 700_001);
    let mut all: Vec<Arc<dyn Device>> = devices();
    let sound = all.len();
    for (seed, for_good) in [(1, false), (2, true)] {
        let faults = Faults { delay: Duration::from_micros(300), one_in: 3, for_good, seed };
        all.push(Arc::new(CpuDevice::new(faults)));
    }
    for (number, device) in all.into_iter().enumerate() {
        let table = case.offloaded(&*device);
        for (threads, division) in [
            (0, Division::Meeting),
            (1, Division::Meeting),
            (3, Division::Meeting),
            (2, Division::Share(0.0)),
            (2, Division::Share(0.3)),
            (2, Division::Share(1.0)),
        ] {
            let Ok(mut pipeline) = Pipeline::new(device.clone(), 2, 50_000) else { continue };
            for len in [case.keys.len(), 0, 1, 130_000] {
                let mut hops = vec![Hop::new(99); len];
                let keys = &case.keys[..len];
                let summary = pipeline.look_up_together(&table, threads, division, keys, &mut hops);
                let name = device.name();
                assert!(hops == case.expected[..len], "{name}, {threads}, {division:?}, {len}");
                assert_eq!(summary.on_device + summary.on_cpu, len);
                if number < sound {
                    assert_eq!(summary.failures, 0, "{name}");
                    match division {
                        Division::Share(share) => {
                            assert_eq!(summary.on_device, (len as f64 * share) as usize);
                        }
                        Division::Meeting if threads == 0 => assert_eq!(summary.on_device, len),
                        Division::Meeting => {}
                    }
                }
            }
        }
    }
}
