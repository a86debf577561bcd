//! Addresses that lie on the device: in buffers of its own, and in a caller's memory and stream.

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use fibula_accel::{
    Device, DeviceBuffer, DeviceError, DeviceKey, DeviceTable, Image, KeyOrder, ResidentBatch,
    ResidentKeys, Walked, open,
};
use fibula_core::{Family, Hop, Lookup, Routes};
use fibula_testkit::{probes, tables};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;

use crate::common::{build, devices};

fn uploaded<A: DeviceKey>(
    device: &dyn Device,
    engine: &str,
    routes: &Routes<A>,
) -> (Arc<dyn DeviceTable>, Walked<A>) {
    let image = Arc::new(Image::of(&*build(engine, routes).unwrap()).unwrap());
    (device.upload(image.clone()).unwrap(), Walked::new(image))
}

/// Batches of no address, of one, and of lengths around a work group, in both orders of bytes.
fn every_length<A: DeviceKey>(device: &Arc<dyn Device>, engine: &str) {
    let routes = tables::dense::<A>(3, 1000);
    let (table, walk) = uploaded(&**device, engine, &routes);
    let all: Vec<A> = probes::boundary(&routes).take(5000).collect();
    for count in [0, 1, 2, 31, 33, 255, 256, 257, 1000, all.len()] {
        let addrs = &all[..count];
        let expected: Vec<Hop> = addrs.iter().map(|&addr| walk.lookup(addr)).collect();
        let mut keys = ResidentKeys::new(device.clone(), addrs).unwrap();
        assert!(keys.hops().unwrap().iter().all(|&hop| hop == Hop::NONE));
        for _ in 0..2 {
            keys.look_up(&table).unwrap();
            assert_eq!(keys.hops().unwrap(), expected, "{}: {engine}, {count}", device.name());
        }

        let network: Vec<u8> = addrs.iter().flat_map(|&addr| network::<A>(addr)).collect();
        let (keys, hops) = (filled(&**device, &network), filled(&**device, &vec![7; count * 4]));
        // SAFETY: both are there until the end of the block, and the lookups are waited for.
        let batch =
            unsafe { ResidentBatch::new(A::FAMILY, keys.place(), hops.place(), count as u32) };
        let batch = batch.order(KeyOrder::Network);
        device.look_up_resident(&table, &batch).unwrap().wait().unwrap();
        assert_eq!(read(&*hops, count), expected, "{}: {engine}, {count}", device.name());
    }
}

fn network<A: DeviceKey>(addr: A) -> Vec<u8> {
    let bytes = addr.to_u128().to_be_bytes();
    bytes[16 - size_of::<A>()..].into()
}

fn filled(device: &dyn Device, bytes: &[u8]) -> Box<dyn DeviceBuffer> {
    let mut buffer = device.buffer(bytes.len()).unwrap();
    buffer.write(bytes).unwrap();
    buffer
}

fn read(hops: &dyn DeviceBuffer, count: usize) -> Vec<Hop> {
    let mut bits = vec![0u32; count];
    hops.read(bytemuck::cast_slice_mut(&mut bits)).unwrap();
    bits.into_iter().map(Hop::from_bits).collect()
}

#[test]
fn batches_of_every_length() {
    for device in devices() {
        for engine in ["runmap", "dir24-8", "sail-l", "bloomfwd"] {
            every_length::<u32>(&device, engine);
        }
        for engine in ["planb", "wideleaf", "bloomfwd"] {
            every_length::<u128>(&device, engine);
        }
    }
}

/// A stream that the test made, as a program with work of its own on the device does.
enum Stream {
    OpenCl(CommandQueue),
    Cuda(sys::CUstream),
}

impl Stream {
    /// `None` for a device without streams.
    fn new(device: &dyn Device) -> Option<Self> {
        let context = device.context()?;
        if device.name().starts_with("cuda") {
            let context = ptr::with_exposed_provenance_mut(context);
            // SAFETY: the context is the device's, and stays the thread's current one for the work below.
            unsafe { sys::cuCtxPushCurrent_v2(context) }.result().unwrap();
            return Some(Self::Cuda(
                result::stream::create(result::stream::StreamKind::NonBlocking).unwrap(),
            ));
        }
        let context = ptr::with_exposed_provenance_mut(context);
        let devices = opencl3::context::context::get_context_info(
            context,
            opencl3::context::context::CL_CONTEXT_DEVICES,
        );
        let devices: Vec<isize> = devices.unwrap().to_vec_intptr();
        let devices: Vec<_> = devices.into_iter().map(|device| device as *mut _).collect();
        // The context stays the device's.
        let context = ManuallyDrop::new(Context::new(context, &devices));
        Some(Self::OpenCl(CommandQueue::create_default_with_properties(&context, 0, 0).unwrap()))
    }

    fn place(&self) -> usize {
        match self {
            Self::OpenCl(queue) => queue.get().expose_provenance(),
            Self::Cuda(stream) => stream.expose_provenance(),
        }
    }

    fn finish(self) {
        match self {
            Self::OpenCl(queue) => queue.finish().unwrap(),
            Self::Cuda(stream) => {
                let mut context = ptr::null_mut();
                // SAFETY: the stream is there, and its work is done before it is freed; `new` made the context current.
                unsafe {
                    result::stream::synchronize(stream).unwrap();
                    result::stream::destroy(stream).unwrap();
                    sys::cuCtxPopCurrent_v2(&mut context).result().unwrap();
                }
            }
        }
    }
}

/// Several batches in the caller's stream; their tables are kept until they are done.
#[test]
fn in_the_callers_stream() {
    for device in devices() {
        let Some(stream) = Stream::new(&*device) else { continue };
        let routes = tables::dense::<u128>(5, 2000);
        let addrs: Vec<u128> = probes::boundary(&routes).take(5000).collect();
        let keys = filled(&*device, bytemuck::cast_slice(&addrs));
        let begun: Vec<_> = ["planb", "wideleaf"]
            .map(|engine| {
                let (table, walk) = uploaded(&*device, engine, &routes);
                let hops = device.buffer(addrs.len() * 4).unwrap();
                let count = addrs.len() as u32;
                // SAFETY: keys, hops and stream are there until the lookups are done, which are waited for below.
                let batch = unsafe {
                    ResidentBatch::new(Family::V6, keys.place(), hops.place(), count)
                        .on_stream(stream.place())
                };
                (device.look_up_resident(&table, &batch).unwrap(), hops, walk)
            })
            .into();
        for (number, (mut flight, hops, walk)) in begun.into_iter().enumerate() {
            if number == 0 {
                flight.wait().unwrap();
            }
            while !flight.poll() {
                std::thread::yield_now();
            }
            drop(flight);
            let expected: Vec<Hop> = addrs.iter().map(|&addr| walk.lookup(addr)).collect();
            assert_eq!(read(&*hops, addrs.len()), expected, "{}", device.name());
        }
        stream.finish();
    }
}

/// Lookups that nobody waits for are waited for when they are dropped, before their table is freed.
#[test]
fn dropped_lookups_are_done() {
    for device in devices() {
        let routes = tables::dense::<u32>(5, 2000);
        let addrs: Vec<u32> = probes::boundary(&routes).take(5000).collect();
        let keys = filled(&*device, bytemuck::cast_slice(&addrs));
        let hops = device.buffer(addrs.len() * 4).unwrap();
        let (table, walk) = uploaded(&*device, "sail-l", &routes);
        // SAFETY: both are there until the lookups are dropped, which waits for them.
        let batch = unsafe {
            ResidentBatch::new(Family::V4, keys.place(), hops.place(), addrs.len() as u32)
        };
        let flight = device.look_up_resident(&table, &batch).unwrap();
        drop(table);
        drop(flight);
        let expected: Vec<Hop> = addrs.iter().map(|&addr| walk.lookup(addr)).collect();
        assert_eq!(read(&*hops, addrs.len()), expected, "{}", device.name());
    }
}

/// A table of another device or family, and places that kernels cannot read, are refused.
#[test]
fn what_cannot_be_looked_up_is_refused() {
    let cpu = open("cpu").unwrap();
    let (of_cpu, _) = uploaded(&*cpu, "runmap", &tables::dense::<u32>(1, 100));
    for device in devices() {
        let (of_v6, _) = uploaded(&*device, "planb", &tables::dense::<u128>(1, 100));
        let (of_v4, _) = uploaded(&*device, "runmap", &tables::dense::<u32>(1, 100));
        let (keys, hops) = (filled(&*device, &[0; 64]), filled(&*device, &[0; 64]));
        let look_up = |table, keys, hops| {
            // SAFETY: buffers with room for so many; what is refused is not begun.
            let batch = unsafe { ResidentBatch::new(Family::V4, keys, hops, 4) };
            device.look_up_resident(table, &batch).map(|mut flight| flight.wait().unwrap())
        };
        let refused = Err(DeviceError::OtherTable { device: device.name().into() });
        assert_eq!(look_up(&of_v6, keys.place(), hops.place()), refused);
        if device.name() != "cpu" {
            assert_eq!(look_up(&of_cpu, keys.place(), hops.place()), refused);
        }
        if !device.name().starts_with("opencl") {
            for (keys, hops, what) in [
                (keys.place() + 1, hops.place(), "addresses"),
                (keys.place(), hops.place() + 2, "hops"),
            ] {
                let error = look_up(&of_v4, keys, hops).unwrap_err().to_string();
                assert!(
                    error.contains(what) && error.contains("no multiple of 4 bytes"),
                    "{error}"
                );
            }
        }
        look_up(&of_v4, keys.place(), hops.place()).unwrap();
    }
}
