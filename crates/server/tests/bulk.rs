//! Bulk lookups, in every format, against the plain map.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use fibula_core::AnyPrefix;
use fibula_server::client::Answer;
use fibula_testkit::Rng;
use serde_json::{Value, json};

use crate::common::{Lab, covers, length, random_prefix, refusal};

fn addresses(seed: u64, count: usize) -> Vec<IpAddr> {
    let mut rng = Rng::new(seed);
    let address = |_| match random_prefix(&mut rng) {
        AnyPrefix::V4(prefix) => IpAddr::from(prefix.last().to_be_bytes()),
        AnyPrefix::V6(prefix) => IpAddr::from(prefix.last().to_be_bytes()),
    };
    (0..count).map(address).collect()
}

/// The longest match and its origin.
fn expected(lab: &Lab, table: &'static str, address: IpAddr) -> Option<(String, u32)> {
    let host = AnyPrefix::host(address);
    let found = lab.prefixes(table, |wide| covers(wide, host));
    let prefix = found.into_iter().max_by_key(|prefix| length(*prefix))?;
    Some((prefix.to_string(), lab.paths(table, prefix)[0].1.1))
}

fn check_head(lab: &Lab, answer: &Answer, table: &str, kind: &str) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let header = |name: &str| answer.headers[name].to_str().unwrap();
    let sequence = lab.live.with_rib(fibula_rib::Rib::sequence);
    assert_eq!(header("fibula-generation"), sequence.to_string());
    assert_eq!((header("fibula-table"), header("content-type")), (table, kind));
    assert!(header("fibula-age-ms").parse::<u64>().unwrap() < 60_000);
}

#[test]
fn rows_of_text_are_answered_in_their_format() {
    let mut lab = Lab::new(|_| {});
    lab.fill(1, 300);
    let mut client = lab.client();
    let addresses = addresses(2, 500);
    let all: Vec<_> = addresses.iter().map(|address| expected(&lab, "bgp", *address)).collect();

    let body: String =
        addresses.iter().map(|a| format!("{{\"n\":1,\"address\":\"{a}\"}}\n")).collect();
    let path = "/v1/lookup?table=bgp&add=prefix,origin_as";
    let answer = client.post(path, "application/x-ndjson", body.clone()).unwrap();
    check_head(&lab, &answer, "bgp", "application/x-ndjson");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert_eq!(text.lines().count(), addresses.len());
    for ((line, address), expected) in text.lines().zip(&addresses).zip(&all) {
        let (prefix, origin) = expected.clone().unzip();
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(
            row,
            json!({
                "n": 1, "address": address.to_string(), "address_prefix": prefix, "address_origin_as": origin,
            })
        );
    }

    let body: String = addresses.iter().map(|a| format!("{a},x\n")).collect();
    let body = format!("src,note\n{body}");
    let answer = client.post(path, "text/csv; charset=utf-8", body).unwrap();
    check_head(&lab, &answer, "bgp", "text/csv");
    let row = |(address, expected): (&IpAddr, &Option<(String, u32)>)| match expected {
        Some((prefix, origin)) => format!("{address},x,{prefix},{origin}\n"),
        None => format!("{address},x,,\n"),
    };
    let rows: String = addresses.iter().zip(&all).map(row).collect();
    assert_eq!(answer.body, format!("src,note,src_prefix,src_origin_as\n{rows}"));

    // All columns by default; columns by name; a list.
    let csv = "to,from\n10.0.0.1,10.0.0.2\n";
    let answer =
        client.post("/v1/lookup?table=bgp&column=from&strict=true", "text/csv", csv).unwrap();
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(text.starts_with("to,from,from_prefix,from_next_hop,from_origin_as,"), "{text}");
    let answer =
        client.post("/v1/lookup?table=bgp&add=prefix", "text/plain", "10.0.0.1\n").unwrap();
    let (prefix, _) = expected(&lab, "bgp", "10.0.0.1".parse().unwrap()).unwrap();
    assert_eq!(answer.body, format!("10.0.0.1\t{prefix}\n"));

    let metrics = String::from_utf8(client.get("/metrics", &[]).unwrap().body.to_vec()).unwrap();
    assert!(metrics.contains("\nfibula_bulk_addresses_total 1002\n"), "{metrics}");
}

fn arrow(columns: &[&[IpAddr]]) -> Vec<u8> {
    let schema = Arc::new(Schema::new(vec![Field::new("ip", DataType::Utf8, true)]));
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    for addresses in columns {
        let text: StringArray = addresses.iter().map(|address| Some(address.to_string())).collect();
        writer
            .write(&RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(text)]).unwrap())
            .unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn arrow_streams_are_answered_batch_by_batch() {
    let mut lab = Lab::new(|_| {});
    lab.fill(1, 300);
    let mut client = lab.client();
    let addresses = addresses(2, 3000);
    let kind = "application/vnd.apache.arrow.stream";
    let body = arrow(&[&addresses[..1000], &addresses[1000..]]);
    let path = "/v1/lookup?table=bgp/100&add=prefix,origin_as&text=plain";
    let answer = client.post(path, kind, body.clone()).unwrap();
    check_head(&lab, &answer, "bgp/100", kind);
    let reader = StreamReader::try_new(&answer.body[..], None).unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [1000, 2000]);
    let found = batches.iter().flat_map(|batch| {
        let prefixes = batch.column_by_name("ip_prefix").unwrap().as_string::<i32>().iter();
        let origins =
            batch.column_by_name("ip_origin_as").unwrap().as_primitive::<UInt32Type>().iter();
        prefixes.zip(origins).map(|(p, o)| Some((p?.to_owned(), o?))).collect::<Vec<_>>()
    });
    let wanted = addresses.iter().map(|address| expected(&lab, "bgp/100", *address));
    assert!(found.eq(wanted));

    for (cut, part) in [(&body[..body.len() / 2], "end"), (b"nonsense nonsense nonsense", "")] {
        let (status, sentence) = match client.post(path, kind, cut.to_vec()) {
            Ok(answer) => refusal(&answer),
            Err(broken) => (400, broken.to_string()), // the first batch was on its way already
        };
        assert!(status == 400 && sentence.contains(part), "{sentence}");
    }
}

/// Rows that are longer than all that waits between a client and its thread.
#[test]
fn long_rows_are_answered_in_pieces() {
    let mut lab = Lab::new(|_| {});
    lab.announce("bgp", "10.0.0.0/8", 0, (1, 1));
    let body = format!("10.0.0.1\t{}\n", "x".repeat(3 << 20)).repeat(3);
    let mut client = lab.client();
    let answer = client.post("/v1/lookup?table=bgp&add=prefix", "text/plain", body.clone());
    let expected = body.replace('\n', "\t10.0.0.0/8\n");
    assert!(answer.unwrap().body == expected);
}

/// A few kilobytes that are unpacked to 80 MiB are refused before they are unpacked.
#[test]
fn arrow_batches_are_bounded_unpacked() {
    let mut lab = Lab::new(|_| {});
    lab.fill(1, 300);
    let zeros: ArrayRef = Arc::new(Int64Array::from_value(0, 5 << 20));
    let batch = RecordBatch::try_from_iter([("ip", Arc::clone(&zeros)), ("n", zeros)]).unwrap();
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD));
    let options = options.unwrap();
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let body = writer.into_inner().unwrap();
    assert!(body.len() < 64 << 10, "{}", body.len());
    let kind = "application/vnd.apache.arrow.stream";
    let answer = lab.client().post("/v1/lookup?table=bgp&column=ip", kind, body).unwrap();
    let (status, sentence) = refusal(&answer);
    assert!(status == 400 && sentence.contains("record batch 1 takes 8388"), "{sentence}");
    assert!(sentence.contains("more than 67108864; write smaller batches"), "{sentence}");
}

#[test]
fn invalid_bulk_lookups_are_refused() {
    let mut lab = Lab::new(|options| {
        options.limits.body_bytes = 100_000;
        options.limits.body_rows = 1000;
    });
    lab.fill(1, 300);
    let mut client = lab.client();
    let json = "application/x-ndjson";
    let row = "{\"address\":\"10.0.0.1\"}\n";
    for (path, kind, body, status, part) in [
        ("/v1/lookup", json, row, 400, "name one table with the parameter table: bgp, bgp/100"),
        ("/v1/lookup?table=x", json, row, 404, "no table \"x\""),
        ("/v1/lookup?table=bgp", "application/json", row, 415, "there are: application/x-ndjson"),
        ("/v1/lookup?table=bgp", "", row, 415, "text/csv"),
        (
            "/v1/lookup?table=bgp&add=country",
            json,
            row,
            400,
            "no value column \"country\"; it has:",
        ),
        ("/v1/lookup?table=bgp&column=ip", json, row, 400, "no row has a column ip"),
        (
            "/v1/lookup?table=bgp&strict=true",
            json,
            "{\"address\":\"x\"}\n",
            400,
            "line 1, column address: \"x\"",
        ),
        ("/v1/lookup?table=bgp&strict=maybe", json, row, 400, "not one of: false, true"),
        ("/v1/lookup?table=bgp&column=to", "text/csv", "a,b\n1,2\n", 400, "no column \"to\""),
        ("/v1/lookup?table=bgp", "text/csv", "a\0b", 400, "not text"),
    ] {
        let answer = client.post(path, kind, body).unwrap();
        let (got, sentence) = refusal(&answer);
        assert_eq!(got, status, "{path}: {sentence}");
        assert!(sentence.contains(part), "{path}: {sentence}");
    }
    let bytes = client.post("/v1/lookup?table=bgp", json, " ".repeat(100_001)).unwrap();
    assert_eq!(refusal(&bytes).0, 413);
    // Too many rows: a refusal, or a truncated answer if its beginning was sent already.
    let addresses = vec![IpAddr::from([10, 0, 0, 1]); 1001];
    let stream = "application/vnd.apache.arrow.stream";
    for (kind, body) in [(json, row.repeat(1001).into_bytes()), (stream, arrow(&[&addresses]))] {
        if let Ok(answer) = client.post("/v1/lookup?table=bgp&add=prefix", kind, body) {
            let sentence = "the body has more than 1000 rows; send it in parts";
            assert_eq!(refusal(&answer), (413, sentence.to_owned()));
        }
    }
    assert_eq!(client.post("/v1/lookup?table=bgp", json, row.repeat(1000)).unwrap().status, 200);
}

/// A body without a length that exceeds the limit; and one that never ends.
#[test]
fn long_and_slow_bodies_are_given_up() {
    let mut lab = Lab::new(|options| {
        options.limits.body_bytes = 10_000;
        options.limits.stall_time = Duration::from_millis(300);
    });
    lab.fill(1, 50);
    let head = b"POST /v1/lookup?table=bgp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                 content-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";
    let begin = || {
        let mut stream = TcpStream::connect(lab.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(head).unwrap();
        stream
    };
    let read = |mut stream: TcpStream| {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let mut stream = begin();
    stream.write_all(format!("4e20\r\n{}\r\n", " ".repeat(20_000)).as_bytes()).unwrap();
    stream.write_all(b"0\r\n\r\n").unwrap();
    let answer = read(stream);
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.contains("more than 10000 bytes"),
        "{answer}"
    );
    let answer = read(begin());
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("took too long"), "{answer}");
    // The client disconnects after half a body.
    let mut stream = begin();
    stream.write_all(b"5\r\n10.0").unwrap();
    drop(stream);
    // Rows that were sent are answered before the next ones come.
    let mut stream = begin();
    stream.write_all(b"9\r\n10.0.0.1\n\r\n").unwrap();
    let mut answer = String::new();
    while !answer.contains("10.0.0.1\t") {
        let mut part = [0; 1024];
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "{answer}");
        answer.push_str(&String::from_utf8_lossy(&part[..count]));
    }
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // An error after the beginning of the answer truncates it: the last chunk does not arrive.
    assert!(!read(stream).ends_with("0\r\n\r\n"));
}

#[test]
fn a_table_without_routes_has_no_answers() {
    let lab = Lab::new(|_| {});
    let answer = lab.client().post("/v1/lookup", "text/plain", "10.0.0.1\n").unwrap();
    assert_eq!(refusal(&answer), (404, "no table has a route so far".to_owned()));
}
