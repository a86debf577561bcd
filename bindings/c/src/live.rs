//! Tables that change while they are read.

use std::ffi::c_void;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use fibula_core::{Addr, Attributes, Change, Hop, Update, Value};
use fibula_fib::FibOptions;
use fibula_rib::{AttributeChunk, AttributeTable, Hold, LiveOptions, Peer, Rib};

use crate::error::{Outcome, guarded};
use crate::route::{NONE, Route, check};
use crate::{array, free, in_blocks, results};

/// `fibula_live` of the header.
pub struct Live {
    table: fibula_rib::Live,
    peer: u32,
    /// The process in which the table's threads run.
    process: u32,
    readers: Mutex<Readers>,
}

/// The readers of a table, for the error that says which of them hold old tables.
#[derive(Default)]
struct Readers {
    made: u64,
    held: Vec<Weak<Held>>,
}

/// The generations that a reader holds, 0 for none.
struct Held {
    /// The reader, counted from 1 in the order in which they are made.
    reader: u64,
    v4: AtomicU64,
    v6: AtomicU64,
}

impl Readers {
    fn add(&mut self) -> Arc<Held> {
        self.made += 1;
        let held = Held { reader: self.made, v4: AtomicU64::new(0), v6: AtomicU64::new(0) };
        let held = Arc::new(held);
        self.held.retain(|held| held.strong_count() > 0);
        self.held.push(Arc::downgrade(&held));
        held
    }

    /// The readers that hold other generations than the newest of their families.
    fn behind(&self, newest: [(&str, u64); 2]) -> Vec<String> {
        let readers = self.held.iter().filter_map(Weak::upgrade);
        let behind =
            |held: Arc<Held>| {
                newest
                    .into_iter()
                    .zip([&held.v4, &held.v6])
                    .filter_map(|((family, newest), of)| {
                        let old = of.load(Ordering::Relaxed);
                        let reader = held.reader;
                        (old != 0 && old < newest).then(|| {
                    let behind = newest - old;
                    format!("reader {reader} holds an {family} table that is {behind} tables old")
                })
                    })
                    .collect::<Vec<_>>()
            };
        readers.flat_map(behind).collect()
    }
}

/// Number of routes whose updates are made and applied together.
const CHUNK: usize = 512;

/// From this number of routes on, a call that changes at least half of the table's routes is one change for readers.
const LOAD: usize = 1 << 16;

impl Live {
    /// Refuses to wait for threads that a child of fork() does not have.
    fn check_process(&self) -> Outcome<()> {
        match process::id() == self.process {
            true => Ok(()),
            false => Err("this process is a child of the one that made the table, whose threads it does not have; \
                          make a table of its own after fork()".into()),
        }
    }

    fn flush(&self, most: Duration) -> Outcome<()> {
        if self.table.flush_within(most)? {
            return Ok(());
        }
        let newest = |number: Option<u64>| number.unwrap_or(0);
        let v4 = newest(self.table.current::<u32>(0).map(|table| table.number()));
        let v6 = newest(self.table.current::<u128>(0).map(|table| table.number()));
        let behind = lock(&self.readers).behind([("IPv4", v4), ("IPv6", v6)]);
        Err(match behind.is_empty() {
            true => format!("the changes are not visible after {} ms", most.as_millis()),
            false => format!(
                "the changes are not visible after {} ms: {}; readers are counted from 1, in the order in which they were made",
                most.as_millis(),
                behind.join(", ")
            ),
        }
        .into())
    }

    /// Adds routes, or gives them other values. If one is wrong, nothing changes.
    fn set(&self, routes: &[Route]) -> Outcome<()> {
        check(routes, Route::checked)?;
        let Some(_hold) = self.hold(routes.len()) else {
            return routes.chunks(CHUNK).try_for_each(|routes| self.set_all(routes.iter()));
        };
        // Neighbours in the table one after another: other orders take up to four times as long.
        let mut order: Vec<_> = (0..).zip(routes).map(|(at, of)| (of.start(), at)).collect();
        order.sort_unstable();
        let all = |order: &[(u64, usize)]| self.set_all(order.iter().map(|&(_, at)| &routes[at]));
        order.chunks(CHUNK).try_for_each(all)
    }

    fn set_all<'a>(&self, routes: impl Iterator<Item = &'a Route> + Clone) -> Outcome<()> {
        let values: Vec<_> = routes.clone().map(|of| [Value::Int(of.value().into())]).collect();
        let changes = values.iter().map(|value| Change::Announce(Attributes::Values(value)));
        self.apply(routes.zip(changes))
    }

    /// Removes routes. If one is wrong, nothing changes.
    fn remove(&self, routes: &[Route]) -> Outcome<()> {
        check(routes, Route::prefix)?;
        let _hold = self.hold(routes.len());
        let mut chunks = routes.chunks(CHUNK);
        chunks.try_for_each(|chunk| self.apply(chunk.iter().map(|of| (of, Change::Withdraw))))
    }

    /// Makes one table of so many changes, if that is faster than to patch them in.
    fn hold(&self, count: usize) -> Option<Hold<'_>> {
        let routes = |rib: &Rib| rib.len::<u32>(0) + rib.len::<u128>(0);
        let is_load = count >= LOAD && count >= self.table.with_rib(routes) / 2;
        is_load.then(|| self.table.hold())
    }

    fn apply<'a, 'b>(&self, changes: impl Iterator<Item = (&'b Route, Change<'a>)>) -> Outcome<()> {
        let update = |(route, change): (&Route, _)| {
            Ok(Update { peer: self.peer, ..Update::new(route.prefix()?, change) })
        };
        Ok(self.table.apply_all(&changes.map(update).collect::<Outcome<Vec<_>>>()?)?)
    }
}

/// A list of readers is whole between any two of its statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `fibula_reader` of the header.
pub struct Reader {
    held: Arc<Held>,
    v4: OfFamily<u32>,
    v6: OfFamily<u128>,
}

struct OfFamily<A: Addr> {
    reader: fibula_rib::Reader<A>,
    values: Values,
}

/// The values of the hops of one generation.
struct Values {
    /// Its number; 0 if the reader holds none.
    generation: u64,
    /// Where they come from. Generations share most of them.
    chunks: Vec<Arc<AttributeChunk>>,
    /// With `NONE` at the end, which every hop without a value takes.
    values: Vec<u32>,
}

impl Values {
    /// Takes over what differs in another generation.
    #[cold]
    fn renew(&mut self, generation: u64, table: &AttributeTable) {
        for (at, chunk) in table.chunks().iter().enumerate() {
            let begin = at * chunk.len();
            match self.chunks.get_mut(at) {
                Some(known) if Arc::ptr_eq(known, chunk) => continue,
                Some(known) => *known = Arc::clone(chunk),
                None => {
                    self.chunks.push(Arc::clone(chunk));
                    self.values.resize(begin + chunk.len() + 1, NONE);
                }
            }
            for (value, set) in self.values[begin..].iter_mut().zip(chunk.iter()) {
                *value = match set.as_ref().map(|set| set.values()).as_deref() {
                    Some([Value::Int(number)]) => *number as u32, // it was one
                    _ => NONE,
                };
            }
        }
        self.generation = generation;
    }
}

impl<A: Addr> OfFamily<A> {
    fn new(live: &fibula_rib::Live) -> Outcome<Self> {
        let reader = live.reader(0).ok_or("the table is not compiled")?;
        let values = Values { generation: 0, chunks: Vec::new(), values: vec![NONE] };
        Ok(Self { reader, values })
    }

    /// Prepares lookups in the newest generation, and notes in `held` which one it is.
    fn lookup(&mut self, held: &AtomicU64) -> impl Fn(&[A], &mut [Hop]) {
        let table = self.reader.pin();
        if table.number() != self.values.generation {
            held.store(table.number(), Ordering::Relaxed);
            self.values.renew(table.number(), table.attribute_table());
        }
        let values = &*self.values.values;
        let last = values.len() - 1;
        move |addresses, rows| {
            table.lookup_batch(addresses, rows);
            for row in rows {
                // No branch: it would be mispredicted where some addresses have no route.
                *row = Hop::from_bits(values[(row.to_bits() as usize).min(last)]);
            }
        }
    }

    fn release(&mut self, held: &AtomicU64) {
        self.reader.release();
        self.values.generation = 0;
        held.store(0, Ordering::Relaxed);
    }
}

/// A table without routes.
#[unsafe(no_mangle)]
pub extern "C" fn fibula_live_new(collect_ms: u32) -> *mut Live {
    guarded(ptr::null_mut(), || {
        let mut options = LiveOptions::default();
        options.pacing.bucket = Duration::from_millis(collect_ms.into());
        let engines = FibOptions::default();
        // Events are dropped: functions return errors, and a table that fails the audit is rebuilt.
        let table = fibula_rib::Live::start(Rib::default(), &[0], engines, options, |_| ())?;
        let peer = table.peer(Peer::new(None, 0));
        let (process, readers) = (process::id(), Mutex::default());
        Ok(Box::into_raw(Box::new(Live { table, peer, process, readers })))
    })
}

/// Frees a table.
///
/// # Safety
/// As the header says of `fibula_live_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_free(live: *mut Live) {
    // SAFETY: a table, or NULL.
    match unsafe { live.as_ref() } {
        // A child of fork() cannot wait for the end of threads that it does not have. It keeps the memory.
        Some(table) if table.check_process().is_err() => {}
        // SAFETY: it is of `fibula_live_new`, and C gives it up.
        _ => unsafe { free(live) },
    }
}

/// Adds routes, or gives them other values.
///
/// # Safety
/// As the header says of `fibula_live_set`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_set(
    live: *mut Live,
    routes: *const Route,
    count: usize,
) -> bool {
    guarded(false, || {
        // SAFETY: a table, and an array of `count`.
        let (live, routes) = unsafe { (&*live, array(routes, count)) };
        live.check_process()?;
        live.set(routes)?;
        Ok(true)
    })
}

/// Removes routes.
///
/// # Safety
/// As the header says of `fibula_live_remove`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_remove(
    live: *mut Live,
    routes: *const Route,
    count: usize,
) -> bool {
    guarded(false, || {
        // SAFETY: a table, and an array of `count`.
        let (live, routes) = unsafe { (&*live, array(routes, count)) };
        live.check_process()?;
        live.remove(routes)?;
        Ok(true)
    })
}

/// Waits until readers see all changes, for at most `most_ms` milliseconds.
///
/// # Safety
/// As the header says of `fibula_live_flush`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_flush(live: *mut Live, most_ms: u32) -> bool {
    guarded(false, || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        live.check_process()?;
        live.flush(Duration::from_millis(most_ms.into()))?;
        Ok(true)
    })
}

/// A reader of the table.
///
/// # Safety
/// As the header says of `fibula_reader_new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_new(live: *const Live) -> *mut Reader {
    guarded(ptr::null_mut(), || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        let (v4, v6) = (OfFamily::new(&live.table)?, OfFamily::new(&live.table)?);
        let reader = Reader { held: lock(&live.readers).add(), v4, v6 };
        Ok(Box::into_raw(Box::new(reader)))
    })
}

/// Frees a reader.
///
/// # Safety
/// As the header says of `fibula_reader_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_free(reader: *mut Reader) {
    // SAFETY: it is of `fibula_reader_new`, and C gives it up.
    unsafe { free(reader) };
}

/// Looks up IPv4 addresses.
///
/// # Safety
/// As the header says of `fibula_reader_lookup4`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_lookup4(
    reader: *mut Reader,
    addresses: *const u32,
    values: *mut u32,
    count: usize,
) {
    // SAFETY: a reader that no other thread uses, and arrays of `count`.
    let (reader, addresses, values) =
        unsafe { (&mut *reader, array(addresses, count), results(values, count)) };
    reader.v4.lookup(&reader.held.v4)(addresses, values);
}

/// Looks up IPv6 addresses.
///
/// # Safety
/// As the header says of `fibula_reader_lookup6`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_lookup6(
    reader: *mut Reader,
    addresses: *const c_void,
    values: *mut u32,
    count: usize,
) {
    // SAFETY: a reader that no other thread uses, and arrays of `count`.
    let (reader, addresses, values) =
        unsafe { (&mut *reader, array(addresses.cast(), count), results(values, count)) };
    in_blocks(addresses, values, reader.v6.lookup(&reader.held.v6));
}

/// Gives back the tables that the reader holds.
///
/// # Safety
/// As the header says of `fibula_reader_release`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_release(reader: *mut Reader) {
    // SAFETY: a reader that no other thread uses.
    let reader = unsafe { &mut *reader };
    reader.v4.release(&reader.held.v4);
    reader.v6.release(&reader.held.v6);
}
