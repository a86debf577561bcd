use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

/// What a forwarding table does with the packets of a route, as a kernel or a routing daemon has
/// resolved it.
///
/// A set: whoever keeps it sorts [`NextHops::hops`], so the order in which a feed lists equal-cost
/// paths makes no difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NextHops {
    /// What happens to the packets.
    pub kind: RouteKind,
    /// Where they are sent: one next hop, or several that share them; none if they are not forwarded.
    pub hops: Vec<NextHop>,
}

/// What happens to the packets of a route, numbered as `rtm_type` of Linux numbers it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RouteKind {
    /// They are sent to a next hop.
    #[default]
    Unicast = 1,
    /// They are for this machine.
    Local = 2,
    /// They are dropped without a word.
    Blackhole = 6,
    /// They are dropped, their sender hears that the network is unreachable.
    Unreachable = 7,
    /// They are dropped, their sender hears that this is prohibited.
    Prohibit = 8,
}

impl RouteKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Unicast, Self::Local, Self::Blackhole, Self::Unreachable, Self::Prohibit];

    /// The kind of this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The name, as `ip route` prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unicast => "unicast",
            Self::Local => "local",
            Self::Blackhole => "blackhole",
            Self::Unreachable => "unreachable",
            Self::Prohibit => "prohibit",
        }
    }
}

impl fmt::Display for RouteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One of the next hops of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NextHop {
    /// The router that takes the packets; `None` if their destination is on the link itself. An IPv4
    /// route may have an IPv6 gateway.
    pub gateway: Option<IpAddr>,
    /// The index of the interface; `None` if the feed does not say.
    pub interface: Option<u32>,
    /// Its share of the packets, in proportion to the others' weights; 1 where nothing is said.
    pub weight: u32,
}

impl NextHop {
    /// The router at this address, whatever the interface, with weight 1.
    pub fn via(gateway: IpAddr) -> Self {
        Self { gateway: Some(gateway), interface: None, weight: 1 }
    }
}

impl fmt::Display for NextHops {
    /// `via 192.0.2.1 interface 2`, several separated by commas, weights where one is not 1; the kind
    /// where it is not unicast.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_weights = self.hops.iter().any(|hop| hop.weight != 1);
        let mut between = "";
        if self.kind != RouteKind::Unicast || self.hops.is_empty() {
            write!(f, "{}", self.kind)?;
            between = " ";
        }
        for hop in &self.hops {
            f.write_str(between)?;
            match hop.gateway {
                Some(gateway) => write!(f, "via {gateway}")?,
                None => f.write_str("on the link")?,
            }
            if let Some(interface) = hop.interface {
                write!(f, " interface {interface}")?;
            }
            if has_weights {
                write!(f, " weight {}", hop.weight)?;
            }
            between = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    #[test]
    fn numbers_and_names_are_those_of_linux() {
        let numbers = RouteKind::ALL.map(|kind| (kind as u8, kind.name()));
        let expected =
            [(1, "unicast"), (2, "local"), (6, "blackhole"), (7, "unreachable"), (8, "prohibit")];
        assert_eq!(numbers, expected);
        assert!((0..=u8::MAX).filter_map(RouteKind::from_number).eq(RouteKind::ALL));
    }

    #[test]
    fn sets_are_readable() {
        let via = |last| NextHop::via([192, 0, 2, last].into());
        let link = NextHop { gateway: None, interface: Some(3), weight: 2 };
        for (kind, hops, text) in [
            (RouteKind::Unicast, vec![via(1)], "via 192.0.2.1"),
            (
                RouteKind::Unicast,
                vec![link, via(1)],
                "on the link interface 3 weight 2, via 192.0.2.1 weight 1",
            ),
            (RouteKind::Blackhole, vec![], "blackhole"),
            (RouteKind::Unicast, vec![], "unicast"),
            (
                RouteKind::Local,
                vec![NextHop { weight: 1, ..link }],
                "local on the link interface 3",
            ),
        ] {
            assert_eq!(NextHops { kind, hops }.to_string(), text);
        }
    }
}
