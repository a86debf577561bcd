//! A contestant for the tests: searches all routes. Its argument says what is wrong with it: `honest`, `liar` (one
//! address), `fickle` (other hops when it is timed) or `refuses`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, io};

use bench_peer::{Built, NO_HOP, Route, Table, serve};

fn main() -> io::Result<()> {
    let v6 = |_: &[Route<u128>]| -> Built<u128> { Err("it has no tables for IPv6".to_owned()) };
    serve("contestant", "1", build, v6)
}

struct Search {
    routes: Vec<Route<u32>>,
    fault: String,
    calls: AtomicUsize,
}

fn build(routes: &[Route<u32>]) -> Built<u32> {
    let fault = env::args().nth(1).unwrap_or_default();
    if fault == "refuses" {
        return Err("no room for the table".to_owned());
    }
    Ok(Box::new(Search { routes: routes.to_vec(), fault, calls: AtomicUsize::new(0) }))
}

impl Table<u32> for Search {
    fn look_up(&self, keys: &[u32], hops: &mut [u32]) {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed);
        for (&key, hop) in keys.iter().zip(hops) {
            let covers = |route: &&Route<u32>| {
                let mask = u32::MAX.checked_shl(32 - u32::from(route.1)).unwrap_or_default();
                key & mask == route.0
            };
            let found = self.routes.iter().filter(covers).max_by_key(|route| route.1);
            *hop = found.map_or(NO_HOP, |route| route.2);
            match &*self.fault {
                "liar" if key == u32::MAX => *hop = 7,
                // Its answers take fewer calls, three rounds more.
                "fickle" if calls >= 5 => *hop = hop.wrapping_add(1),
                _ => {}
            }
        }
    }
}
