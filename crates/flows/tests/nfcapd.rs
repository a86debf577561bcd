//! Files of nfdump's collectors, built here; the tests of `fibula-cli` read those of nfcapd itself.

use std::io::Read;
use std::net::IpAddr;

use fibula_flows::{
    ExportProtocol, FlowRecord, NFCAPD_BLOCK_LIMIT, NfcapdDecoder, NfcapdFault, NfcapdFaultKind,
    NfcapdSource, NfcapdStep,
};

/// A record, or an element of one: kind, length, content.
fn part(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes(), &(content.len() as u16 + 4).to_le_bytes(), content].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn longs(longs: &[u64]) -> Vec<u8> {
    longs.iter().flat_map(|long| long.to_le_bytes()).collect()
}

/// IPv6 addresses, as pairs of integers.
fn wides(wides: &[&str]) -> Vec<u8> {
    let bits = wides.iter().map(|wide| wide.parse::<std::net::Ipv6Addr>().unwrap().to_bits());
    bits.flat_map(|bits| longs(&[(bits >> 64) as u64, bits as u64])).collect()
}

/// A flow of nfdump 1.7, of exporter 3, IPFIX.
fn flow(elements: &[Vec<u8>]) -> Vec<u8> {
    let head = [&(elements.len() as u16).to_le_bytes()[..], &[0, 0, 3, 0, 0, 10]].concat();
    part(11, &[head, elements.concat()].concat())
}

/// The element that all flows have.
fn generic(protocol: u8, ports: (u16, u16)) -> Vec<u8> {
    let ports = [ports.0.to_le_bytes(), ports.1.to_le_bytes()].concat();
    let content = longs(&[1_700_000_000_123, 1_700_000_001_456, 1_700_000_002_789, 12, 3400]);
    part(1, &[&content[..], &ports, &[protocol, 0x1b, 64, 8]].concat())
}

fn exporter(number: u16) -> Vec<u8> {
    let address = [&[0; 8][..], &words(&[0xc000_0263]), &[0; 4]].concat();
    let numbers = [&2u16.to_le_bytes()[..], &number.to_le_bytes(), &words(&[77])].concat();
    part(7, &[words(&[10]), address, numbers].concat())
}

fn names(kind: u16, list: &[(u32, &str)]) -> Vec<u8> {
    let elements = list.iter().flat_map(|(number, name)| {
        let mut element = [&words(&[*number])[..], name.as_bytes()].concat();
        element.resize(20, 0);
        element
    });
    let elements: Vec<u8> = elements.collect();
    let head = [(list.len() as u16).to_le_bytes(), 20u16.to_le_bytes()].concat();
    part(kind, &[head, words(&[16]), elements].concat())
}

/// How blocks are packed, and the number of that in layout 2.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Packing {
    None = 0,
    Lzo = 1,
    Bzip2 = 2,
    Lz4 = 3,
    Zstd = 4,
}

const PACKINGS: [Packing; 5] =
    [Packing::None, Packing::Lzo, Packing::Bzip2, Packing::Lz4, Packing::Zstd];

fn pack(packing: Packing, block: &[u8]) -> Vec<u8> {
    match packing {
        Packing::None => block.to_vec(),
        // One run of literals, and the end mark.
        Packing::Lzo => {
            assert!(block.len() > 18);
            let mut length = block.len() - 18;
            let mut out = vec![0];
            while length > 255 {
                length -= 255;
                out.push(0);
            }
            out.push(length as u8);
            [&out[..], block, &[0x11, 0, 0]].concat()
        }
        Packing::Bzip2 => {
            let mut out = Vec::new();
            let level = bzip2::Compression::fast();
            bzip2::read::BzEncoder::new(block, level).read_to_end(&mut out).unwrap();
            out
        }
        Packing::Lz4 => lz4_flex::block::compress(block),
        Packing::Zstd => {
            ruzstd::encoding::compress_to_vec(block, ruzstd::encoding::CompressionLevel::Fastest)
        }
    }
}

fn block(kind: u16, records: u32, packed: &[u8]) -> Vec<u8> {
    let kind = [kind.to_le_bytes(), [0, 0]].concat();
    [words(&[records, packed.len() as u32]), kind, packed.to_vec()].concat()
}

/// A file of layout 2 with blocks of records, and an appendix.
fn file(packing: Packing, blocks: &[&[Vec<u8>]]) -> Vec<u8> {
    let packed: Vec<_> = blocks
        .iter()
        .map(|records| block(3, records.len() as u32, &pack(packing, &records.concat())))
        .collect();
    let packed = packed.concat();
    let appendix = block(3, 1, &pack(packing, &part(0x8001, b"a name of the file\0")));
    let head = [&[0x0c, 0xa5, 2, 0, 1, 1, 7, 1][..], &[0; 8], &[packing as u8, 0, 1, 0]].concat();
    let place = longs(&[40 + packed.len() as u64]);
    let counts = words(&[0, blocks.len() as u32]);
    [&head[..], &[0; 4], &place, &counts, &packed, &appendix].concat()
}

/// A flow as text, with its source.
fn text(record: &FlowRecord, source: &NfcapdSource<'_>) -> String {
    let names = [
        record.input().and_then(|number| source.interface_name(number)),
        record.input_vrf().and_then(|number| source.vrf_name(number)),
    ];
    let labels: Vec<_> = record.labels().collect();
    format!(
        "{:?} {:?} {:?} {:?} {names:?} {labels:?} {:?} {record:?}",
        source.exporter(),
        source.protocol(),
        source.domain(),
        source.received_ms(),
        record.icmp(),
    )
}

/// Reads a file as a caller does that has all of it: the flows, and the faults.
fn read(file: &[u8], most: usize) -> (Vec<String>, Vec<NfcapdFault>) {
    let (mut decoder, mut rest) = (NfcapdDecoder::default(), file);
    let (mut flows, mut faults) = (Vec::new(), Vec::new());
    loop {
        let len = match decoder.next(rest) {
            NfcapdStep::Incomplete => break,
            NfcapdStep::Skip(len) => len,
            NfcapdStep::Damaged(len, fault) => {
                faults.push(fault);
                len
            }
            NfcapdStep::Lost(fault) => {
                faults.push(fault);
                return (flows, faults);
            }
            NfcapdStep::Block(len) => {
                loop {
                    let done = decoder.records(most, |record, source| {
                        flows.push(text(record, source));
                    });
                    match done {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(fault) => faults.push(fault),
                    }
                }
                len
            }
        };
        rest = &rest[len..];
    }
    assert_eq!(decoder.flows(), flows.len() as u64);
    faults.extend(decoder.end(rest.len()).err());
    (flows, faults)
}

/// Flows with all elements.
fn records() -> Vec<Vec<u8>> {
    let ends = part(2, &words(&[0x0a01_0001, 0xc000_0207]));
    let six = part(3, &wides(&["2001:db8::1", "2001:db8::2"]));
    let misc = part(4, &[&words(&[11, 12])[..], &[16, 24, 1, 0, 0, 2, 0, 0]].concat());
    vec![
        exporter(3),
        names(13, &[(11, "eth1"), (12, "eth2")]),
        names(14, &[(5, "blue")]),
        flow(&[generic(6, (1024, 443)), ends.clone(), misc]),
        flow(&[
            generic(58, (0, 129 << 8 | 1)),
            six,
            part(5, &longs(&[2, 21, 22])),
            part(6, &words(&[100, 200])),
            part(7, &words(&[65001, 4_200_000_001])),
            part(9, &wides(&["2001:db8::3"])),
            part(11, &wides(&["2001:db8::4"])),
            part(13, &wides(&["2001:db8::5"])),
            part(14, &words(&[1000 << 4, 1001 << 4 | 1, 0, 0, 0, 0, 0, 0, 0, 0])),
            part(15, &longs(&[1, 2, 3, 4])),
            part(21, &wides(&["2001:db8::6", "2001:db8::7"])),
            part(22, &[1, 2, 3, 4]),
            part(36, &words(&[6, 5])),
            part(99, b"unknown"),
        ]),
        flow(&[
            generic(17, (53, 53)),
            ends,
            part(8, &words(&[0xc633_6401])),
            part(10, &words(&[0xc633_6402])),
            part(12, &words(&[0xc633_6403])),
            part(20, &words(&[0xcb00_7101, 0xcb00_7102])),
        ]),
    ]
}

#[test]
fn all_elements_in_every_compression() {
    let records = records();
    let (expected, faults) = read(&file(Packing::None, &[&records[..4], &records[4..]]), 1);
    assert_eq!(faults, []);
    let [tcp, icmp, udp] = &expected[..] else { panic!("{expected:#?}") };
    for part in [
        "Some(192.0.2.99) Some(Ipfix) Some(77) Some(1700000002789) [Some(\"eth1\"), None] []",
        "source: 10.1.0.1, destination: 192.0.2.7",
        "source_mask: 16, destination_mask: 24",
        "source_port: 1024, destination_port: 443, protocol: 6, tcp_flags: 27, tos: 8, bytes: 3400, packets: 12",
        "start_ms: 1700000000123, end_ms: 1700000001456, input: 11, output: 12",
        "direction: 1",
    ] {
        assert!(tcp.contains(part), "{part}: {tcp}");
    }
    for part in [
        "Some(2001:db8::5) Some(Ipfix) Some(77) Some(1700000002789) [None, Some(\"blue\")] [1000, 1001] \
         Some((129, 1))",
        "source: 2001:db8::1, destination: 2001:db8::2, next_hop: 2001:db8::4, bgp_next_hop: 2001:db8::3",
        "nat_source: 2001:db8::6, nat_destination: 2001:db8::7",
        "nat_source_port: 513, nat_destination_port: 1027",
        "reverse_bytes: 22, reverse_packets: 21",
        "source_as: 65001, destination_as: 4200000001",
        "vlan: 100, post_vlan: 200, input_vrf: 5, output_vrf: 6",
    ] {
        assert!(icmp.contains(part), "{part}: {icmp}");
    }
    assert!(!icmp.contains("source_port: 0"), "{icmp}");
    for part in [
        "Some(198.51.100.3)",
        "next_hop: 198.51.100.2, bgp_next_hop: 198.51.100.1, nat_source: 203.0.113.1",
    ] {
        assert!(udp.contains(part), "{part}: {udp}");
    }
    for packing in PACKINGS {
        for most in [1, 2, 1000] {
            let got = read(&file(packing, &[&records[..4], &records[4..]]), most);
            assert_eq!(got, (expected.clone(), vec![]), "{packing:?}");
        }
    }
}

/// A map and a flow of nfdump 1.6, with extensions of two and four bytes, or of four and eight.
fn older(kind: u16) -> Vec<Vec<u8>> {
    let maps: [(u16, &[u16]); 2] = [
        (132, &[4, 6, 8, 9, 11, 13, 14, 16, 18, 20, 21, 22, 23, 25, 26, 27]),
        (236, &[5, 7, 10, 12, 15, 17, 19, 24, 37, 38, 40, 41, 42, 45, 46, 48]),
    ];
    let mut out = Vec::new();
    for (at, (len, ids)) in maps.into_iter().enumerate() {
        let ids: Vec<u8> = ids.iter().chain(&[0, 0]).flat_map(|id| id.to_le_bytes()).collect();
        let head = [(at as u16).to_le_bytes(), len.to_le_bytes()].concat();
        out.push(part(2, &[head, ids].concat()));
    }
    let common = |flags: u8, map: u8, protocol: u8| {
        let exporter: &[u8] = if kind == 1 { &[flags, 3] } else { &[flags, 0] };
        let times = [&[123, 0, 200, 1][..], &words(&[1_700_000_000, 1_700_000_001])].concat();
        let rest = [0, 0x1b, protocol, 8, 0, 4, 0xbb, 1];
        let ten: &[u8] = if kind == 1 { &[] } else { &[3, 0, 0, 0] };
        [exporter, &[map, 0], &times, &rest, ten].concat()
    };
    let small = [
        words(&[0x0a01_0001, 0xc000_0207, 12, 3400, 12 << 16 | 11, 65002 << 16 | 65001]),
        vec![0, 1, 16, 24],
        words(&[0xc633_6402, 0xc633_6401, 200 << 16 | 100, 21, 22, 2]),
        longs(&[1, 2, 3, 4]),
        words(&[1000 << 4, 1001 << 4 | 1, 0, 0, 0, 0, 0, 0, 0, 0, 0xc633_6403, 0, 1, 2]),
        longs(&[1_700_000_002_789]),
    ];
    out.push(part(kind, &[common(0, 0, 6), small.concat()].concat()));
    let large = [
        wides(&["2001:db8::1", "2001:db8::2"]),
        longs(&[12, 3400]),
        words(&[11, 12, 65001, 4_200_000_001]),
        wides(&["2001:db8::4", "2001:db8::3"]),
        longs(&[21, 22, 2]),
        wides(&["2001:db8::5"]),
        vec![0; 20],
        vec![1, 2, 3, 4],
        wides(&["2001:db8::6", "2001:db8::7"]),
        vec![0; 24 + 24 + 24 + 4],
        words(&[6, 5, 0, 0]),
    ];
    out.push(part(kind, &[common(7, 1, 17), large.concat()].concat()));
    out
}

/// A file of layout 1.
fn layout_1(flags: u32, packing: Packing, records: &[Vec<u8>]) -> Vec<u8> {
    let head = [&[0x0c, 0xa5, 1, 0][..], &words(&[flags, 1]), &[0; 128 + 136]].concat();
    [head, block(2, records.len() as u32, &pack(packing, &records.concat()))].concat()
}

#[test]
fn nfdump_1_6() {
    for kind in [1, 10] {
        let records = [vec![exporter(3)], older(kind)].concat();
        for (flags, packing) in
            [(0, Packing::None), (1, Packing::Lzo), (8, Packing::Bzip2), (0x12, Packing::Lz4)]
        {
            let (flows, faults) = read(&layout_1(flags, packing, &records), 1);
            assert_eq!(faults, [], "{kind} {packing:?}");
            let [four, six] = &flows[..] else { panic!("{flows:#?}") };
            for part in [
                "Some(198.51.100.3) Some(Ipfix) Some(77) Some(1700000002789) [None, None] [1000, 1001]",
                "source: 10.1.0.1, destination: 192.0.2.7, next_hop: 198.51.100.2, bgp_next_hop: 198.51.100.1",
                "source_mask: 16, destination_mask: 24",
                "source_port: 1024, destination_port: 443, protocol: 6, tcp_flags: 27, tos: 8, bytes: 3400",
                "packets: 12, reverse_bytes: 22, reverse_packets: 21",
                "start_ms: 1700000000123, end_ms: 1700000001456, input: 11, output: 12",
                "source_as: 65001, destination_as: 65002, direction: 1, vlan: 100, post_vlan: 200",
            ] {
                assert!(four.contains(part), "{part}: {four}");
            }
            for part in [
                "Some(2001:db8::5) Some(Ipfix)",
                "source: 2001:db8::1, destination: 2001:db8::2, next_hop: 2001:db8::4",
                "nat_source: 2001:db8::6, nat_destination: 2001:db8::7",
                "nat_source_port: 513, nat_destination_port: 1027",
                "bytes: 3400, packets: 12, reverse_bytes: 22, reverse_packets: 21",
                "source_as: 65001, destination_as: 4200000001, input_vrf: 5, output_vrf: 6",
            ] {
                assert!(six.contains(part), "{part}: {six}");
            }
        }
    }
}

/// The only fault of a file, and the number of its flows.
fn fault(file: &[u8]) -> (usize, NfcapdFaultKind, String) {
    let (flows, faults) = read(file, 1000);
    let [fault] = faults[..] else { panic!("{faults:?}") };
    (flows.len(), fault.kind(), fault.to_string())
}

#[test]
fn faults_have_a_place() {
    let records = records();
    let blocks = [&records[..4], &records[4..5], &records[5..]];
    let whole = file(Packing::None, &blocks);
    let lens = blocks.map(|records| 12 + records.concat().len());
    let second = 40 + lens[0];
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        fault(&file)
    };
    let (flows, kind, text) = changed(second + 4, &[0xff, 0xff, 0xff, 0]);
    assert_eq!((flows, kind), (1, NfcapdFaultKind::BlockSize(0xff_ffff)));
    assert_eq!(
        text,
        format!(
            "block 2, at byte {second}: a block of 16777215 bytes is empty or too large: the rest is lost"
        )
    );
    // The second block is skipped, the third one is read.
    assert_eq!(changed(second + 8, &[9, 0]).1, NfcapdFaultKind::BlockKind(9));
    assert_eq!(changed(second + 8, &[9, 0]).0, 2);
    // An element of the record in it that is too long: the record is skipped.
    let (flows, kind, text) = changed(second + 12 + 12 + 2, &[0xff, 0xff]);
    assert_eq!((flows, kind), (2, NfcapdFaultKind::Element { number: 1, len: 0xffff }));
    assert_eq!(
        text,
        format!(
            "block 2, at byte {second}, in its record at byte 0: element 1 of 65535 bytes does not fit"
        )
    );
    assert_eq!(
        changed(second + 12 + 12 + 2, &[8, 0]).1,
        NfcapdFaultKind::Element { number: 1, len: 8 }
    );
    assert_eq!(changed(second + 12 + 4, &[1, 0]).1, NfcapdFaultKind::Elements);
    assert_eq!(changed(second + 12, &[77, 0]).1, NfcapdFaultKind::RecordKind(77));
    assert_eq!(changed(second, &[2]).1, NfcapdFaultKind::Records { expected: 2, found: 1 });
    assert_eq!(changed(second + 14, &[3, 0]).1, NfcapdFaultKind::RecordSize(3));
    // The header: a block less, a block more, other compressions and layouts.
    let end = whole.len() as u64 - 12 - 23;
    assert_eq!(changed(36, &[2]).1, NfcapdFaultKind::AppendixOffset(end));
    assert_eq!(changed(36, &[4]).0, 3);
    assert_eq!(changed(36, &[4]).1, NfcapdFaultKind::AppendixOffset(end));
    assert_eq!(changed(16, &[5]).1, NfcapdFaultKind::Compression(5));
    assert_eq!(changed(17, &[1]).1, NfcapdFaultKind::Encrypted);
    assert_eq!(changed(2, &[3]).1, NfcapdFaultKind::Layout(3));
    assert_eq!(changed(0, &[0xa5, 0x0c, 0, 2]).1, NfcapdFaultKind::ByteOrder);
    // The file is cut.
    assert_eq!(fault(&whole[..39]).1, NfcapdFaultKind::Header);
    assert_eq!(
        fault(&whole[..second]),
        (
            1,
            NfcapdFaultKind::Missing(2),
            format!(
                "block 1, at byte {second}: the file ends here, but its header counts 2 blocks more"
            )
        )
    );
    assert_eq!(fault(&whole[..second + 100]).1, NfcapdFaultKind::Missing(2));
    assert_eq!(
        fault(&whole[..whole.len() - 1]),
        (
            3,
            NfcapdFaultKind::Appendix,
            format!("block 3, at byte {end}: the file ends within its appendix")
        )
    );
    assert_eq!(fault(&[&whole[..], &[0]].concat()).1, NfcapdFaultKind::Trailing);
    let older = layout_1(0, Packing::None, &older(10));
    assert_eq!(fault(&[&older[..], &[0]].concat()).1, NfcapdFaultKind::Trailing);
    let no_map = layout_1(0, Packing::None, &self::older(10)[2..3]);
    assert_eq!(fault(&no_map).1, NfcapdFaultKind::NoMap(0));
}

/// A file that its collector has not closed: the header counts no blocks, and there is no appendix.
#[test]
fn an_open_file_is_read_to_its_end() {
    let records = records();
    let mut open = file(Packing::Lz4, &[&records]);
    let appendix = 12 + lz4_flex::block::compress(&part(0x8001, b"a name of the file\0")).len();
    open.truncate(open.len() - appendix);
    open[18..40].fill(0);
    assert_eq!(read(&open, 1000).0.len(), 3);
    assert_eq!(read(&open, 1000).1, []);
    open.extend(&[1; 20]);
    assert_eq!(fault(&open).1, NfcapdFaultKind::BlockSize(0x0101_0101));
    open.truncate(open.len() - 12);
    assert_eq!(fault(&open).1, NfcapdFaultKind::Cut);
    // An empty file that was closed.
    assert_eq!(read(&file(Packing::None, &[]), 1000), (vec![], vec![]));
}

/// Blocks that would unpack to more than the limit are not unpacked.
#[test]
fn bombs() {
    let zeros = vec![0; NFCAPD_BLOCK_LIMIT + 1];
    // A literal, and a match of more bytes than the limit.
    let lzo = [&[18, 7][..], &[0x20], &vec![0; 40_000], &[1, 0, 0, 0x11, 0, 0]].concat();
    let good = records();
    for packing in [Packing::Lzo, Packing::Bzip2, Packing::Lz4, Packing::Zstd] {
        let packed = match packing {
            Packing::Lzo => lzo.clone(),
            packing => pack(packing, &zeros),
        };
        let mut file = file(packing, &[&good]);
        let bomb = block(3, 1, &packed);
        file.splice(40..40, bomb.iter().copied());
        file[36] = 2;
        let place = u64::from_le_bytes(*file[24..].first_chunk().unwrap()) + bomb.len() as u64;
        file[24..32].copy_from_slice(&place.to_le_bytes());
        let (flows, kind, _) = fault(&file);
        assert!(matches!(kind, NfcapdFaultKind::Unpack(_)), "{packing:?}: {kind:?}");
        assert_eq!(flows, 3);
    }
}

#[test]
fn every_byte_changed() {
    let mut files: Vec<_> = PACKINGS.map(|packing| file(packing, &[&records()])).into();
    files.push(layout_1(0, Packing::None, &[vec![exporter(3)], older(10)].concat()));
    for file in files {
        let (whole, _) = read(&file, 1000);
        for at in 0..file.len() {
            let mut changed = file.clone();
            for value in [0, 0xff, file[at] ^ 1, file[at] ^ 0x80] {
                changed[at] = value;
                let (flows, faults) = read(&changed, 2);
                // A record has at least 12 bytes, and each fault stands for a record, a block or the file.
                assert!(flows.len() <= 100 && faults.len() <= 100);
                assert_eq!(read(&changed, 1000), (flows, faults), "byte {at}");
            }
            let (flows, faults) = read(&file[..at], 1000);
            assert!(whole.starts_with(&flows));
            assert_eq!(faults.len(), 1, "cut at {at}: {faults:?}");
        }
    }
}

#[test]
fn sources() {
    let mut seen = Vec::new();
    let ends = part(2, &words(&[0x0a01_0001, 0xc000_0207]));
    let mut sflow = flow(&[generic(6, (1, 2)), ends.clone()]);
    sflow[11] = 0x85;
    let mut pcap = flow(&[generic(6, (1, 2)), ends]);
    (pcap[8], pcap[11]) = (9, 0x41);
    let file = file(Packing::None, &[&[exporter(3), sflow, pcap]]);
    let mut decoder = NfcapdDecoder::default();
    assert_eq!(decoder.next(&file), NfcapdStep::Skip(40));
    assert!(matches!(decoder.next(&file[40..]), NfcapdStep::Block(_)));
    let done = decoder.records(1000, |_, source| {
        seen.push((source.exporter(), source.protocol(), source.domain()));
    });
    assert_eq!((done, decoder.blocks()), (Ok(false), 1));
    let router = IpAddr::from([192, 0, 2, 99]);
    assert_eq!(seen, [(Some(router), Some(ExportProtocol::Sflow), Some(77)), (None, None, None)]);
}

const FORMAT: &str = "fmt:%sa %da %pr %sp %dp %pkt %byt %in %out %sas %das %smk %dmk %nh %nhb %svln %dvln %mpls1 \
                      %opkt %obyt";

/// A flow as nfdump shows it: a zero for what it does not have.
fn shown(record: &FlowRecord) -> String {
    let ip = |ip: Option<IpAddr>| ip.unwrap_or(IpAddr::from([0; 4])).to_string();
    let ports = match record.icmp() {
        Some((kind, code)) => format!("0 {kind}.{code}"),
        None => {
            let ports = [record.source_port(), record.destination_port()];
            ports.map(|port| port.unwrap_or_default().to_string()).join(" ")
        }
    };
    let label = record.labels().next();
    [
        ip(record.source()),
        ip(record.destination()),
        record.protocol().unwrap_or_default().to_string(),
        ports,
        record.packets().unwrap_or_default().to_string(),
        record.bytes().unwrap_or_default().to_string(),
        record.input().unwrap_or_default().to_string(),
        record.output().unwrap_or_default().to_string(),
        record.source_as().unwrap_or_default().to_string(),
        record.destination_as().unwrap_or_default().to_string(),
        record.source_mask().unwrap_or_default().to_string(),
        record.destination_mask().unwrap_or_default().to_string(),
        ip(record.next_hop()),
        ip(record.bgp_next_hop()),
        record.vlan().unwrap_or_default().to_string(),
        record.post_vlan().unwrap_or_default().to_string(),
        format!("{}-0-0", label.unwrap_or_default()),
        record.reverse_packets().unwrap_or_default().to_string(),
        record.reverse_bytes().unwrap_or_default().to_string(),
    ]
    .join(" ")
}

/// nfdump itself reads the files that are built here, and shows the same flows.
#[test]
fn nfdump_reads_them() {
    let program = "/usr/bin/nfdump";
    if !std::path::Path::new(program).exists() {
        eprintln!("nfdump is not installed: it does not read the files");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nfcapd.202601312355");
    let older = [vec![exporter(3)], older(10)].concat();
    for (at, packing) in PACKINGS.into_iter().enumerate().filter(|(at, _)| *at < 4) {
        let flags = [0, 1, 8, 0x10][at];
        for file in [file(packing, &[&records()]), layout_1(flags, packing, &older)] {
            std::fs::write(&path, &file).unwrap();
            let output = std::process::Command::new(program)
                .args(["-r", path.to_str().unwrap(), "-q", "-o"])
                .arg(FORMAT)
                .args(["-6", "-N"])
                .output()
                .unwrap();
            let said = String::from_utf8(output.stdout).unwrap();
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let theirs: Vec<_> = said.lines().map(words).collect();
            let mut ours = Vec::new();
            let mut decoder = NfcapdDecoder::default();
            let mut rest = &file[..];
            while !rest.is_empty() {
                let len = match decoder.next(rest) {
                    NfcapdStep::Skip(len) => len,
                    NfcapdStep::Block(len) => {
                        let done = decoder.records(1000, |record, _| ours.push(shown(record)));
                        assert_eq!(done, Ok(false));
                        len
                    }
                    step => panic!("{step:?}"),
                };
                rest = &rest[len..];
            }
            assert!(ours.len() >= 2);
            let err = String::from_utf8_lossy(&output.stderr);
            assert_eq!(theirs, ours, "{packing:?}: {err}");
        }
    }
}
