//! What a table is made with.

use std::ffi::c_char;
use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use fibula_core::{Addr, Routes};
use fibula_fib::FibOptions;
use fibula_rib::{EngineSource, Maker};

use crate::error::{Outcome, text};
use crate::route::NONE64;

/// `fibula_options` of the header.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    size: usize,
    collect_ms: u32,
    flags: u32,
    default_value: u64,
    engine: *const c_char,
}

/// `FIBULA_WIDE` of the header.
const WIDE: u32 = 1;

/// The options as this library uses them.
pub(super) struct Settings {
    pub(super) collect: Duration,
    pub(super) is_wide: bool,
    pub(super) none: u64,
    pub(super) engines: Arc<Engines>,
}

impl Settings {
    pub(super) fn collecting(collect_ms: u32) -> Self {
        Self {
            collect: Duration::from_millis(collect_ms.into()),
            is_wide: false,
            none: NONE64,
            engines: Arc::new(Engines { options: FibOptions::default(), is_auto: true }),
        }
    }

    /// Reads options.
    ///
    /// # Safety
    /// `options` points to as many bytes as their first field says, and `engine` to a text or is NULL.
    ///
    /// # Errors
    /// If an option is wrong.
    pub(super) unsafe fn of(options: *const Options) -> Outcome<Self> {
        // SAFETY: all options begin with their size.
        let size = unsafe { options.byte_add(offset_of!(Options, size)).cast::<usize>().read() };
        if size != size_of::<Options>() {
            return Err(format!(
                "the options have {size} bytes, and {} in this version: begin with FIBULA_OPTIONS, and compile the \
                 program with the header of version {}",
                size_of::<Options>(),
                env!("CARGO_PKG_VERSION")
            )
            .into());
        }
        // SAFETY: they have that size.
        let Options { collect_ms, flags, default_value, engine, .. } = unsafe { options.read() };
        if flags & !WIDE != 0 {
            return Err(
                format!("the flags are {flags:#x}, of which only FIBULA_WIDE is known").into()
            );
        }
        let mut settings = Self {
            is_wide: flags & WIDE != 0,
            none: default_value,
            ..Self::collecting(collect_ms)
        };
        if !engine.is_null() {
            // SAFETY: a text of C.
            let name = unsafe { text(engine, "the engine's name") }?;
            settings.engines = Arc::new(Engines::named(name)?);
        }
        Ok(settings)
    }
}

/// The engines of a table.
pub(super) struct Engines {
    pub(super) options: FibOptions,
    /// Whether the one is chosen that suits the routes.
    is_auto: bool,
}

/// Below this number of routes, a table is small: many programs have hundreds of such VRFs, and the engine that is the
/// fastest for a large table takes a megabyte however few routes there are.
const SMALL: usize = 512;
/// The engine of small tables.
const OF_SMALL: &str = "planb";

impl Engines {
    fn named(name: &str) -> Outcome<Self> {
        let options = FibOptions::default();
        if !options.registry.knows(name) {
            let known = options.registry.names().join(", ");
            return Err(format!("there is no engine {name:?}; there are: {known}").into());
        }
        Ok(Self { options: options.engines([name]), is_auto: false })
    }
}

impl<A: Addr> EngineSource<A> for Engines {
    fn candidates(&self, routes: &Routes<A>) -> Vec<Maker<A>> {
        let mut makers: Vec<Maker<A>> = self.options.candidates(routes);
        if self.is_auto && routes.len() < SMALL {
            let of_small = makers.iter().position(|maker| maker.name() == OF_SMALL);
            of_small.into_iter().for_each(|at| makers[..=at].rotate_right(1));
        }
        makers
    }
}
