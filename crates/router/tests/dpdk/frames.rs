//! Frames arrive as they were sent, and no slot is lost.

use std::thread;
use std::time::Duration;

use fibula_packet::capture::{header, record};
use fibula_router::port::memory::{self, Flows, MemoryOptions};

use super::*;

/// Packets that are sent by a ring come back by it.
#[test]
fn every_length() {
    let pool = pool();
    {
        let mut port = open("net_ring_lengths", &pool);
        assert_eq!((port.interface, port.mtu, port.queues.len()), (0, 1500, 1));
        let frames: Vec<Vec<u8>> =
            (14..=1536).map(|len| (0..len).map(|at| (at * 7 + len) as u8).collect()).collect();
        for some in frames.chunks(200) {
            let burst = some.iter().map(|bytes| packet(&pool, bytes)).collect();
            send(&pool, &mut port.queues[0], burst);
            assert!(receive(&pool, &mut port.queues[0]) == some);
        }
        // Some that begin elsewhere in their slots.
        let mut moved: Vec<_> = frames[..20].iter().map(|bytes| packet(&pool, bytes)).collect();
        for (packet, by) in moved.iter_mut().zip([-14, 256, 0, 3, -1].iter().cycle()) {
            packet.grow_front(*by);
        }
        let expected: Vec<_> = moved.iter().map(|packet| packet.bytes().to_vec()).collect();
        send(&pool, &mut port.queues[0], moved);
        assert!(receive(&pool, &mut port.queues[0]) == expected);
        assert_eq!(port.queues[0].receive.lost() + port.queues[0].transmit.lost(), 0);
        assert_eq!(pool.free(), SLOTS as usize);
    }
}

/// The slots of a device return to the pool when it is closed, and its name is free again.
#[test]
fn a_closed_device_gives_slots_back() {
    let pool = pool();
    for _ in 0..3 {
        let mut port = open("net_ring_closed", &pool);
        let burst = (0..1000).map(|at| packet(&pool, &[at as u8; 60])).collect();
        send(&pool, &mut port.queues[0], burst);
        assert_eq!(pool.free(), SLOTS as usize - 1000);
        drop(port);
        assert_eq!(pool.free(), SLOTS as usize);
    }
}

/// A full ring accepts as many packets as it has room for, from the front; the others stay, in order.
#[test]
fn a_full_device_takes_a_part() {
    let pool = pool();
    let mut port = open("net_ring_full", &pool);
    let mut burst: Vec<_> =
        (0..3000u32).map(|at| packet(&pool, &[&at.to_le_bytes()[..]; 16].concat())).collect();
    let mut taken = 0;
    loop {
        match port.queues[0].transmit.transmit(&pool, &mut burst).unwrap() {
            0 => break,
            more => taken += more,
        }
    }
    assert!((500..3000).contains(&taken) && burst.len() == 3000 - taken, "{taken}");
    assert!(burst[0].bytes().starts_with(&(taken as u32).to_le_bytes()));
    pool.give(burst);
    let found = receive(&pool, &mut port.queues[0]);
    assert_eq!(found.len(), taken);
    assert!(found.iter().zip(0u32..).all(|(frame, at)| frame.starts_with(&at.to_le_bytes())));
    drop(port);
    assert_eq!(pool.free(), SLOTS as usize);
}

/// Devices of one pool, on separate threads, with a port of another kind whose packets they send.
#[test]
fn ports_share_the_slots() {
    let pool = pool();
    thread::scope(|scope| {
        let work = |name: &'static str| {
            let pool = &pool;
            move || {
                let mut ring = open(name, pool);
                let mac = [2, 0, 0, 0, 0, 1];
                let addresses = (0..100u8).map(|last| [192, 0, 2, last].into());
                let flows = std::sync::Arc::new(Flows::udp(mac, mac, 64, addresses));
                let options = MemoryOptions { mac, queues: 1, flows, packets: Some(200_000) };
                let (mut memory, sent) = memory::open("0", pool, &options);
                let mut burst = Vec::new();
                while !memory.queues[0].receive.is_over() {
                    memory.queues[0].receive.receive(pool, &mut burst, 64).unwrap();
                    send(pool, &mut ring.queues[0], std::mem::take(&mut burst));
                    ring.queues[0].receive.receive(pool, &mut burst, 256).unwrap();
                    memory.queues[0].transmit.transmit(pool, &mut burst).unwrap();
                }
                assert_eq!(sent.packets(), 200_000);
            }
        };
        scope.spawn(work("net_ring_one"));
        scope.spawn(work("net_ring_two"));
    });
    assert_eq!(pool.free(), SLOTS as usize);
}

/// A device that receives empty packets without end, and drops sent packets.
#[test]
fn a_pool_that_runs_dry() {
    let pool = Pool::with_front(64, 2048, FRONT);
    let mut port = open("net_null_dry,size=60", &pool);
    let mut burst = Vec::new();
    let Queue { receive, transmit } = &mut port.queues[0];
    let received = std::iter::from_fn(|| {
        receive.receive(&pool, &mut burst, 10).ok().filter(|count| *count > 0)
    });
    let received: usize = received.sum();
    assert_eq!((received, pool.free()), (60, 4), "bursts of ten, all or none");
    assert!(burst.iter().all(|packet| packet.bytes().len() == 60));
    assert_eq!(transmit.transmit(&pool, &mut burst).unwrap(), 60);
    assert_eq!((burst.len(), pool.free()), (0, 64));
    assert_eq!(receive.receive(&pool, &mut burst, 10).unwrap(), 10);
    assert_eq!((transmit.transmit(&pool, &mut burst).unwrap(), pool.free()), (10, 64));
    transmit.close(&pool).unwrap();
    assert_eq!(pool.free(), 64);
    assert!(port.mac != [0; 6], "its own");
    receive.wait(Duration::from_secs(1)).unwrap();
}

/// A thread takes the slots again that it gave back last. They are the pool's again when its halves close or go.
#[test]
fn a_thread_keeps_some_slots() {
    let pool = pool();
    let mut port = open("net_null_kept,size=60", &pool);
    let mut burst = Vec::new();
    let Queue { receive, transmit } = &mut port.queues[0];
    let mut round = || {
        assert_eq!(receive.receive(&pool, &mut burst, 64).unwrap(), 64);
        let mut slots: Vec<_> = burst.iter().map(|packet| packet.bytes().as_ptr()).collect();
        assert_eq!(transmit.transmit(&pool, &mut burst).unwrap(), 64);
        slots.sort_unstable();
        slots
    };
    let first = round();
    assert!((0..100).all(|_| round() == first));
    assert!(pool.free() < SLOTS as usize);
    transmit.close(&pool).unwrap();
    assert_eq!(pool.free(), SLOTS as usize);
    assert_eq!(receive.receive(&pool, &mut burst, 64).unwrap(), 64);
    pool.give(burst);
    drop(port);
    assert_eq!(pool.free(), SLOTS as usize);
}

/// Files in and out; packets that are longer than a slot are lost and counted.
#[test]
fn captures() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool();
    let frames: Vec<Vec<u8>> = (0..500).map(|at| vec![at as u8; 60 + at * 3]).collect();
    let mut bytes = header(1).to_vec();
    for frame in frames.iter().chain([&vec![9; 5000]]) {
        bytes.extend(record(1, 0, frame.len() as u32));
        bytes.extend(frame);
    }
    let (input, output) = (folder.path().join("in.pcap"), folder.path().join("out.pcap"));
    std::fs::write(&input, bytes).unwrap();
    let devargs =
        format!("net_pcap_files,rx_pcap={},tx_pcap={}", input.display(), output.display());
    let mut port = open(&devargs, &pool);
    let found = receive(&pool, &mut port.queues[0]);
    let (found, long): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|frame| frame[0] != 9 || frame.len() < 1000);
    assert!(found == frames && long.is_empty());
    assert_eq!(port.queues[0].receive.lost(), 1);
    let burst = found.iter().map(|bytes| packet(&pool, bytes)).collect();
    send(&pool, &mut port.queues[0], burst);
    drop(port);
    assert_eq!(pool.free(), SLOTS as usize);
    assert!(routing::frames_of(&output) == frames);
}
