//! The routes of a changing table.

use std::ffi::c_void;

use fibula_core::{Addr, AnyPrefix, Prefix};

use super::Live;
use super::table::State;
use crate::error::{Outcome, guarded};
use crate::route::{Route, address, is_v6};
use crate::{address_bytes, room};

/// The value of a prefix.
fn exact(state: &mut State, prefix: AnyPrefix) -> Option<u64> {
    match prefix {
        AnyPrefix::V4(prefix) => state.tables.v4.exact(prefix),
        AnyPrefix::V6(prefix) => state.tables.v6.exact(prefix),
    }
}

/// Calls `each` with the routes that cover a prefix, longest first, until it returns false.
fn covering(state: &mut State, prefix: AnyPrefix, each: impl FnMut(Route) -> bool) {
    fn family<A: Addr>(state: &mut State, prefix: Prefix<A>, mut each: impl FnMut(Route) -> bool) {
        let found = state.tables.get_mut::<A>().covering(prefix);
        let routes = found.map(|(prefix, value)| Route::new(prefix.into(), value));
        let _ = routes.take_while(|route| each(*route)).count();
    }
    match prefix {
        AnyPrefix::V4(prefix) => family(state, prefix, each),
        AnyPrefix::V6(prefix) => family(state, prefix, each),
    }
}

/// Writes the routes within a prefix that sort behind another one, as many as have room. Returns their number.
fn walk<A: Addr>(
    state: &mut State,
    within: Prefix<A>,
    after: Option<&Route>,
    routes: &mut [Route],
) -> Outcome<usize> {
    let after = match after {
        Some(after) => Some(after.of::<A>().ok_or("the two prefixes are not of one family")?),
        None => None,
    };
    let found = state.tables.get_mut::<A>().walk(within, after);
    let mut count = 0;
    for (to, (prefix, value)) in routes.iter_mut().zip(found) {
        *to = Route::new(prefix.into(), value);
        count += 1;
    }
    Ok(count)
}

/// Number of routes.
///
/// # Safety
/// As the header says of `fibula_live_count`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_count(live: *const Live, family: u8) -> usize {
    guarded(usize::MAX, || {
        // SAFETY: a table.
        let live = unsafe { &*live };
        live.process.check()?;
        let is_v6 = is_v6(family)?;
        let mut state = live.table.lock()?;
        Ok(if is_v6 { state.tables.v6.len() } else { state.tables.v4.len() })
    })
}

/// The value of a prefix.
///
/// # Safety
/// As the header says of `fibula_live_find`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_find(live: *const Live, route: *mut Route) -> bool {
    guarded(false, || {
        // SAFETY: a table, and a route that nobody else uses.
        let (live, route) = unsafe { (&*live, &mut *route) };
        live.process.check()?;
        let prefix = route.prefix()?;
        let mut state = live.table.lock()?;
        let value = exact(&mut state, prefix);
        *route = Route::new(prefix, value.ok_or("there is no route of this prefix")?);
        Ok(true)
    })
}

/// The longest match of an address.
///
/// # Safety
/// As the header says of `fibula_live_match`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_match(
    live: *const Live,
    family: u8,
    bytes: *const c_void,
    route: *mut Route,
) -> bool {
    guarded(false, || {
        // SAFETY: a table, and an address of this family.
        let (live, bytes) = unsafe { (&*live, address_bytes(family, bytes)) };
        live.process.check()?;
        let host = AnyPrefix::host(address(family, bytes)?);
        let mut longest = None;
        let mut state = live.table.lock()?;
        covering(&mut state, host, |found| {
            longest = Some(found);
            false
        });
        let longest = longest.ok_or("no route covers the address")?;
        // SAFETY: there is room for a route.
        unsafe { route.write(longest) };
        Ok(true)
    })
}

/// The routes that cover a prefix.
///
/// # Safety
/// As the header says of `fibula_live_covering`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_covering(
    live: *const Live,
    prefix: *const Route,
    routes: *mut Route,
    room: usize,
) -> usize {
    guarded(usize::MAX, || {
        // SAFETY: a table, a route, and room for as many.
        let (live, prefix, routes) = unsafe { (&*live, *prefix, self::room(routes, room)) };
        live.process.check()?;
        let prefix = prefix.prefix()?;
        let mut count = 0;
        let mut state = live.table.lock()?;
        covering(&mut state, prefix, |found| {
            if let Some(to) = routes.get_mut(count) {
                *to = found;
            }
            count += 1;
            true
        });
        Ok(count)
    })
}

/// The routes within a prefix.
///
/// # Safety
/// As the header says of `fibula_live_walk`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fibula_live_walk(
    live: *const Live,
    within: *const Route,
    after: *const Route,
    routes: *mut Route,
    room: usize,
) -> usize {
    guarded(usize::MAX, || {
        // SAFETY: a table, a route, another one or NULL, copied since both may be among those that are written, and
        // room for as many.
        let (live, within, after, routes) =
            unsafe { (&*live, *within, after.as_ref().copied(), self::room(routes, room)) };
        live.process.check()?;
        let within = within.prefix()?;
        let mut state = live.table.lock()?;
        match within {
            AnyPrefix::V4(within) => walk(&mut state, within, after.as_ref(), routes),
            AnyPrefix::V6(within) => walk(&mut state, within, after.as_ref(), routes),
        }
    })
}
