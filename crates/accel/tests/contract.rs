//! What every device promises, whatever its kernels compute.

use std::sync::Arc;
use std::time::Duration;

use fibula_accel::{CpuDevice, Device, DeviceError, DeviceKey, Faults, Image, Walked, open};
use fibula_core::{Family, Hop, Lookup, Routes};
use fibula_testkit::{RouteChurn, probes, tables};

use crate::common::{build, devices, put};

fn image<A: DeviceKey>(engine: &str, routes: &Routes<A>) -> Arc<Image> {
    let engine = build(engine, routes).expect("a small table");
    Arc::new(Image::of(&*engine).expect("a kernel"))
}

/// Batches of no address, of one, and of lengths around a work group and up to the capacity, one after the other in one
/// slot; hops behind the batch are not part of it.
fn every_length<A: DeviceKey>(device: &dyn Device, engine: &str) {
    let routes = tables::dense::<A>(3, 1000);
    let image = image(engine, &routes);
    let walk = Walked::<A>::new(image.clone());
    let table = device.upload(image).unwrap();
    const CAPACITY: usize = 1030;
    let mut slot = device.slot(A::FAMILY, CAPACITY).unwrap();
    assert_eq!((slot.capacity(), slot.keys_mut().len()), (CAPACITY, CAPACITY * size_of::<A>()));
    assert!(slot.poll() && slot.wait().is_ok() && slot.hops().is_empty());
    let keys: Vec<A> = probes::boundary(&routes).take(CAPACITY).collect();
    for len in [0, 1, 2, 31, 32, 33, 255, 256, 257, 0, 511, 1000, CAPACITY, 1] {
        let keys = &keys[..len];
        put(&mut *slot, keys);
        slot.submit(&table, len).unwrap();
        slot.wait().unwrap();
        let expected: Vec<u32> = keys.iter().map(|&key| walk.lookup(key).to_bits()).collect();
        assert_eq!(slot.hops(), expected, "{}: {engine}, {len} addresses", device.name());
    }
}

#[test]
fn batches_of_every_length() {
    for device in devices() {
        every_length::<u32>(&*device, "runmap");
        every_length::<u128>(&*device, "wideleaf");
    }
}

/// Working sets from two words on, whose reads are those that the walk states.
#[test]
fn random_reads_are_those_of_the_walk() {
    for device in devices() {
        for bytes in [8, 4096, 1 << 20] {
            let image = Arc::new(Image::gather(bytes));
            let walk = Walked::<u32>::new(image.clone());
            let keys: Vec<u32> = (0..1000u32).map(|i| i.wrapping_mul(0x0101_6b2d)).collect();
            let mut slot = device.slot(Family::V4, keys.len()).unwrap();
            put(&mut *slot, &keys);
            slot.submit(&device.upload(image).unwrap(), keys.len()).unwrap();
            slot.wait().unwrap();
            let expected: Vec<u32> = keys.iter().map(|&key| walk.lookup(key).to_bits()).collect();
            assert_eq!(slot.hops(), expected, "{}: {bytes} bytes", device.name());
            assert!(expected.iter().any(|&sum| sum != expected[0]));
        }
    }
}

/// Several slots in flight on one device with tables of their own, and one that is dropped in flight with the last
/// reference to its table.
#[test]
fn slots_overlap() {
    for device in devices() {
        let routes = tables::dense::<u32>(5, 2000);
        let keys: Vec<u32> = probes::boundary(&routes).take(5000).collect();
        let batches: Vec<_> = ["runmap", "dir24-8", "sail-l", "sail-l"]
            .map(|engine| {
                let image = image(engine, &routes);
                let mut slot = device.slot(Family::V4, keys.len()).unwrap();
                put(&mut *slot, &keys);
                slot.submit(&device.upload(image.clone()).unwrap(), keys.len()).unwrap();
                (slot, Walked::<u32>::new(image))
            })
            .into();
        for (number, (mut slot, walk)) in batches.into_iter().enumerate() {
            if number == 3 {
                drop(slot);
                continue;
            }
            while !slot.poll() {
                std::thread::yield_now();
            }
            slot.wait().unwrap();
            let right = |(&key, &hop): (&u32, &u32)| walk.lookup(key) == Hop::from_bits(hop);
            assert!(keys.iter().zip(slot.hops()).all(right), "{}, slot {number}", device.name());
            assert!(slot.kernel_time().is_some());
        }
    }
}

/// Tables of any engine, also of forms whose tables differ from those of the scheme's first one.
fn every_engine_or_a_sentence<A: DeviceKey>() {
    let routes = tables::dense::<A>(7, 1000);
    let mut have_kernels = Vec::new();
    for entry in fibula_baselines::registry().engines::<A>() {
        let engine = build(entry.name, &routes).expect("a small table");
        match Image::of(&*engine) {
            Ok(image) => {
                let walk = Walked::<A>::new(image.into());
                for addr in probes::boundary(&routes) {
                    assert_eq!(walk.lookup(addr), engine.lookup(addr), "{}, {addr:x?}", entry.name);
                }
                have_kernels.push(entry.name);
            }
            Err(error) => assert!(matches!(error, DeviceError::NoKernel { .. }), "{error}"),
        }
    }
    let expected: &[&str] = match A::FAMILY {
        Family::V4 => &["runmap", "dir24-8", "sail-l", "bloomfwd"],
        Family::V6 => &["planb", "wideleaf", "bloomfwd"],
    };
    assert!(expected.iter().all(|name| have_kernels.contains(name)), "{have_kernels:?}");
}

#[test]
fn engines_have_a_kernel_or_say_that_there_is_none() {
    every_engine_or_a_sentence::<u32>();
    every_engine_or_a_sentence::<u128>();
}

/// A table of another device or family is refused, and the slot goes on.
#[test]
fn foreign_tables_are_refused() {
    let cpu = open("cpu").unwrap();
    let of_v4 = cpu.upload(image("runmap", &tables::dense::<u32>(1, 100))).unwrap();
    for device in devices() {
        let of_v6 = device.upload(image("planb", &tables::dense::<u128>(1, 100))).unwrap();
        let mut slot = device.slot(Family::V4, 10).unwrap();
        let refused = Err(DeviceError::OtherTable { device: device.name().into() });
        assert_eq!(slot.submit(&of_v6, 1), refused);
        if device.name() != "cpu" {
            assert_eq!(slot.submit(&of_v4, 1), refused);
        }
        // A device that is opened again is the same one.
        if device.name() != "cpu" {
            let again = open(device.name()).unwrap();
            let of_again = again.upload(of_v4.image().clone()).unwrap();
            slot.submit(&of_again, 1).unwrap();
            slot.wait().unwrap();
        }
        let own = device.upload(image("runmap", &tables::dense::<u32>(1, 100))).unwrap();
        put(&mut *slot, &[7u32]);
        slot.submit(&own, 1).unwrap();
        slot.wait().unwrap();
        assert_eq!(slot.hops().len(), 1);
    }
}

/// A table follows its routes: the changed bytes alone make a table on the device that answers as the new engine, and
/// the table before it answers as before.
fn follows<A: DeviceKey>(device: &dyn Device, name: &str) {
    let mut routes = tables::dense::<A>(9, 3000);
    let mut engine = build(name, &routes).unwrap();
    let mut image = Arc::new(Image::of(&*engine).unwrap());
    let mut table = device.upload(image.clone()).unwrap();
    let mut slot = device.slot(A::FAMILY, 4000).unwrap();
    let mut churn = RouteChurn::new(2);
    let mut by_changes = 0;
    for round in 0..8 {
        let (before, was) = (table.clone(), image.clone());
        let burst = churn.burst(&routes, 3);
        let changed: Vec<_> = burst.iter().map(|route| route.prefix).collect();
        routes =
            routes.iter().filter(|route| !changed.contains(&route.prefix)).chain(burst).collect();
        if !matches!(engine.follow(&routes, &changed), Ok(fibula_core::Patched::Applied)) {
            engine = build(name, &routes).unwrap();
        }
        image = Arc::new(was.after(&*engine).unwrap());
        table = match image.changes(&was) {
            Some(changes) => {
                by_changes += 1;
                device.upload_changes(&before, image.clone(), &changes).unwrap()
            }
            None => device.upload(image.clone()).unwrap(),
        };
        let keys: Vec<A> = probes::boundary(&routes).take(4000).collect();
        for (table, image) in [(&table, &image), (&before, &was)] {
            put(&mut *slot, &keys);
            slot.submit(table, keys.len()).unwrap();
            slot.wait().unwrap();
            let walk = Walked::<A>::new(image.clone());
            let right = |(&key, &hop): (&A, &u32)| walk.lookup(key) == Hop::from_bits(hop);
            let is_right = keys.iter().zip(slot.hops()).all(right);
            assert!(is_right, "{}: {name}, round {round}", device.name());
        }
        let walk = Walked::<A>::new(image.clone());
        let right = |&key: &A| walk.lookup(key) == engine.lookup(key);
        assert!(keys.iter().all(right), "{name}, round {round}");
    }
    assert!(by_changes >= 4, "{name}: {by_changes} of 8 by their changes");
}

#[test]
fn tables_follow_by_their_changes() {
    for device in devices() {
        follows::<u32>(&*device, "runmap");
        follows::<u32>(&*device, "sail-l");
        follows::<u128>(&*device, "wideleaf");
    }
}

/// A failed batch is an error, and the slot then works; a device that has gone refuses everything.
#[test]
fn failures_are_errors() {
    let routes = tables::dense::<u32>(3, 100);
    let image = image("runmap", &routes);
    let faults = Faults { one_in: 3, delay: Duration::from_micros(50), seed: 1, for_good: false };
    let device = CpuDevice::new(faults);
    let table = device.upload(image.clone()).unwrap();
    let mut slot = device.slot(Family::V4, 8).unwrap();
    let results: Vec<bool> = (0..60)
        .map(|_| {
            slot.submit(&table, 8).unwrap();
            slot.wait().is_ok()
        })
        .collect();
    let failed = results.iter().filter(|is_ok| !**is_ok).count();
    assert!((5..40).contains(&failed), "{failed} of 60 failed");

    let gone = CpuDevice::new(Faults { one_in: 1, for_good: true, ..faults });
    let (table, mut slot) =
        (gone.upload(image.clone()).unwrap(), gone.slot(Family::V4, 8).unwrap());
    slot.submit(&table, 1).unwrap();
    assert!(slot.wait().is_err());
    assert!(slot.submit(&table, 1).is_err());
    assert!(gone.upload(image).is_err() && gone.slot(Family::V6, 1).is_err());
}

/// What cannot be opened, or has no kernel, is a sentence that says what to do.
#[test]
fn errors_say_what_to_do() {
    for name in ["opencl:99", "cuda:99"] {
        let error = open(name).err().expect("no machine has as many");
        assert!(matches!(error, DeviceError::Absent { .. }), "{error}");
    }
    for name in ["", "gpu", "opencl", "opencl:", "opencl:x", "cuda", "cuda:x", "cpu:1"] {
        let error = open(name).err().expect("no device").to_string();
        assert!(error.contains("use opencl:0"), "{error}");
    }
    let engine = build("lower-bound", &tables::dense::<u32>(1, 10)).unwrap();
    let error = Image::of(&*engine).unwrap_err().to_string();
    assert!(error.contains("lower-bound") && error.contains("runmap"), "{error}");
}

/// Images of one layout differ in the blocks that changed; others have no changes to give.
#[test]
fn changes_of_images() {
    let routes = tables::dense::<u32>(4, 500);
    let one = image("dir24-8", &routes);
    assert_eq!(one.changes(&one), Some(Vec::new()));
    let mut engine = build("dir24-8", &routes).unwrap();
    let host = "192.0.2.0/24".parse().unwrap();
    let more: Routes<u32> =
        routes.iter().chain([fibula_core::Route { prefix: host, hop: Hop::new(9) }]).collect();
    assert_eq!(engine.follow(&more, &[host]), Ok(fibula_core::Patched::Applied));
    let two = one.after(&*engine).unwrap();
    // The entry of 192.0.2 lies in one block, at twice its number.
    let block = 2 * 0xc0_0002 / 4096 * 4096;
    let changes = two.changes(&one);
    assert_eq!(changes.as_deref(), Some(std::slice::from_ref(&(block..block + 4096))));
    assert_eq!(image("dir24-8-wide", &routes).changes(&one), None);
}
