//! RTM_NEWNEXTHOP and RTM_DELNEXTHOP: next-hop objects, to which routes refer by number.
//!
//! ```text
//! family 1 | scope 1 | protocol 1 | reserved 1 | flags 4 | attributes
//! ```

use fibula_core::NextHop;

use super::route::{NEXT_HOP_DEAD, Single, gateway, interface};
use super::wire::Part;
use crate::bgp::DecodeFault;

/// Attributes of a next-hop object.
mod attribute {
    pub(super) const ID: u16 = 1;
    pub(super) const GROUP: u16 = 2;
    pub(super) const BLACKHOLE: u16 = 4;
    pub(super) const OIF: u16 = 5;
    pub(super) const GATEWAY: u16 = 6;
    pub(super) const FDB: u16 = 11;
}

/// The meaning of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Hop(NextHop),
    Blackhole,
    Group(Vec<Member>),
    /// Its interface is down, or it is nothing that forwards IP.
    Nothing,
}

/// A member of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) id: u32,
    pub(super) weight: u32,
}

/// Reads the body of a message: the object's number and its content.
pub(super) fn read(mut body: Part<'_>) -> Result<(u32, Content), DecodeFault> {
    let start = body;
    body.array::<4>("the next hop's header")?;
    let flags = u32::from_ne_bytes(body.array("the next hop's flags")?);
    let (mut id, mut single) = (0, Single::default());
    let mut content = None;
    while let Some((kind, value)) = body.attribute()? {
        match kind {
            attribute::ID => id = value.u32("NHA_ID")?,
            attribute::OIF => single.interface = interface(value.u32("NHA_OIF")?),
            attribute::GATEWAY => single.gateway = gateway(value.address("NHA_GATEWAY")?),
            attribute::GROUP => content = Some(Content::Group(group(value)?)),
            attribute::BLACKHOLE => content = Some(Content::Blackhole),
            attribute::FDB => content = Some(Content::Nothing),
            _ => {}
        }
    }
    if id == 0 {
        return Err(start.fault("a next hop without a number"));
    }
    let is_dead = flags & u32::from(NEXT_HOP_DEAD) != 0;
    let hop = if is_dead { None } else { single.hop() };
    Ok((id, content.or(hop.map(Content::Hop)).unwrap_or(Content::Nothing)))
}

/// NHA_GROUP: `number 4 | low byte of weight - 1 1 | its high byte 1 | reserved 2`, for each member. Kernels
/// before 6.12 leave the high byte zero.
fn group(mut value: Part<'_>) -> Result<Vec<Member>, DecodeFault> {
    let mut members = Vec::with_capacity(value.data.len() / 8);
    while !value.data.is_empty() {
        let [a, b, c, d, low, high, _, _] = value.array("a member of a group")?;
        let weight = u32::from(u16::from_le_bytes([low, high])) + 1;
        members.push(Member { id: u32::from_ne_bytes([a, b, c, d]), weight });
    }
    Ok(members)
}
