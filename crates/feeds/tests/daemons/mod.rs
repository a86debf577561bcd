//! BGP sessions with real daemons, each in a network namespace of its own: BIRD and FRR of Debian's packages
//! `bird2` and `frr`. `cargo test --workspace --test feeds daemons:: -- --ignored` runs them, as root.

mod bird;
mod collector;
mod frr;
mod world;

use world::World;

const BIRD: [&str; 2] = ["bird", "birdc"];

#[test]
#[ignore = "needs root and the packages iproute2 and bird2"]
fn bird_routes() {
    World::run("daemons::bird_routes", &BIRD, bird::routes_refresh_and_farewells);
}

#[test]
#[ignore = "needs root and the packages iproute2 and bird2"]
fn bird_graceful_restart() {
    World::run("daemons::bird_graceful_restart", &BIRD, bird::graceful_restart);
}

#[test]
#[ignore = "needs root and the packages iproute2 and bird2"]
fn bird_plain_restart() {
    World::run("daemons::bird_plain_restart", &BIRD, bird::plain_restart);
}

#[test]
#[ignore = "needs root and the packages iproute2 and bird2"]
fn bird_refusals() {
    World::run("daemons::bird_refusals", &BIRD, bird::refusals);
}

#[test]
#[ignore = "needs root and the packages iproute2 and bird2"]
fn bird_md5() {
    World::run("daemons::bird_md5", &BIRD, bird::md5);
}

#[test]
#[ignore = "needs root and the packages iproute2 and frr"]
fn frr_routes() {
    World::run("daemons::frr_routes", &["bgpd", "zebra", "vtysh"], frr::routes_refresh_and_restart);
}
