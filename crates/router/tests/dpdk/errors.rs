//! Errors are reported in a sentence.

use super::*;

#[track_caller]
fn error(devargs: &str, pool: &Pool, options: &DpdkOptions) -> String {
    let error = dpdk::open(devargs, pool, options).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("dpdk:") && !error.contains('\n'), "{error}");
    error
}

#[test]
fn bad_devices_are_named() {
    let (pool, plain) = (pool(), Pool::new(64, 2048));
    let usual = DpdkOptions::default();
    let _open = open("net_null_errors", &pool);
    for (devargs, options, what) in [
        ("", &usual, "a device has a name"),
        ("net_nosuch0", &usual, "dpdk:net_nosuch0: finding the device and its driver: "),
        ("net_null_errors", &usual, "the process has it open"),
        ("net_null_args,speed=1", &usual, "net_null_args: finding the device and its driver: "),
        ("net_pcap_none,rx_pcap=/no/such.pcap", &usual, "/no/such.pcap"),
        ("net_af_xdp_none,iface=no-such", &usual, "finding the device and its driver: "),
        ("net_ring_many", &DpdkOptions { queues: 17, ..usual.clone() }, "has fewer"),
        ("net_ring_mtu", &DpdkOptions { mtu: Some(70_000), ..usual.clone() }, "at most 65535"),
        ("net_ring_long", &DpdkOptions { mtu: Some(9000), ..usual.clone() }, "MTU"),
    ] {
        let error = error(devargs, &pool, options);
        assert!(error.contains(what), "{devargs}: {error}");
    }
    let error = error("net_null_plain", &plain, &usual);
    assert!(error.contains("no room in front of its slots"), "{error}");
    // A device that failed to open is gone: the name can be had.
    drop(open("net_ring_many", &pool));
    assert_eq!(pool.free(), SLOTS as usize);
}

#[test]
fn the_environment_is_started_once() {
    drop(open("net_null_first", &pool()));
    let error = dpdk::start("--no-such-option", []).unwrap_err().to_string();
    assert!(error.contains("started once in a process"), "{error}");
}

/// In a separate process: bad arguments of the environment.
#[test]
fn bad_arguments_are_named() {
    const CHILD: &str = "FIBULA_TEST_DPDK_ARGUMENTS";
    if let Ok(arguments) = std::env::var(CHILD) {
        println!("said: {}", dpdk::start(&arguments, []).unwrap_err());
        let pool = pool();
        let error = dpdk::open("net_null0", &pool, &DpdkOptions::default()).map(drop);
        println!("again: {}", error.unwrap_err());
        return;
    }
    for (arguments, what) in [
        ("--no-such-option", "unrecognized option '--no-such-option'"),
        ("--no-huge --no-shconf -m 99999999", "memory"),
        ("--no-huge --no-shconf -m 64 -l 999", "lcore"),
    ] {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "errors::bad_arguments_are_named", "--nocapture"]);
        let run = child.env(CHILD, arguments).output().unwrap();
        let (said, errors) =
            (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{said}\n{errors}");
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("DPDK's")).collect();
        assert!(lines.len() == 2 && lines[0].contains("said: "), "{said}");
        for line in lines {
            assert!(line.contains("environment does not start") && line.contains(what), "{line}");
        }
        assert!(!said.contains("EAL common options"), "no page of options: {said}");
    }
}
