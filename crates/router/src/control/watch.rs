//! Follows the kernel's links: dumps, listens, and dumps again if information may be missing. It does no I/O and
//! reads no clock.

use std::net::IpAddr;
use std::time::Duration;

use fibula_ingest::netlink::{
    LinkDump, LinkMessage, LinkNews, NeighbourState, Reply, ask_for_neighbour,
};

use super::links::Links;

/// Sequence numbers of questions for neighbours have this bit, those of dumps have not.
const QUESTION: u32 = 1 << 31;

/// How long the kernel may take for an answer, and how long to wait after a dump that failed.
const PATIENCE: Duration = Duration::from_secs(5);

/// The state of a conversation with the kernel.
#[derive(Debug, Default)]
pub(super) struct Watch {
    sequence: u32,
    /// The part that is being dumped.
    part: Option<LinkDump>,
    /// The dump that runs lacks something.
    is_interrupted: bool,
    /// When to dump again if nothing happens before.
    deadline: Option<Duration>,
    news: LinkNews,
    pub(super) figures: Watched,
}

/// The counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Number of requested dumps.
    pub dumps: u64,
    /// Number of dumps interrupted by changes.
    pub interrupted: u64,
    /// Number of messages that could not be decoded.
    pub damaged: u64,
    /// Number of neighbour requests that the kernel refused.
    pub refused: u64,
}

/// The result of a datagram.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Came {
    /// Whether something changed that affects packets.
    pub(super) is_changed: bool,
    /// Whether an interface changed.
    pub(super) interfaces: bool,
    /// One complete dump has been received.
    pub(super) is_complete: bool,
    /// Neighbours that the kernel will forget unless they are probed.
    pub(super) stale: Vec<(u32, IpAddr)>,
    /// The first error by which a question was refused.
    pub(super) refused: Option<u32>,
    /// The damage of the datagram, if it is the first damage.
    pub(super) damage: Option<String>,
}

impl Watch {
    /// Requests a dump of everything.
    pub(super) fn dump(&mut self, now: Duration, links: &mut Links, out: &mut Vec<u8>) {
        links.begin();
        self.figures.dumps += 1;
        self.is_interrupted = false;
        self.ask(now, LinkDump::Interfaces, out);
    }

    fn ask(&mut self, now: Duration, part: LinkDump, out: &mut Vec<u8>) {
        self.sequence = (self.sequence + 1) & !QUESTION;
        self.part = Some(part);
        self.deadline = Some(now + PATIENCE);
        part.ask(self.sequence, out);
    }

    /// Requests the resolution of a neighbour.
    pub(super) fn question(&mut self, interface: u32, address: IpAddr, out: &mut Vec<u8>) {
        ask_for_neighbour(interface, address, QUESTION, out);
    }

    /// When [`Watch::dump`] is due.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// Processes a datagram. Appends the messages to send to `out`.
    pub(super) fn datagram(
        &mut self,
        now: Duration,
        bytes: &[u8],
        links: &mut Links,
        out: &mut Vec<u8>,
    ) -> Came {
        let mut news = std::mem::take(&mut self.news);
        news.messages.clear();
        (news.damaged, news.damage, news.interrupted) = (0, None, false);
        news.read(bytes);
        let mut came = Came::default();
        if news.damaged > 0 {
            came.damage = news.damage.take().filter(|_| self.figures.damaged == 0);
            self.figures.damaged += news.damaged;
        }
        if news.interrupted && self.part.is_some() && !self.is_interrupted {
            self.is_interrupted = true;
            self.figures.interrupted += 1;
        }
        for message in news.messages.drain(..) {
            match message {
                LinkMessage::Reply(reply) => self.reply(now, reply, links, out, &mut came),
                message => {
                    if let LinkMessage::Neighbour(n) = &message
                        && n.state == NeighbourState::Stale
                    {
                        came.stale.push((n.interface, n.address));
                    }
                    let is_interface = matches!(
                        message,
                        LinkMessage::Interface(_) | LinkMessage::InterfaceGone(_)
                    );
                    let is_changed = links.apply(message);
                    came.is_changed |= is_changed;
                    came.interfaces |= is_changed && is_interface;
                }
            }
        }
        self.news = news;
        came
    }

    fn reply(
        &mut self,
        now: Duration,
        reply: Reply,
        links: &mut Links,
        out: &mut Vec<u8>,
        came: &mut Came,
    ) {
        if reply.sequence & QUESTION != 0 {
            if reply.error != 0 {
                self.figures.refused += 1;
                came.refused.get_or_insert(reply.error);
            }
            return;
        }
        let Some(part) = self.part.filter(|_| reply.sequence == self.sequence) else { return };
        if reply.error != 0 {
            // Again once the deadline has passed.
            self.part = None;
            return;
        }
        if let Some(next) = part.next() {
            return self.ask(now, next, out);
        }
        (self.part, self.deadline) = (None, None);
        if self.is_interrupted {
            return self.dump(now, links, out);
        }
        came.is_changed |= links.sweep();
        came.interfaces = true;
        came.is_complete = true;
    }
}
