//! The schemes that have kernels. Each file says how the engine's tables become the parts of an image, and has the
//! walk: the lookup of one address in plain code. The kernel of the same name does the same.

mod bloomfwd;
mod dir24_8;
pub(crate) mod gather;
mod planb;
mod runmap;
mod sail_l;
mod wideleaf;

use std::borrow::Cow;
use std::ptr;

use bytemuck::Pod;
use fibula_core::{Family, TableRef};

use crate::image::Form;

/// The engines whose tables have kernels.
pub(crate) const ENGINES: &[&str] =
    &["runmap", "dir24-8", "sail-l", "planb", "wideleaf", "bloomfwd"];

/// The parts and the numbers of an image.
pub(crate) struct Plan<'a> {
    pub(crate) form: &'static Form,
    pub(crate) parts: Vec<Cow<'a, [u8]>>,
    pub(crate) words: Vec<u32>,
}

/// The image of these tables; `None` if the scheme has no kernel.
pub(crate) fn plan<'a>(
    family: Family,
    engine: &str,
    tables: &'a [TableRef<'a>],
) -> Option<Plan<'a>> {
    let tables = Tables(tables);
    match (family, engine) {
        (Family::V4, "runmap") => runmap::plan(tables),
        (Family::V4, "dir24-8") => dir24_8::plan(tables),
        (Family::V4, "sail-l" | "sail-l-wide") => sail_l::plan(tables),
        (Family::V6, "planb") => planb::plan(tables),
        (Family::V6, "wideleaf") => wideleaf::plan(tables),
        (_, "bloomfwd") => bloomfwd::plan(family, tables),
        _ => None,
    }
}

/// The form for the same tables whose kernel looks up by lanes ([`Image::by_lanes`](crate::Image::by_lanes)).
pub(crate) fn by_lanes(form: &Form) -> Option<&'static Form> {
    let mut forms = planb::FORMS.iter().zip(&planb::BY_LANES);
    forms.find_map(|(one, by_lanes)| ptr::eq(one, form).then_some(by_lanes))
}

/// Whether its kernel looks up by lanes.
pub(crate) fn is_by_lanes(form: &Form) -> bool {
    planb::BY_LANES.iter().any(|by_lanes| ptr::eq(by_lanes, form))
}

/// All forms, those of a file one after the other.
#[cfg(test)]
pub(crate) fn forms() -> impl Iterator<Item = &'static Form> {
    let of_width = [
        &runmap::FORMS[..],
        &dir24_8::FORMS,
        &sail_l::FORMS,
        &planb::FORMS,
        &planb::BY_LANES,
        &wideleaf::FORMS,
        &gather::FORMS,
    ];
    let bloomfwd = bloomfwd::FORMS.iter().map(|forms| &forms[..]);
    of_width.into_iter().chain(bloomfwd).flatten()
}

/// The stored tables of an engine.
#[derive(Clone, Copy)]
struct Tables<'a>(&'a [TableRef<'a>]);

impl<'a> Tables<'a> {
    fn get(self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|table| table.name == name).map(|table| table.bytes)
    }

    /// The first of these tables that there is, and its number.
    fn one_of(self, names: &[&str]) -> Option<(usize, &'a [u8])> {
        names.iter().enumerate().find_map(|(i, name)| Some((i, self.get(name)?)))
    }
}

/// A width of codes.
trait Code: Pod + Into<u32> {}

impl Code for u8 {}
impl Code for u16 {}
impl Code for u32 {}

/// The first number from `first` on that is not below, `end` if all are: those that are below come first.
fn partition_point(mut first: usize, end: usize, is_below: impl Fn(usize) -> bool) -> usize {
    let mut len = end - first;
    while len > 0 {
        let half = len / 2;
        if is_below(first + half) {
            first += half + 1;
            len -= half + 1;
        } else {
            len = half;
        }
    }
    first
}
