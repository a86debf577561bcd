//! The conformance suite on each kernel, and on the walk that states it. Without a device that has a driver the walk
//! alone is tested.

use fibula_accel::{DeviceKey, Image, Walked};
use fibula_core::{BoxedEngine, BuildError, Routes, stored};
use fibula_engines::runmap::{self, Runmap};
use fibula_engines::wideleaf::{self, Wideleaf};
use fibula_testkit::{conform, conforms};

use crate::common::{OnDevice, build, driven};

/// An engine whose batches are looked up on the device.
fn form<A: DeviceKey>(
    label: &str,
    build: impl Fn(&Routes<A>) -> Result<BoxedEngine<A>, BuildError> + 'static,
) -> (String, conform::Build<A>) {
    imaged(label, move |routes| Ok(Image::of(&*build(routes)?).expect("a kernel for this engine")))
}

/// An image whose batches are looked up on the device.
fn imaged<A: DeviceKey>(
    label: &str,
    image: impl Fn(&Routes<A>) -> Result<Image, BuildError> + 'static,
) -> (String, conform::Build<A>) {
    let device = driven();
    let build = move |routes: &Routes<A>| -> Result<Box<dyn fibula_core::Lookup<A>>, BuildError> {
        let image = image(routes)?;
        Ok(match &device {
            Some(device) => Box::new(OnDevice::new(&**device, image)),
            None => Box::new(Walked::new(image.into())),
        })
    };
    (format!("{label}, on the device"), Box::new(build))
}

fn named<A: DeviceKey>(name: &'static str) -> (String, conform::Build<A>) {
    form(name, move |routes| build(name, routes))
}

/// The kernel of this engine's tables that looks up by lanes.
fn by_lanes(name: &'static str) -> (String, conform::Build<u128>) {
    let image_of = |engine: &BoxedEngine<u128>| {
        let image = Image::of(&**engine).expect("a kernel for this engine");
        image.by_lanes().expect("a kernel by lanes")
    };
    imaged(&format!("{name}, by lanes"), move |routes| Ok(image_of(&build(name, routes)?)))
}

/// The hash functions of the first are H2 and MurmurHash3's finaliser; the other one hashes with seeds.
const BLOOMFWD: [&str; 2] = ["bloomfwd", "bloomfwd-baseline"];

/// runmap with codes of each width, whatever the hops.
fn runmap_widths() -> conform::Builders<u32> {
    [runmap::Width::Bits8, runmap::Width::Bits16, runmap::Width::Bits32]
        .map(|width| {
            let config = runmap::Config { width: Some(width), ..Default::default() };
            form(&format!("runmap, {width:?}"), move |routes| {
                Ok(stored(<Runmap as fibula_core::Engine<u32>>::build(routes, &config)?))
            })
        })
        .into()
}

/// wideleaf with records in lines, and in halves of lines.
fn wideleaf_shapes() -> conform::Builders<u128> {
    [false, true]
        .map(|lines| {
            let variant = Some(wideleaf::Variant { lines, gathers: false });
            let config = wideleaf::Config { variant, ..Default::default() };
            form(&format!("wideleaf, lines: {lines}"), move |routes| {
                Ok(stored(<Wideleaf as fibula_core::Engine<u128>>::build(routes, &config)?))
            })
        })
        .into()
}

conforms!(runmap_kernels, u32, runmap_widths());
conforms!(dir24_8_kernels, u32, vec![named("dir24-8"), named("dir24-8-wide")]);
conforms!(sail_l_kernels, u32, vec![named("sail-l"), named("sail-l-wide")]);
conforms!(planb_kernels, u128, vec![named("planb"), by_lanes("planb")]);
conforms!(bloomfwd_kernels_v4, u32, BLOOMFWD.map(named).into());
conforms!(bloomfwd_kernels_v6, u128, BLOOMFWD.map(named).into());
conforms!(wideleaf_kernels, u128, wideleaf_shapes());
