//! What a decoder said, checked against its contract.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;

use fibula_core::{Attributes, Change, Update, Value, Vrf};
use fibula_ingest::{
    ColumnKind, Damage, Decoder, PeerInfo, PeerState, Sink, SourceInfo, StopReason, Tail,
};

/// Checks that every call keeps the contract of [`Sink`], and keeps a digest of all calls: equal
/// digests mean that two decoders said the same. Memory does not grow with the number of updates.
#[derive(Default)]
pub struct Witness {
    info: Option<SourceInfo>,
    peers: HashSet<u32>,
    vrfs: HashSet<Vrf>,
    calls: u64,
    digest: DefaultHasher,
}

impl Witness {
    /// The number of calls and their digest.
    pub fn verdict(&self) -> (u64, u64) {
        (self.calls, self.digest.finish())
    }

    fn note(&mut self, kind: u8, what: impl std::fmt::Debug) {
        self.calls += 1;
        self.digest.write_u8(kind);
        // Writing to a digest cannot fail.
        let _ = write!(Digest(&mut self.digest), "{what:?}");
    }

    /// The options did not fit, or the stream became unreadable; nothing else stops a decoder here.
    fn misfit(mut self, stopped: &StopReason) -> Self {
        assert!(matches!(stopped, StopReason::Misfit(_)), "stopped, though nobody asked for it");
        assert!(self.info.as_ref().is_none_or(|info| info.format == "bmp"));
        self.note(7, stopped);
        self
    }

    fn check_update(&mut self, update: &Update<'_>) {
        let info = self.info.as_ref().expect("an update came before the source began");
        match update.change {
            Change::Announce(Attributes::Values(values)) => {
                assert!(!info.bgp);
                assert_eq!(values.len(), info.columns.len());
                for (value, column) in values.iter().zip(&info.columns) {
                    let fits = match value {
                        Value::Null => true,
                        Value::Int(_) => column.kind == ColumnKind::Int,
                        Value::Str(_) => column.kind == ColumnKind::Str,
                    };
                    assert!(fits, "{value:?} in {column:?}");
                }
            }
            Change::Announce(Attributes::Bgp(_)) => assert!(info.bgp),
            Change::Announce(Attributes::NextHops(_)) => assert!(!info.bgp),
            Change::Withdraw => {}
        }
        assert!(!info.bgp || self.peers.contains(&update.peer), "peer {}", update.peer);
        assert!(update.vrf == 0 || self.vrfs.contains(&update.vrf), "instance {}", update.vrf);
        self.note(0, (update.prefix, update.peer, update.path_id, update.time, update.vrf));
        match update.change {
            Change::Announce(Attributes::Values(values)) => {
                // Parts of one string, shared by many rows, may unfold to gigabytes.
                let short = |value: &Value<'_>| match value {
                    Value::Str(text) => (text.len(), text.bytes().take(64).collect::<Vec<_>>()),
                    Value::Int(value) => (0, value.to_be_bytes().to_vec()),
                    Value::Null => (0, Vec::new()),
                };
                values.iter().for_each(|value| self.note(1, short(value)));
            }
            change => self.note(2, change),
        }
    }
}

impl Sink for Witness {
    fn begin(&mut self, info: &SourceInfo) {
        assert!(self.info.is_none(), "the source began twice");
        self.note(3, info);
        self.info = Some(info.clone());
    }
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        assert!(self.info.is_some());
        self.peers.insert(index);
        self.note(4, (index, peer));
    }
    fn peer_state(&mut self, state: &PeerState) {
        assert!(self.peers.contains(&state.peer), "peer {}", state.peer);
        self.note(5, state);
    }
    fn update(&mut self, update: &Update<'_>) {
        self.check_update(update);
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        self.note(6, damage);
        ControlFlow::Continue(())
    }
    fn vrf(&mut self, index: Vrf, name: &str) {
        assert!(self.info.is_some() && self.vrfs.insert(index), "{index} {name}");
        self.note(9, (index, name));
    }
    fn remark(&mut self, key: &'static str, value: &str) {
        assert!(self.info.is_some());
        self.note(10, (key, value));
    }
    fn end_of_rib(&mut self, peer: u32) {
        assert!(self.peers.contains(&peer), "peer {peer}");
        self.note(11, peer);
    }
    fn noted(&mut self, what: &'static str) {
        assert!(self.info.is_some());
        self.note(12, what);
    }
    fn ignored(&mut self, what: &'static str) {
        assert!(self.info.is_some(), "{what} was ignored before the source began");
        self.note(8, what);
    }
}

struct Digest<'a>(&'a mut DefaultHasher);

impl std::fmt::Write for Digest<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// Feeds `input` to a decoder: first `first` bytes, then `step` more with every call, then its end.
pub fn decode(
    decoder: &mut dyn Decoder,
    input: &[u8],
    (first, step): (usize, usize),
    last: Tail,
) -> Witness {
    let mut sink = Witness::default();
    let (mut start, mut end) = (0, first.min(input.len()));
    loop {
        let taken = match decoder.decode(&input[start..end], Tail::More, &mut sink) {
            Ok(taken) => taken,
            Err(stopped) => return sink.misfit(&stopped),
        };
        assert!(taken <= end - start);
        start += taken;
        if end == input.len() {
            break;
        }
        end = (end + step.max(1)).min(input.len());
    }
    match decoder.decode(&input[start..], last, &mut sink) {
        Ok(taken) => {
            assert_eq!(taken, input.len() - start, "the end takes all");
            assert!(sink.info.is_some(), "the source never began");
            sink
        }
        Err(stopped) => sink.misfit(&stopped),
    }
}

/// Reads `step` bytes at a time, with interruptions.
pub struct Pieces {
    data: Vec<u8>,
    at: usize,
    step: usize,
    reads: usize,
}

impl Pieces {
    /// A reader of `data`.
    pub fn new(data: &[u8], step: usize) -> Self {
        Self { data: data.to_vec(), at: 0, step: step.max(1), reads: 0 }
    }
}

impl Read for Pieces {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(5) {
            return Err(ErrorKind::Interrupted.into());
        }
        let len = self.step.min(buf.len()).min(self.data.len() - self.at);
        buf[..len].copy_from_slice(&self.data[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}
