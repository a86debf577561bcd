//! Sockets, and the loop that runs sources that do not end.
//!
//! ```text
//!   listening sockets ──► sessions by remote address ┐
//!   connections that are opened here ────────────────┤               ┌─► Listener: LiveFeed ─► Live
//!   pipes, standard input ───────────────────────────┼─► Hub, a loop ┤
//!   devices: the kernel's routing socket ────────────┤   on a thread └─► Board, reports
//!   folders, read by a thread each ──────────────────┘       ▲
//!                                              HubHandle ───────┘ stop, add, remove, reload, refresh
//! ```
//!
//! A [`Hub`] owns all sockets, their [`Protocol`](crate::Protocol)s, and the table while it runs. Bytes from a
//! socket are decoded in the buffer and applied by the same thread, without a lock or a queue
//! between. The earliest deadline of the protocols is the poll's timeout, so a hub without events does not run
//! at all. Connections with something to read take turns of 128 KiB at most, so that a
//! busy connection does not starve a quiet one. When the table is behind, all connections wait, and TCP then makes
//! their daemons wait. ADR 15 has the reasons.
//!
//! **Sessions.** A source that listens has a session for each remote address: when a daemon connects again it
//! gets the same session, whose routes stayed meanwhile and are marked and swept. If the old connection is
//! still open, the new one replaces it, unless the protocol refuses this
//! ([`Protocol::admit`](crate::Protocol::admit); BGP refuses some). A connection whose other end is silent
//! for a minute, even to the system's probes, is closed. A connection with invalid data is closed by its decoder.
//! Damaged parts are skipped; the first five in ten seconds are reported, the others
//! counted.
//!
//! **Memory.** A session keeps at most [one record](crate::SessionOptions::longest_record) that is not whole and 1 MiB
//! that is not sent; a source that listens has at most [`Listen::limit`] sessions, a folder 1 MiB that was read ahead.
//! What was read ahead has at most 64 MiB a connection, and 256 MiB in all. When the table is
//! [full](fibula_rib::Limits::paths), the session with the most routes loses them and is closed.
//!
//! **Restart.** [`Hub::adopt`] assigns the routes of a checkpoint to the sessions that they came from. They stay until
//! the session has sent its whole table, or until its hold time is over.
//!
//! ```
//! use std::io::Write;
//! use std::net::TcpStream;
//! use std::sync::Arc;
//!
//! use fibula_feeds::net::{Endpoint, Hub, Listen, FeedSource, ProtocolFactory};
//! use fibula_feeds::{Board, Session, SessionOptions};
//! use fibula_rib::{Peer, Rib};
//! # use fibula_core::{Attributes, Change, Update};
//! # use fibula_ingest::{Decoder, Sink, StopReason, Tail};
//! # #[derive(Default)]
//! # struct OneALine;
//! # impl Decoder for OneALine {
//! #     fn decode(&mut self, input: &[u8], _: Tail, sink: &mut dyn Sink) -> Result<usize, StopReason> {
//! #         let Some(end) = input.iter().position(|&byte| byte == b'\n') else { return Ok(0) };
//! #         let change = Change::Announce(Attributes::Values(&[]));
//! #         let prefix = std::str::from_utf8(&input[..end]).unwrap().parse().unwrap();
//! #         sink.update(&Update::new(prefix, change));
//! #         Ok(end + 1)
//! #     }
//! #     fn records(&self) -> u64 { 0 }
//! # }
//!
//! let board = Arc::new(Board::default());
//! let mut hub = Hub::new(Arc::clone(&board), |report| println!("{report}"))?;
//! let speaker = ProtocolFactory {
//!     settings: String::new(),
//!     protocol: Arc::new(|who| {
//!         let peer = Peer { source: Some(who.name), ..Peer::new(who.remote, 64500) };
//!         let options = SessionOptions { peer, ..Default::default() };
//!         // `OneALine` decodes a prefix a line.
//!         let session = Session::new(|| Box::new(OneALine), options);
//!         Box::new(session.with_events(who.events))
//!     }),
//! };
//! hub.add(FeedSource {
//!     name: "lines".to_owned(),
//!     kind: "text",
//!     table: String::new(),
//!     endpoint: Endpoint::Listen(Listen {
//!         address: "127.0.0.1:0".parse()?,
//!         speakers: vec![("127.0.0.0/8".parse()?, speaker)],
//!         limit: 10,
//!         keys: Vec::new(),
//!     }),
//! })?;
//! let handle = hub.handle();
//! let thread = std::thread::spawn(move || {
//!     let mut rib = Rib::default();
//!     hub.run(&mut rib).map(|()| rib)
//! });
//!
//! let mut daemon = TcpStream::connect(&board.all()[0].endpoint)?;
//! daemon.write_all(b"192.0.2.0/24\n")?;
//! let began = std::time::Instant::now();
//! while board.all().iter().all(|source| source.figures.announced == 0) {
//!     assert!(began.elapsed().as_secs() < 30);
//!     std::thread::sleep(std::time::Duration::from_millis(1));
//! }
//! handle.stop();
//! assert_eq!(thread.join().unwrap()?.len::<u32>(0), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
mod config;
mod cut;
mod door;
mod farewell;
mod folder;
mod handle;
mod hub;
mod keys;
mod link;
mod outbox;
mod reload;
mod report;
mod sessions;
mod show;
mod slots;
mod source;
mod stream;

pub use handle::{HubEnded, HubHandle};
pub use hub::Hub;
pub use report::{SourceEvent, SourceReport};
pub use sessions::speaking;
pub use source::{
    Endpoint, FeedSource, FeedSourceError, Folder, Listen, ProtocolFactory, Retry, SessionContext,
};
pub use stream::{Got, StreamDevice};
