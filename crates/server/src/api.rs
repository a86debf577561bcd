//! The types of all answers, as in their JSON. The OpenAPI document is generated from them, and clients can parse
//! answers into them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The error of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The error, and what to do about it.
    pub error: String,
}

/// The peer that announced a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Peer {
    /// Its number. It does not change while the server runs.
    pub id: u32,
    /// A readable name, such as `AS64500 (10.0.0.1)`.
    pub name: String,
    /// Its address, if the source gives it.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// Its AS, 0 if unknown.
    pub asn: u32,
    /// The source and the view that its routes come from.
    pub source: Option<String>,
}

/// The attributes of a route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Attributes {
    /// The path attributes of BGP.
    Bgp(Bgp),
    /// The next hops of a forwarding table.
    NextHops(NextHops),
    /// Values by name, from sources of other kinds.
    Values {
        /// Text, a number, or null.
        #[schema(value_type = BTreeMap<String, Object>)]
        values: BTreeMap<String, serde_json::Value>,
    },
}

/// The path attributes of BGP; absent where the route has none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Bgp {
    /// The next hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub next_hop: Option<IpAddr>,
    /// The AS path, separated by spaces, a set as `{64500,64501}`.
    #[serde(default)]
    pub as_path: String,
    /// Its length as the selection of the best path counts it: a set counts as one.
    pub as_path_len: u32,
    /// The AS that originated the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_as: Option<u32>,
    /// The local preference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_pref: Option<u32>,
    /// The multi-exit discriminator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub med: Option<u32>,
    /// `igp`, `egp` or `incomplete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Communities, separated by spaces.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub communities: String,
}

/// The action of a forwarding table for the packets of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextHops {
    /// `unicast`, `local`, `blackhole`, `unreachable` or `prohibit`.
    #[serde(rename = "type")]
    pub route_type: String,
    /// Where packets are sent; empty if they are not forwarded.
    pub next_hops: Vec<NextHop>,
}

/// One of the next hops of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NextHop {
    /// The next router; null if the destination is on the link itself.
    #[schema(value_type = Option<String>)]
    pub gateway: Option<IpAddr>,
    /// The index of the interface.
    pub interface: Option<u32>,
    /// Its weight. Its share of the packets is the weight divided by the sum of all weights.
    pub weight: u32,
}

/// What the RPKI says about the origin of a route (RFC 6811).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OriginValidity {
    /// `valid`, `invalid-origin`, `invalid-length` or `not-found`.
    pub validity: String,
    /// The VRPs that cover the prefix, such as `192.0.2.0/24-26 AS64500`, those with the longest prefix first; 64 at
    /// most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vrps: Vec<String>,
}

/// The best route of a prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Route {
    /// The prefix.
    pub prefix: String,
    /// The peer that announced it.
    pub peer: Peer,
    /// The ADD-PATH identifier; 0 if the peer sends one path for each prefix.
    pub path_id: u32,
    /// Its attributes.
    pub attributes: Attributes,
    /// Its validity; absent without VRPs, and for routes that are not of BGP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpki: Option<OriginValidity>,
    /// Whether its AS path can be, by the ASPAs of the RPKI: `valid`, `invalid` or `unknown`; absent without ASPAs, and
    /// for routes without an AS path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspa: Option<String>,
}

/// The answers for an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lookup {
    /// The address.
    #[schema(value_type = String)]
    pub address: IpAddr,
    /// The answer of each table.
    pub tables: Vec<TableLookup>,
}

/// The answer of a table for an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TableLookup {
    /// The table's name.
    pub table: String,
    /// The number of updates from feeds that the answer includes. It is the same for all tables of an answer.
    pub sequence: u64,
    /// The longest match.
    #[serde(rename = "match")]
    pub found: Option<Route>,
    /// All routes that cover the address, the match included; the longest comes first.
    pub covering: Vec<Route>,
}

/// The routes of a prefix, with all paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Routes {
    /// The requested prefix.
    pub prefix: String,
    /// `exact`, `covering` or `covered`.
    pub view: String,
    /// The routes of each table.
    pub tables: Vec<TableRoutes>,
}

/// The routes of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TableRoutes {
    /// The table's name.
    pub table: String,
    /// The routes. If they cover the prefix, the longest comes first; others are ordered by address.
    pub routes: Vec<PrefixPaths>,
    /// Whether there are more routes than the limit, which were left out.
    pub truncated: bool,
}

/// All paths of a prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PrefixPaths {
    /// The prefix.
    pub prefix: String,
    /// The paths, the best first.
    pub paths: Vec<Path>,
    /// The criterion by which the best path is better than the second one.
    pub why: String,
}

/// A path for a prefix, as one peer announced it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Path {
    /// The peer that announced it.
    pub peer: Peer,
    /// The ADD-PATH identifier.
    pub path_id: u32,
    /// Its attributes.
    pub attributes: Attributes,
    /// Whether it is the best one.
    pub best: bool,
    /// The criterion by which the best path is better than this one; null for the best path itself.
    pub lost_by: Option<String>,
    /// Its validity; absent without VRPs, and for routes that are not of BGP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpki: Option<OriginValidity>,
    /// Whether its AS path can be, by the ASPAs of the RPKI: `valid`, `invalid` or `unknown`; absent without ASPAs, and
    /// for routes without an AS path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspa: Option<String>,
}

/// The best routes that a filter wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Filtered {
    /// The routes, by table, family and prefix.
    pub routes: Vec<TableRoute>,
    /// How many routes were read for this answer.
    pub read: u64,
    /// The value of `after` for the next answer; null at the end. An answer may have fewer routes than its limit, or
    /// none, because reading them took too long.
    pub next: Option<String>,
}

/// A route in a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TableRoute {
    /// The table's name.
    pub table: String,
    /// The route.
    pub route: Route,
    /// Whether it is the best one of its prefix. All are, unless those of a peer were asked for.
    #[serde(default = "yes")]
    pub best: bool,
}

fn yes() -> bool {
    true
}

/// The validator's caches, their VRPs, and the routes whose validity changed with them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RpkiStatus {
    /// The caches, in the order of preference.
    pub caches: Vec<RpkiCache>,
    /// Whether VRPs are known. Routes have no validity before the first whole answer, and after the last one has
    /// expired.
    pub known: bool,
    /// The VRPs in use.
    pub vrps: RouteCounts,
    /// The ASes whose providers are known by ASPAs in use.
    #[serde(default)]
    pub aspas: usize,
    /// The number of their set; the first one is 1.
    pub generation: u64,
    /// Routes that were validated again because a VRP that covers them came or went.
    pub validated: u64,
    /// Those of them whose validity changed.
    pub changed: u64,
    /// Those of the changed ones that became invalid.
    pub newly_invalid: u64,
    /// The last routes whose validity changed with the VRPs, newest first.
    pub changes: Vec<RpkiChange>,
}

/// A cache of a validator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RpkiCache {
    /// Its address and port.
    pub endpoint: String,
    /// `idle`, `connecting`, `up` or `lost`.
    pub state: String,
    /// Connections that were opened.
    pub connections: u64,
    /// The session's number of the last whole answer.
    pub session: Option<u16>,
    /// The serial number of its data.
    pub serial: Option<u32>,
    /// Its VRPs.
    pub vrps: usize,
    /// Its ASPAs, one for each AS.
    #[serde(default)]
    pub aspas: usize,
    /// The time of the last whole answer, RFC 3339 in UTC.
    pub updated: Option<String>,
    /// Until when its VRPs and ASPAs are used if it is not heard of again.
    pub expires: Option<String>,
    /// Whole answers, and those of them that had the whole set.
    pub updates: u64,
    /// See `updates`.
    pub resets: u64,
    /// Items that are neither VRPs nor ASPAs: BGPsec keys.
    pub ignored: u64,
    /// The reason why the last connection ended, or why there is none.
    pub trouble: Option<String>,
}

/// A route whose validity changed because VRPs came or went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RpkiChange {
    /// When it was validated, RFC 3339 in UTC.
    pub time: String,
    /// Its table.
    pub table: String,
    /// Its prefix.
    pub prefix: String,
    /// The AS that originates it.
    pub origin_as: Option<u32>,
    /// The validity before; null if no VRPs were known.
    pub before: Option<String>,
    /// The validity now; null if no VRPs are known any more.
    pub after: Option<String>,
}

/// The alarms that have not ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Alarms {
    /// How many there are.
    pub active: usize,
    /// The newest ones, newest first.
    pub alarms: Vec<Alarm>,
}

/// A route that is not as a rule of the configuration wants it. Webhooks get the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alarm {
    /// Its number. It stays the same when the alarm ends.
    pub id: u64,
    /// The rule's name.
    pub rule: String,
    /// The rule's kind, such as `unexpected-origin`.
    pub kind: String,
    /// The route's table.
    pub table: String,
    /// The route's prefix.
    pub prefix: String,
    /// What the rule wants.
    pub expected: String,
    /// What was seen instead when the alarm began.
    pub seen: String,
    /// The peer of the route; of a withdrawn one, that of its last path. Empty if unknown.
    pub peer: String,
    /// The AS path of the route, or the last one; empty if it has none.
    pub as_path: String,
    /// When it began, RFC 3339 in UTC.
    pub begin: String,
    /// When it ended, RFC 3339 in UTC; null if it has not.
    pub end: Option<String>,
}

/// Names of ASes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Names {
    /// By the AS's number, those that have a name.
    pub names: BTreeMap<String, String>,
}

/// The values of a column with most bytes, among the flows of the last minutes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopFlows {
    /// The columns that can be asked for.
    pub columns: Vec<String>,
    /// The column whose values these are; null if there were no flows yet.
    pub column: Option<String>,
    /// When the first of the minutes began, RFC 3339 in UTC.
    pub from: String,
    /// When the answer was given, RFC 3339 in UTC.
    pub until: String,
    /// The bytes of all flows of these minutes, each flow's multiplied by its sampling rate.
    pub bytes: u64,
    /// Their packets, likewise.
    pub packets: u64,
    /// Their number of records.
    pub flows: u64,
    /// The values, most bytes first.
    pub top: Vec<TopFlow>,
}

/// A value of a column, with its flows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopFlow {
    /// The value; null for flows without one, such as those that no route covers. A text of more than 128 bytes is cut
    /// and ends with an ellipsis.
    pub value: Option<String>,
    /// Its bytes.
    pub bytes: u64,
    /// Its packets.
    pub packets: u64,
    /// Its records of flows.
    pub flows: u64,
    /// How many bytes more it may have had: when a minute has too many values, those with the fewest bytes are
    /// forgotten.
    pub missed_bytes: u64,
}

/// Numbers of routes by family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RouteCounts {
    /// IPv4.
    pub ipv4: u64,
    /// IPv6.
    pub ipv6: u64,
}

/// A peer with the number of its paths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PeerStatus {
    /// The peer.
    #[serde(flatten)]
    pub peer: Peer,
    /// Its paths in all tables.
    pub routes: RouteCounts,
    /// Those of them that are the best of their prefixes.
    #[serde(default)]
    pub best: RouteCounts,
    /// `up`; `resync` while it announces all its routes again; `lost` if its connection has ended and its routes are
    /// kept for a while; `down` if it has no routes.
    pub state: String,
    /// The time until which its routes are kept, if it is lost; RFC 3339 in UTC.
    pub until: Option<String>,
}

/// All peers, and the sources that their routes come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Peers {
    /// The peers, by number.
    pub peers: Vec<PeerStatus>,
    /// The configured sources.
    pub sources: Vec<SourceStatus>,
}

/// A configured source, or a connection of one that listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceStatus {
    /// Its name. For a connection, the remote address follows.
    pub name: String,
    /// `fpm`, `bmp`, `bgp`, `kernel`, `ris` or `mrt`.
    pub kind: String,
    /// The address or file that it is read from.
    pub endpoint: String,
    /// The table that it feeds. If it feeds others too, their names are this one, a slash, and a name.
    pub table: String,
    /// `idle`; `resync` while it sends the whole table; `up`; `lost`: the connection has ended, and its routes are
    /// still used; `damaged`: the table lacks what a damaged file has.
    pub state: String,
    /// The time of the last change of state, RFC 3339 in UTC.
    pub since: String,
    /// The time until which the routes of a lost connection are kept.
    pub until: Option<String>,
    /// The time of the last data.
    pub last: Option<String>,
    /// Number of connections that were opened.
    pub connections: u64,
    /// Number of bytes received.
    pub bytes: u64,
    /// Number of routes announced.
    pub announced: u64,
    /// Number of routes withdrawn.
    pub withdrawn: u64,
    /// Number of messages or records that could not be decoded.
    pub damaged: u64,
    /// Number of messages or records without unicast routes.
    pub ignored: u64,
    /// Number of parts that were not read literally, or that are doubtful and were kept, by kind.
    #[serde(default)]
    pub noted: BTreeMap<String, u64>,
    /// Values that the source reports about itself, by name.
    pub remarks: BTreeMap<String, String>,
    /// The reason why the last connection ended, or why there is no connection.
    pub trouble: Option<String>,
}

/// The meaning of a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Search {
    /// The text.
    pub q: String,
    /// `address`, `prefix`, `as`, `peer` or `nothing`.
    pub is: String,
    /// The address, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// The prefix, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The AS, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asn: Option<u32>,
    /// Of an AS: the prefixes that it originates, by table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<Origins>,
    /// Of a name or an AS: the peers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<PeerStatus>,
    /// Whether there are more prefixes or peers than the limit.
    #[serde(default)]
    pub truncated: bool,
    /// The value of `after` with which the next request continues; absent if there are no more prefixes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The prefixes of a table that an AS originates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Origins {
    /// The table's name.
    pub table: String,
    /// Number of prefixes, without those before `after`.
    pub routes: RouteCounts,
    /// The first of them, by family and address, as far as the limit of all tables goes.
    pub prefixes: Vec<String>,
}

/// A change of the best route of a prefix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Its number. Numbers increase over all tables, and continue after a restart of the server.
    pub id: u64,
    /// When it happened, RFC 3339 in UTC.
    pub time: String,
    /// The table's name.
    pub table: String,
    /// The prefix.
    pub prefix: String,
    /// The peer that announced the route; null if the route was withdrawn.
    pub peer: Option<Peer>,
    /// Its attributes; null if the route was withdrawn.
    pub attributes: Option<Attributes>,
    /// Its validity by the VRPs of now; absent without VRPs, and for routes that are not of BGP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<String>,
    /// The validity of its AS path by the ASPAs of now; absent without ASPAs, and for routes without a path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aspa: Option<String>,
    /// Whether the session has not been up without a break since the change: it may be of a table that was being sent
    /// again, or of a session that was lost, and be undone soon. Only in `/v1/changes`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resent: bool,
}

impl Change {
    /// The time, in microseconds since 1970; `None` if it is no time of RFC 3339 in UTC.
    pub fn micros(&self) -> Option<u64> {
        crate::http::time::micros(&self.time)
    }
}

/// Past changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// The changes, newest first.
    pub changes: Vec<Change>,
}

/// Routes of a past time, from the history in files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RouteHistory {
    /// The prefix or the address.
    pub prefix: String,
    /// The time, RFC 3339 in UTC; absent if the request has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The answer of each table that had routes until then; empty without a time.
    #[serde(default)]
    pub tables: Vec<TableHistory>,
    /// The changes of the prefix, newest first; absent if there is a time and no parameter of lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PastChange>,
    /// The value of `after` for the next changes; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The times of which changes are missing, as far as the answer may depend on them: between `since` and `until` of
    /// its routes, or in the times of a list. The oldest comes first; of more than 100, the newest.
    pub gaps: Vec<HistoryGap>,
}

/// A change of the best route of a prefix, from the history in files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PastChange {
    /// When it happened, RFC 3339 in UTC.
    pub time: String,
    /// The table's name.
    pub table: String,
    /// The peer that announced the route; of a withdrawn one, that of its last path.
    pub peer: Option<PastPeer>,
    /// Its attributes; null if the route was withdrawn.
    pub attributes: Option<Attributes>,
    /// Whether it was found in the table at `time`: it happened before, while nothing was recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub or_before: bool,
}

/// The answer of a table for a past time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TableHistory {
    /// The table's name.
    pub table: String,
    /// The route of the prefix, or the longest match of the address.
    #[serde(rename = "match")]
    pub found: Option<PastRoute>,
    /// All routes that covered the address, the match included; the longest comes first. Of a prefix, the match.
    pub covering: Vec<PastRoute>,
    /// Of a prefix without a route: since when it had none, RFC 3339 in UTC; null if it has had none in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Of a prefix without a route: when it had one again; null if it has none since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// The best route of a prefix at a past time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PastRoute {
    /// The prefix.
    pub prefix: String,
    /// The peer that announced it.
    pub peer: Option<PastPeer>,
    /// Its attributes.
    pub attributes: Attributes,
    /// Since when it was the best route, RFC 3339 in UTC.
    pub since: String,
    /// Whether it was found in the table at `since`, and may be older: the change happened while nothing was recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub or_before: bool,
    /// Until when it was the best route; null if it is so far.
    pub until: Option<String>,
}

/// The peer of a past route. Peers have other numbers after a restart, so it has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PastPeer {
    /// A readable name, such as `AS64500 (10.0.0.1)`.
    pub name: String,
    /// Its address, if the source gave it.
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
    /// Its AS, 0 if unknown.
    pub asn: u32,
    /// The source and the view that its routes came from.
    pub source: Option<String>,
}

/// A time of which changes are missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct HistoryGap {
    /// Its beginning, RFC 3339 in UTC.
    pub from: String,
    /// Its end.
    pub until: String,
    /// The reason, such as `the server was not running, or read its table`.
    pub why: String,
}

/// Changes that a reader missed: they were removed from the history before they could be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lost {
    /// The number of missed changes of all tables and prefixes; null if it is not known because the server was started
    /// again.
    pub lost: Option<u64>,
}

/// All tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tables {
    /// The version of the program.
    pub version: String,
    /// When it was started, RFC 3339 in UTC.
    pub started: String,
    /// Whether flows are counted, for `/v1/flows/top`.
    #[serde(default)]
    pub flows: bool,
    /// Whether names of ASes are known, for `/v1/names`.
    #[serde(default)]
    pub names: bool,
    /// Whether a history is kept in files, for `/v1/history/{prefix}`.
    #[serde(default)]
    pub history: bool,
    /// The tables, by number.
    pub tables: Vec<TableStatus>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TableStatus {
    /// Its name.
    pub name: String,
    /// Whether the table is complete: no peer is still sending its first announcements.
    pub complete: bool,
    /// When its newest change happened, RFC 3339 in UTC; null if none is known.
    pub newest_change: Option<String>,
    /// IPv4; null if the table is not compiled.
    pub ipv4: Option<FamilyStatus>,
    /// IPv6; null if the table is not compiled.
    pub ipv6: Option<FamilyStatus>,
}

/// One family of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FamilyStatus {
    /// Prefixes with a route.
    pub routes: u64,
    /// The engine that answers lookups.
    pub engine: String,
    /// The number of the compiled table, 1 for the first.
    pub generation: u64,
    /// The number of updates from feeds that it includes.
    pub sequence: u64,
    /// The size of the compiled table in bytes.
    pub memory_bytes: u64,
    /// Number of changes of best routes.
    pub changes: u64,
    /// Number of complete builds.
    pub rebuilds: u64,
    /// Number of patches.
    pub patches: u64,
    /// Number of failed builds.
    pub failures: u64,
    /// The audit, which compares answers of the engine with those of the RIB.
    pub audit: AuditStatus,
}

/// The audit, which compares answers of the engine with those of the RIB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditStatus {
    /// Number of addresses compared.
    pub probes: u64,
    /// Number of addresses with different answers.
    pub differences: u64,
}

/// The lengths of a table's prefixes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Histogram {
    /// The table's name.
    pub table: String,
    /// Number of IPv4 routes of each length, 0 to 32.
    pub ipv4: Vec<u64>,
    /// Number of IPv6 routes of each length, 0 to 128.
    pub ipv6: Vec<u64>,
}

/// The state of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or the fault as a sentence.
    pub status: String,
}
