//! Tables that change while they are read.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use fibula_core::{Addr, AnyPrefix, Attributes, Change, Hop, Update, Value};
use fibula_fib::FibOptions;
use fibula_rib::{AttributeChunk, AttributeTable, LiveOptions, Peer, Rib};

use crate::error::{Outcome, guarded};
use crate::route::{NONE, Route, all};
use crate::{array, free, in_blocks, results};

/// `fibula_live` of the header.
pub struct Live {
    table: fibula_rib::Live,
    peer: u32,
}

/// Number of routes whose updates are made and applied together.
const CHUNK: usize = 512;

impl Live {
    /// Gives the routes these values. They have been checked, so that a wrong one has changed nothing.
    fn set(&self, routes: &[(AnyPrefix, u32)]) -> Outcome<()> {
        for routes in routes.chunks(CHUNK) {
            let values: Vec<_> =
                routes.iter().map(|&(_, value)| [Value::Int(value.into())]).collect();
            let changes = values.iter().map(|value| Change::Announce(Attributes::Values(value)));
            self.apply(routes.iter().map(|&(prefix, _)| prefix).zip(changes))?;
        }
        Ok(())
    }

    fn remove(&self, prefixes: &[AnyPrefix]) -> Outcome<()> {
        let mut chunks = prefixes.chunks(CHUNK);
        chunks.try_for_each(|chunk| {
            self.apply(chunk.iter().map(|&prefix| (prefix, Change::Withdraw)))
        })
    }

    fn apply<'a>(&self, changes: impl Iterator<Item = (AnyPrefix, Change<'a>)>) -> Outcome<()> {
        let update = |(prefix, change)| Update { peer: self.peer, ..Update::new(prefix, change) };
        Ok(self.table.apply_all(&changes.map(update).collect::<Vec<_>>())?)
    }
}

/// `fibula_reader` of the header.
pub struct Reader {
    v4: OfFamily<u32>,
    v6: OfFamily<u128>,
}

struct OfFamily<A: Addr> {
    reader: fibula_rib::Reader<A>,
    values: Values,
}

/// The values of the hops of one generation.
#[derive(Default)]
struct Values {
    generation: u64,
    /// Where they come from. Generations share most of them.
    chunks: Vec<Arc<AttributeChunk>>,
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
                    self.values.resize(begin + chunk.len(), NONE);
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
        Ok(Self { reader, values: Values::default() })
    }

    /// Prepares lookups in the newest generation.
    fn lookup(&mut self) -> impl Fn(&[A], &mut [Hop]) {
        let table = self.reader.pin();
        if table.number() != self.values.generation {
            self.values.renew(table.number(), table.attribute_table());
        }
        let values = &*self.values.values;
        move |addresses, rows| {
            table.lookup_batch(addresses, rows);
            for row in rows {
                let value = values.get(row.to_bits() as usize).copied();
                *row = Hop::from_bits(value.unwrap_or(NONE));
            }
        }
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
        Ok(Box::into_raw(Box::new(Live { table, peer })))
    })
}

/// Frees a table.
///
/// # Safety
/// As the header says of `fibula_live_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_free(live: *mut Live) {
    // SAFETY: it is of `fibula_live_new`, and C gives it up.
    unsafe { free(live) };
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
        live.set(&all(routes, Route::checked)?)?;
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
        live.remove(&all(routes, Route::prefix)?)?;
        Ok(true)
    })
}

/// Waits until readers see all changes.
///
/// # Safety
/// As the header says of `fibula_live_flush`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_flush(live: *mut Live) -> bool {
    guarded(false, || {
        // SAFETY: a table.
        unsafe { &*live }.table.flush()?;
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
        let table = &unsafe { &*live }.table;
        let reader = Reader { v4: OfFamily::new(table)?, v6: OfFamily::new(table)? };
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
    reader.v4.lookup()(addresses, values);
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
    in_blocks(addresses, values, reader.v6.lookup());
}

/// Gives back the tables that the reader holds.
///
/// # Safety
/// As the header says of `fibula_reader_release`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_reader_release(reader: *mut Reader) {
    // SAFETY: a reader that no other thread uses.
    let reader = unsafe { &mut *reader };
    reader.v4.reader.release();
    reader.v6.reader.release();
}
