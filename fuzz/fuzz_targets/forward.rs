//! Whole frames through a router: what leaves, in which order, what is for the host, what waits and what is counted is
//! what the plain model of the router's tests says. The first byte says by which port the frame comes in, whether it
//! gets the port's MAC address and a right checksum, and whether the tables have default routes.
#![no_main]

use std::cell::RefCell;

use fibula_router::Pool;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/router/tests/forward/model/mod.rs"]
mod model;
#[path = "../../crates/router/tests/forward/world.rs"]
mod world;

use world::Bench;

thread_local! {
    static BENCHES: RefCell<[Bench<'static>; 2]> = RefCell::new({
        let pool = Box::leak(Box::new(Pool::new(4096, world::SLOT)));
        [false, true].map(|with_default| Bench::new(pool, with_default))
    });
}

fuzz_target!(|data: &[u8]| {
    let Some((first, frame)) = data.split_first() else { return };
    let port = u16::from(first & 7);
    let mut frame = frame.to_vec();
    if first & 8 != 0 {
        let len = frame.len().min(6);
        frame[..len].copy_from_slice(&world::mac(port)[..len]);
    }
    let as_it_is = frame.clone();
    if first & 16 != 0 {
        model::mend(&mut frame);
    }
    BENCHES.with_borrow_mut(|benches| {
        let bench = &mut benches[usize::from(first >> 5 & 1)];
        // More than once, so that there is a burst.
        bench.check(&[(port, &frame), (port, &as_it_is), (port, &frame)]);
        bench.clear();
    });
});
