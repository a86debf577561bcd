//! Hand-made messages, and their decoded form.

mod links;
mod objects;
mod routes;
mod streams;

use super::NetlinkDecoder;
use super::wire::kind;
use crate::fpm::FpmDecoder;
use crate::{Collected, Decoder, Tail};

const V4: u8 = 2;
const V6: u8 = 10;
const UNICAST: u8 = 1;

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + value.len()).unwrap();
    padded([&len.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat())
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

fn flagged(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(16 + body.len()).unwrap();
    let head = [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &flags.to_ne_bytes()].concat();
    padded([&head, &7u32.to_ne_bytes()[..], &[0; 4], body].concat())
}

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    flagged(kind, 0, body)
}

/// The body of a route: 10.1.0.0/16 or 2001:db8::/32 in the main table.
fn body(family: u8, route_kind: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let (len, dst): (u8, &[u8]) = match family {
        V4 => (16, &[10, 1, 0, 0]),
        _ => (32, &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    };
    let head = [family, len, 0, 0, 254, 186, 0, route_kind, 0, 0, 0, 0];
    [&head, attribute(1, dst).as_slice(), &attributes.concat()].concat()
}

fn route(family: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    message(kind::NEWROUTE, &body(family, UNICAST, attributes))
}

fn delete(family: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    message(kind::DELROUTE, &body(family, 0, attributes))
}

fn next_hop(kind: u16, id: u32, attributes: &[Vec<u8>]) -> Vec<u8> {
    message(
        kind,
        &[&[V4, 0, 11, 0, 0, 0, 0, 0], number(1, id).as_slice(), &attributes.concat()].concat(),
    )
}

/// Object `id` is the gateway 10.9.0.`last` on interface 3.
fn gateway(id: u32, last: u8) -> Vec<u8> {
    next_hop(kind::NEWNEXTHOP, id, &[attribute(6, &[10, 9, 0, last]), number(5, 3)])
}

fn group(id: u32, members: &[(u32, u16)]) -> Vec<u8> {
    let members: Vec<u8> = members
        .iter()
        .flat_map(|(id, weight)| {
            let [low, high] = (weight - 1).to_le_bytes();
            [&id.to_ne_bytes()[..], &[low, high, 0, 0]].concat()
        })
        .collect();
    next_hop(kind::NEWNEXTHOP, id, &[attribute(2, &members)])
}

fn frame(messages: &[Vec<u8>]) -> Vec<u8> {
    let body = messages.concat();
    let len = u16::try_from(4 + body.len()).unwrap();
    [&[1, 1], &len.to_be_bytes()[..], &body].concat()
}

/// The content of these messages, one FPM frame each.
fn fpm(messages: &[Vec<u8>]) -> Collected {
    let stream: Vec<u8> =
        messages.iter().flat_map(|message| frame(std::slice::from_ref(message))).collect();
    decode(&mut FpmDecoder::default(), &stream)
}

fn kernel(messages: &[Vec<u8>]) -> Collected {
    decode(&mut NetlinkDecoder::default(), &messages.concat())
}

fn decode(decoder: &mut dyn Decoder, stream: &[u8]) -> Collected {
    decode_in_pieces(decoder, stream, &[], Tail::End)
}

fn decode_in_pieces(
    decoder: &mut dyn Decoder,
    stream: &[u8],
    cuts: &[usize],
    tail: Tail,
) -> Collected {
    let mut sink = Collected::default();
    let mut start = 0;
    for &cut in cuts {
        let cut = cut.clamp(start, stream.len());
        start += decoder.decode(&stream[start..cut], Tail::More, &mut sink).expect("never stopped");
    }
    let taken = decoder.decode(&stream[start..], tail, &mut sink).expect("never stopped");
    assert_eq!(start + taken, stream.len());
    assert!(!decoder.is_holding());
    sink
}

#[track_caller]
fn expect_lines(sink: &Collected, lines: &[&str]) {
    assert_eq!(sink.damage, []);
    assert_eq!(sink.lines, lines);
}
