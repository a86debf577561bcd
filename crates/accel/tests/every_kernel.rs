//! Every kernel on few keys, with batches that end inside of a work group. The conformance suite has more keys than an
//! interpreter of kernels can execute; these are what `./dev test --all` gives it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use fibula_accel::{Device, DeviceKey, Image, Walked};
use fibula_core::{Hop, Lookup, Route, Routes};
use fibula_testkit::{probes, tables};

use crate::common::{build, devices, put};

/// The names of all kernels, from their compiled files.
fn names() -> BTreeSet<String> {
    let files = fs::read_dir("src/kernels/ptx").expect("the folder of compiled kernels");
    let texts = files.map(|file| fs::read_to_string(file.expect("a file").path()).expect("text"));
    let entries = |text: String| -> Vec<String> {
        let entries = text.split(".visible .entry ").skip(1);
        entries.map(|entry| entry.split('(').next().expect("a name").to_owned()).collect()
    };
    texts.flat_map(entries).collect()
}

/// An image for each kernel of the family, and keys: of tables with few hops, with some, and with as many as take 32
/// bits.
fn images<A: DeviceKey>() -> BTreeMap<&'static str, (Arc<Image>, Vec<A>)> {
    let dense = tables::dense::<A>(3, 1000);
    let mut images = BTreeMap::new();
    for hops in [3, 1000, 1 << 20] {
        let hop = |(i, route): (u32, Route<A>)| Route { hop: Hop::new(i * 7919 % hops), ..route };
        let routes: Routes<A> = (0..).zip(dense.iter()).map(hop).collect();
        let keys: Vec<A> = probes::boundary(&routes).take(520).collect();
        for entry in fibula_baselines::registry().engines::<A>() {
            let Ok(engine) = build(entry.name, &routes) else { continue };
            let Ok(image) = Image::of(&*engine) else { continue };
            let by_lanes = image.by_lanes();
            for image in [Some(image), by_lanes].into_iter().flatten() {
                images.entry(image.kernel()).or_insert_with(|| (image.into(), keys.clone()));
            }
        }
    }
    images
}

/// No address, one, fewer and more than lanes and groups have.
fn lengths<A: DeviceKey>(device: &dyn Device, image: &Arc<Image>, keys: &[A]) {
    let walk = Walked::<A>::new(image.clone());
    let table = device.upload(image.clone()).expect("a table on the device");
    let mut slot = device.slot(A::FAMILY, keys.len()).expect("a slot");
    for len in [0, 1, 7, 8, 9, 255, 257, keys.len()] {
        // Each batch has keys of its own.
        let keys = &keys[keys.len() - len..];
        put(&mut *slot, keys);
        slot.submit(&table, len).expect("a batch");
        slot.wait().expect("a batch that is done");
        let expected: Vec<u32> = keys.iter().map(|&key| walk.lookup(key).to_bits()).collect();
        assert_eq!(slot.hops(), expected, "{}: {}, {len} keys", device.name(), image.kernel());
    }
}

#[test]
fn batches_of_every_length() {
    let (v4, v6) = (images::<u32>(), images::<u128>());
    let gather = Arc::new(Image::gather(4096));
    let mut tested: BTreeSet<String> =
        v4.keys().chain(v6.keys()).map(ToString::to_string).collect();
    tested.insert(gather.kernel().into());
    assert_eq!(tested, names());
    for device in devices() {
        v4.values().for_each(|(image, keys)| lengths(&*device, image, keys));
        v6.values().for_each(|(image, keys)| lengths(&*device, image, keys));
        lengths(&*device, &gather, &v4["runmap8"].1);
    }
}

/// A table that follows its routes keeps the kernel that was chosen for it, also when it takes wider codes.
#[test]
fn followers_keep_their_kernel() {
    let [narrow, wide] = [tables::dense::<u128>(3, 100), tables::wide_hops::<u128>(3, 100)];
    let [narrow, wide] = [narrow, wide].map(|routes| build("planb", &routes).expect("PlanB"));
    let image = Image::of(&*narrow).expect("a kernel").by_lanes().expect("one by lanes");
    let kernel = |engine| image.after::<u128>(engine).expect("a kernel").kernel();
    assert_eq!([kernel(&*narrow), kernel(&*wide)], ["planb16_lanes", "planb32_lanes"]);
    assert!(image.changes(&Image::of(&*narrow).expect("a kernel")).is_none());
}
