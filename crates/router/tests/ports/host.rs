//! Packets that ports pass to the kernel, which forwards them.

use std::process::Command;

use fibula_router::port::host;

use super::world::{PortKind, frame, inside, open, pair, pool, run};

#[test]
fn the_kernel_forwards_what_it_is_given() {
    inside("ports::host::in_it_the_kernel_forwards_what_it_is_given");
}

#[test]
#[ignore = "run by the_kernel_forwards_what_it_is_given"]
fn in_it_the_kernel_forwards_what_it_is_given() {
    pair(1);
    run("sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=1");
    run("sysctl -qw net.ipv4.conf.dA.forwarding=0");
    run("ip addr add 10.9.0.1/24 dev dB");
    run("ip link set dA address 02:00:00:00:00:05");
    run("ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:05 dev dB");
    run("ip route add 198.18.0.0/16 via 10.9.0.2");
    let pool = pool();
    let mut link = open(PortKind::Packet, "dA", &pool);
    let host = host::open().unwrap();
    let name = host.name().to_owned();
    let obstacle = host.obstacle().expect("the machine's filter is strict");
    assert!(obstacle.contains("sysctl net.ipv4.conf.all.rp_filter=0"), "{obstacle}");
    run("sysctl -qw net.ipv4.conf.all.rp_filter=0");
    assert_eq!(host.obstacle(), None);
    // As systemd does when a device has appeared.
    run(&format!("sysctl -qw net.ipv4.conf.{name}.rp_filter=2"));
    let obstacle = host.obstacle().expect("the device's filter wants a route back");
    assert!(obstacle.contains(&format!("sysctl net.ipv4.conf.{name}.rp_filter=0")), "{obstacle}");

    let mut queue = host.queue();
    let mut arp = frame([0xff; 6], 60, 1, None);
    arp[12..14].copy_from_slice(&[8, 6]);
    let sent = [frame([2; 6], 100, 2, None), arp, frame([4; 6], 300, 3, Some(9))];
    let mut burst = sent.iter().map(|frame| link.packet(frame)).collect();
    assert_eq!(queue.transmit.transmit(&pool, &mut burst).unwrap(), 3);
    assert_eq!((burst.len(), queue.transmit.lost()), (0, 1));
    for (sent, at) in [(&sent[0], 14), (&sent[2], 18)] {
        let found = link.receive(1).pop().expect("it is forwarded");
        assert_eq!((&found[..6], &found[12..14]), (&[2, 0, 0, 0, 0, 5][..], &[8, 0][..]));
        assert_eq!((found[14 + 8], sent[at + 8]), (63, 64));
        assert_eq!(found[14 + 12..], sent[at + 12..]);
    }
    // Another router of this machine has its own device.
    let other = host::open().unwrap();
    assert_ne!(other.name(), name);
    drop((other, queue, host));
    let shown = Command::new("ip").args(["link", "show", &name]).output().unwrap();
    assert!(!shown.status.success(), "{name} is still there");
    drop(link);
    assert_eq!(pool.free(), 16_384);
}
