//! What the RFCs say of each path attribute: its code, its flags, the length of its parts.

use super::attributes::AttributeContext;
use super::cursor::{Cursor, DecodeFault};

pub(super) const ORIGIN: u8 = 1;
pub(super) const AS_PATH: u8 = 2;
pub(super) const NEXT_HOP: u8 = 3;
pub(super) const MULTI_EXIT_DISC: u8 = 4;
pub(super) const LOCAL_PREF: u8 = 5;
pub(super) const ATOMIC_AGGREGATE: u8 = 6;
pub(super) const AGGREGATOR: u8 = 7;
pub(super) const COMMUNITIES: u8 = 8;
pub(super) const ORIGINATOR_ID: u8 = 9;
pub(super) const CLUSTER_LIST: u8 = 10;
pub(super) const MP_REACH_NLRI: u8 = 14;
pub(super) const MP_UNREACH_NLRI: u8 = 15;
pub(super) const EXTENDED_COMMUNITIES: u8 = 16;
pub(super) const AS4_PATH: u8 = 17;
pub(super) const AS4_AGGREGATOR: u8 = 18;
pub(super) const IPV6_EXTENDED_COMMUNITIES: u8 = 25;
pub(super) const LARGE_COMMUNITIES: u8 = 32;
pub(super) const ONLY_TO_CUSTOMER: u8 = 35;

pub(super) fn name(code: u8) -> &'static str {
    match code {
        ORIGIN => "ORIGIN",
        AS_PATH => "AS_PATH",
        NEXT_HOP => "NEXT_HOP",
        MULTI_EXIT_DISC => "MULTI_EXIT_DISC",
        LOCAL_PREF => "LOCAL_PREF",
        ATOMIC_AGGREGATE => "ATOMIC_AGGREGATE",
        AGGREGATOR => "AGGREGATOR",
        COMMUNITIES => "COMMUNITIES",
        ORIGINATOR_ID => "ORIGINATOR_ID",
        CLUSTER_LIST => "CLUSTER_LIST",
        MP_REACH_NLRI => "MP_REACH_NLRI",
        MP_UNREACH_NLRI => "MP_UNREACH_NLRI",
        EXTENDED_COMMUNITIES => "EXTENDED_COMMUNITIES",
        AS4_PATH => "AS4_PATH",
        AS4_AGGREGATOR => "AS4_AGGREGATOR",
        IPV6_EXTENDED_COMMUNITIES => "IPV6_EXTENDED_COMMUNITIES",
        LARGE_COMMUNITIES => "LARGE_COMMUNITY",
        ONLY_TO_CUSTOMER => "ONLY_TO_CUSTOMER",
        _ => "path attribute",
    }
}

/// Checks that an attribute is optional and transitive as its RFC requires (RFC 7606, 3.c). Tables are not checked,
/// because collectors write arbitrary flags.
pub(super) fn check_flags(
    flags: u8,
    code: u8,
    value: Cursor<'_>,
    context: AttributeContext,
) -> Result<(), DecodeFault> {
    const OPTIONAL: u8 = 0x80;
    const TRANSITIVE: u8 = 0x40;
    let wanted = match code {
        ORIGIN | AS_PATH | NEXT_HOP | LOCAL_PREF => TRANSITIVE,
        ATOMIC_AGGREGATE => TRANSITIVE,
        MULTI_EXIT_DISC | MP_REACH_NLRI | MP_UNREACH_NLRI => OPTIONAL,
        ORIGINATOR_ID | CLUSTER_LIST => OPTIONAL,
        AGGREGATOR | COMMUNITIES | LARGE_COMMUNITIES => OPTIONAL | TRANSITIVE,
        EXTENDED_COMMUNITIES | IPV6_EXTENDED_COMMUNITIES => OPTIONAL | TRANSITIVE,
        AS4_PATH | AS4_AGGREGATOR | ONLY_TO_CUSTOMER => OPTIONAL | TRANSITIVE,
        _ => return Ok(()),
    };
    match flags & (OPTIONAL | TRANSITIVE) {
        given if given == wanted || context == AttributeContext::Table => Ok(()),
        given => {
            let text = |bits| match bits {
                0 => "neither optional nor transitive",
                OPTIONAL => "optional and not transitive",
                TRANSITIVE => "transitive and not optional",
                _ => "optional and transitive",
            };
            let (name, given, wanted) = (name(code), text(given), text(wanted));
            Err(value.fault(format!("{name} is marked {given}, it must be {wanted}")))
        }
    }
}

/// The length of the parts of an attribute that is a list.
pub(super) fn list_of(code: u8) -> Option<usize> {
    match code {
        COMMUNITIES | CLUSTER_LIST => Some(4),
        EXTENDED_COMMUNITIES => Some(8),
        LARGE_COMMUNITIES => Some(12),
        IPV6_EXTENDED_COMMUNITIES => Some(20),
        _ => None,
    }
}

/// Whether an attribute is marked well-known, which those that are read here are not.
pub(super) fn is_unrecognized(flags: u8, code: u8) -> bool {
    let is_read = matches!(
        code,
        ORIGIN..=CLUSTER_LIST
            | MP_REACH_NLRI..=AS4_AGGREGATOR
            | IPV6_EXTENDED_COMMUNITIES
            | LARGE_COMMUNITIES
            | ONLY_TO_CUSTOMER
    );
    flags & 0x80 == 0 && !is_read
}
