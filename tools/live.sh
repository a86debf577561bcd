# Real daemons and real kernels, in network namespaces.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# live PROFILE [OPTION...]: BIRD, FRR and the kernel in network namespaces feed `fibula serve`.
live() {
    local bin="$target/$1/fibula"
    shift
    packages python3=python3
    FIBULA_BIN="$bin" python3 crates/cli/tests/live "$@"
}

# router PROFILE [OPTION...]: `fibula route` between the kernels of network namespaces.
router() {
    local bin="$target/$1/fibula"
    shift
    packages python3=python3
    FIBULA_BIN="$bin" python3 crates/cli/tests/router "$@"
}

router_demo() {
    if [ "$(uname)" != Linux ] || [ "$(id -u)" != 0 ]; then
        die "the router's demo needs Linux and root"
    fi
    packages ip=iproute2 unshare=util-linux
    say "building fibula"
    cargo build --workspace --bin fibula --quiet
    router debug --demo --port afxdp "$@"
}

live_tests() {
    live_packages fort=fort-validator openssl=openssl
    step "compiling"; cargo build --workspace --bin fibula --quiet
    step "real daemons, a small table"; live debug
    step "real daemons, a large table"; live debug --large
    step "alarms on staged hijacks and leaks"
    cargo test --quiet -p fibula-daemon --test daemon hijacks:: -- --ignored
    step "a validator that is followed serial by serial"
    cargo test --quiet -p fibula-rpki --test rpki fort:: -- --ignored
    step "the router behind real daemons"; router debug --daemons
    step "the router behind real daemons, a large table"; router debug --daemons --large --port afxdp --port xdp
    times
}

live_rates() {
    live_packages
    build release
    live release --rates "$@"
}

# live_packages [COMMAND=PACKAGE...]: what the test with real daemons needs, and these. Debian starts daemons when it
# installs them, which nobody asked for here.
live_packages() {
    local before service
    if [ "$(uname)" != Linux ] || [ "$(id -u)" != 0 ]; then
        die "the test with real daemons needs Linux and root"
    fi
    before=$(command -v bird gobgpd fort /usr/lib/frr/bgpd || true)
    packages /usr/lib/frr/bgpd=frr bird=bird2 gobgpd=gobgpd ip=iproute2 unshare=util-linux "$@"
    if [ "$(command -v bird gobgpd fort /usr/lib/frr/bgpd)" != "$before" ] && [ -d /run/systemd/system ]; then
        for service in bird frr gobgpd fort; do
            # A name that is not known is refused with all others.
            [ ! -e "/lib/systemd/system/$service.service" ] || systemctl disable --now --quiet "$service" || true
        done
    fi
}
