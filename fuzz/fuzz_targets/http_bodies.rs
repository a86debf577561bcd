//! Bodies of bulk lookups, sent to a server: the first byte chooses the media type and the parameters. The server
//! answers or refuses every body, and continues to work.
#![no_main]

use std::sync::{Arc, LazyLock, Mutex};

use fibula_core::{Attributes, BgpAttributes, Change, Update};
use fibula_feeds::Board;
use fibula_fib::FibOptions;
use fibula_fuzz::leave_out_caught_panics;
use fibula_rib::{Live, LiveOptions, Rib};
use fibula_server::client::{Client, ClientError, ClientOptions};
use fibula_server::{Server, ServerOptions};
use libfuzzer_sys::fuzz_target;

const MEDIA: [&str; 5] = [
    "text/plain",
    "text/csv",
    "text/tab-separated-values",
    "application/x-ndjson",
    "application/vnd.apache.arrow.stream",
];
const PARAMETERS: [&str; 4] =
    ["", "?column=1&add=prefix", "?strict=true", "?column=a&add=origin_as,prefix&text=plain"];

struct World {
    client: Mutex<Client>,
    _server: Server,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    leave_out_caught_panics();
    let mut rib = Rib::default();
    for (prefix, asn) in [("10.0.0.0/8", 64500), ("10.1.0.0/16", 64501), ("2001:db8::/32", 64502)] {
        let bgp = BgpAttributes { origin_as: Some(asn), ..BgpAttributes::default() };
        let change = Change::Announce(Attributes::Bgp(&bgp));
        let update = Update::new(prefix.parse().expect("a prefix"), change);
        rib.apply(&update, &mut ()).expect("room for a route");
    }
    let live = Live::start(rib, &[0], FibOptions::default(), LiveOptions::default(), |_| {});
    let live = Arc::new(live.expect("an engine for three routes"));
    let mut options = ServerOptions::default();
    options.listen = vec!["127.0.0.1:0".parse().expect("an address")];
    let server = Server::start(live, Arc::new(Board::default()), options).expect("a free port");
    let url = format!("http://{}", server.addresses()[0]);
    let client = Client::new(ClientOptions::new(url)).expect("the address of a server");
    World { client: Mutex::new(client), _server: server }
});

fuzz_target!(|data: &[u8]| {
    let Some((&kind, body)) = data.split_first() else { return };
    let media = MEDIA[usize::from(kind) % MEDIA.len()];
    let parameters = PARAMETERS[usize::from(kind) / MEDIA.len() % PARAMETERS.len()];
    let mut client = WORLD.client.lock().expect("no panic before");
    match client.post(&format!("/v1/lookup{parameters}"), media, body.to_vec()) {
        Ok(answer) => assert!(answer.status < 500, "{answer:?}"),
        // The beginning of the answer was sent before the error was found.
        Err(ClientError::Http(_)) => {}
        Err(error) => panic!("{error}"),
    }
    assert_eq!(client.get("/healthz", &[]).expect("an answer").status, 200);
});
