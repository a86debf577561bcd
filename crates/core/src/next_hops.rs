use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

/// The action of a forwarding table for the packets of a route, as resolved by a kernel or a routing daemon.
///
/// The next hops are a set: their owner sorts [`NextHops::hops`], so the order in which a feed lists equal-cost paths
/// makes no difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NextHops {
    /// The kind of action.
    pub kind: RouteKind,
    /// The next hops, which share the packets; empty if packets are not forwarded.
    pub hops: Vec<NextHop>,
}

/// The kind of action for the packets of a route, with the numbers of Linux's `rtm_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RouteKind {
    /// Packets are sent to a next hop.
    #[default]
    Unicast = 1,
    /// Packets are delivered to this machine.
    Local = 2,
    /// Packets are dropped silently.
    Blackhole = 6,
    /// Packets are dropped, and the sender gets the error "network unreachable".
    Unreachable = 7,
    /// Packets are dropped, and the sender gets the error "prohibited".
    Prohibit = 8,
}

impl RouteKind {
    /// All kinds.
    pub const ALL: [Self; 5] =
        [Self::Unicast, Self::Local, Self::Blackhole, Self::Unreachable, Self::Prohibit];

    /// The kind with this number.
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
    /// The router that gets the packets; `None` if the destination is on the link itself. An IPv4 route may have an
    /// IPv6 gateway.
    pub gateway: Option<IpAddr>,
    /// The index of the interface; `None` if the feed does not have it.
    pub interface: Option<u32>,
    /// Its share of the packets, in proportion to the weights of the others; 1 by default.
    pub weight: u32,
}

impl NextHop {
    /// A next hop with this router address and weight 1, on any interface.
    pub fn via(gateway: IpAddr) -> Self {
        Self { gateway: Some(gateway), interface: None, weight: 1 }
    }
}

impl fmt::Display for NextHops {
    /// `via 192.0.2.1 interface 2`, several next hops separated by commas, with weights other than 1 and kinds other
    /// than unicast.
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
