//! Interfaces that go away, links that go down, processes that are killed, and slots, of which none is lost.

use std::env;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::world::{LIMIT, PortKind, frame, inside, open, pair, pool, run};

const KINDS: [PortKind; 4] = [PortKind::Packet, PortKind::Native, PortKind::Generic, PortKind::Tap];

#[test]
fn a_removed_interface_is_an_error_of_the_port() {
    inside("ports::lost::in_it_a_removed_interface_is_an_error_of_the_port");
}

#[test]
#[ignore = "run by a_removed_interface_is_an_error_of_the_port"]
fn in_it_a_removed_interface_is_an_error_of_the_port() {
    let pool = pool();
    for kind in KINDS {
        let name = if kind == PortKind::Tap { "tA" } else { "dA" };
        if kind != PortKind::Tap {
            pair(1);
        }
        let mut here = open(kind, name, &pool);
        let mut burst = vec![here.packet(&frame([2; 6], 60, 1, None))];
        here.queues[0].transmit.transmit(&pool, &mut burst).unwrap();
        here.queues[0].transmit.flush(&pool).unwrap();
        here.queues[0].receive.wait(Duration::from_millis(1)).unwrap();
        run(&format!("ip link del {name}"));
        let began = Instant::now();
        let errors = |result: &mut dyn FnMut() -> std::io::Result<()>| {
            loop {
                match result() {
                    Err(error) => break error.to_string(),
                    Ok(()) => assert!(began.elapsed() < LIMIT, "{kind:?}: no error"),
                }
            }
        };
        let queue = &mut here.queues[0];
        let received = errors(&mut || queue.receive.wait(Duration::from_millis(1)));
        assert!(received.contains(name) && received.contains("removed"), "{kind:?}: {received}");
        let sent = errors(&mut || {
            let mut burst = vec![pool.take().unwrap()];
            burst[0].fill(&frame([2; 6], 60, 1, None));
            let result = queue.transmit.transmit(&pool, &mut burst).map(drop);
            pool.give(burst);
            result.and(queue.transmit.flush(&pool))
        });
        assert!(sent.contains(name) && sent.contains("removed"), "{kind:?}: {sent}");
        drop(here);
        assert_eq!(pool.free(), 16_384, "{kind:?}");
    }
}

#[test]
fn a_link_goes_down_and_comes_up() {
    inside("ports::lost::in_it_a_link_goes_down_and_comes_up");
}

#[test]
#[ignore = "run by a_link_goes_down_and_comes_up"]
fn in_it_a_link_goes_down_and_comes_up() {
    let pool = pool();
    pair(1);
    for kind in [PortKind::Packet, PortKind::Native, PortKind::Generic] {
        {
            let (mut here, mut there) =
                (open(kind, "dA", &pool), open(PortKind::Packet, "dB", &pool));
            for _ in 0..2 {
                run("ip link set dA down");
                for number in 0..3 {
                    let mut burst = vec![here.packet(&frame(there.mac, 60, number, None))];
                    here.queues[0].transmit.transmit(&pool, &mut burst).unwrap();
                    here.queues[0].transmit.flush(&pool).unwrap();
                    pool.give(burst);
                    here.queues[0].receive.wait(Duration::from_millis(1)).unwrap();
                    assert_eq!(here.receive_within(1, Duration::from_millis(2)).len(), 0);
                }
                run("ip link set dA up");
                here.queues[0].transmit.flush(&pool).unwrap();
                // Packets that waited in the port may come now.
                there.receive_within(64, Duration::from_millis(20));
                let (out, back) = (frame(there.mac, 70, 1, None), frame(here.mac, 80, 2, None));
                let burst = vec![here.packet(&out)];
                here.send(0, burst);
                assert_eq!(there.receive(1), [out], "{kind:?}");
                let burst = vec![there.packet(&back)];
                there.send(0, burst);
                assert_eq!(here.receive(1), [back], "{kind:?}");
            }
        }
        assert_eq!(pool.free(), 16_384, "{kind:?}");
    }
}

#[test]
fn a_killed_process_leaves_no_program_behind() {
    inside("ports::lost::in_it_a_killed_process_leaves_no_program_behind");
}

#[test]
#[ignore = "run by a_killed_process_leaves_no_program_behind"]
fn in_it_a_killed_process_leaves_no_program_behind() {
    pair(1);
    let is_attached = || {
        let shown = Command::new("ip").args(["link", "show", "dA"]).output().unwrap();
        String::from_utf8_lossy(&shown.stdout).contains("prog/xdp")
    };
    let wait_until = |wanted: bool| {
        let began = Instant::now();
        while is_attached() != wanted {
            assert!(began.elapsed() < LIMIT, "attached: {}", !wanted);
            thread::sleep(Duration::from_millis(5));
        }
    };
    assert!(!is_attached());
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "ports::lost::holds_a_port", "--ignored"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(true);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until(false);
}

#[test]
#[ignore = "killed by in_it_a_killed_process_leaves_no_program_behind"]
fn holds_a_port() {
    let pool = pool();
    let _port = open(PortKind::Native, "dA", &pool);
    thread::sleep(LIMIT);
}

/// Packets go to and fro between both ends, faster than either can be sure to keep up with.
#[track_caller]
fn no_slot_is_lost(kind: PortKind, packets: u64) {
    let pool = pool();
    pair(1);
    let mut received = 0;
    {
        let (mut here, mut there) = (open(kind, "dA", &pool), open(PortKind::Packet, "dB", &pool));
        let sent = frame(here.mac, 60, 1, None);
        let mut mirrored = 0;
        let mut burst = Vec::new();
        let began = Instant::now();
        let mut sum = 0;
        while sum < packets {
            assert!(began.elapsed() < 3 * LIMIT, "{kind:?}: {sum} packets");
            while burst.len() < 64 {
                burst.push(there.packet(&sent));
            }
            there.queues[0].transmit.transmit(&pool, &mut burst).unwrap();
            pool.give(burst.drain(..));
            let queue = &mut here.queues[0];
            received += queue.receive.receive(&pool, &mut burst, 256).unwrap();
            for packet in &mut burst {
                packet.bytes_mut()[..6].copy_from_slice(&there.mac);
            }
            queue.transmit.transmit(&pool, &mut burst).unwrap();
            queue.transmit.flush(&pool).unwrap();
            pool.give(burst.drain(..));
            mirrored += there.queues[0].receive.receive(&pool, &mut burst, 256).unwrap();
            pool.give(burst.drain(..));
            sum = (received + mirrored) as u64;
        }
        assert!(mirrored > received / 2, "{kind:?}: {mirrored} of {received} came back");
    }
    assert_eq!(pool.free(), 16_384, "{kind:?}: slots are back");
}

#[test]
fn no_slot_is_lost_in_a_million_packets() {
    inside("ports::lost::in_it_no_slot_is_lost_in_a_million_packets");
}

#[test]
#[ignore = "run by no_slot_is_lost_in_a_million_packets"]
fn in_it_no_slot_is_lost_in_a_million_packets() {
    no_slot_is_lost(PortKind::Native, 1_000_000);
}

#[test]
fn no_slot_of_a_packet_socket_is_lost() {
    inside("ports::lost::in_it_no_slot_of_a_packet_socket_is_lost");
}

#[test]
#[ignore = "run by no_slot_of_a_packet_socket_is_lost"]
fn in_it_no_slot_of_a_packet_socket_is_lost() {
    no_slot_is_lost(PortKind::Packet, 200_000);
}
