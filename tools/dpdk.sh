# The ports of DPDK.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# What feature dpdk needs. Its bindings are made by any libclang.
dpdk_is_there() {
    have pkg-config && pkg-config --exists libdpdk && compgen -G "/usr/lib/llvm-*/lib/libclang*.so*" >/dev/null
}

# With the features of the whole workspace, so that of other crates only what the bindings' tools change is compiled again.
dpdk_tests() {
    local with=(--workspace --features "fibula-router/dpdk" --test dpdk --quiet)
    step "ports of DPDK"; cargo test "${with[@]}"
    step "ports of DPDK: clippy"; cargo clippy "${with[@]}" --lib -- -D warnings
}

dpdk() {
    dpdk_is_there || packages no-such-command=pkg-config no-such-command=libdpdk-dev no-such-command=libclang-dev
    dpdk_tests
    step "the command and l3fwd with DPDK"
    cargo clippy --workspace --features fibula-cli/dpdk,fibula-papers/dpdk --bins --quiet -- -D warnings
    # Its own folder: that of the others has the command without DPDK.
    cargo build --workspace --features fibula-cli/dpdk --bin fibula --quiet --target-dir "$target/dpdk"
    step "the router between real kernels, on DPDK's XDP sockets"
    target="$target/dpdk" router debug --if-possible --port dpdk
    step "the same behind real daemons"
    target="$target/dpdk" router debug --if-possible --daemons --port dpdk
    times
}

bench_dpdk() {
    local pages=/proc/sys/vm/nr_hugepages before
    [ "$(id -u)" = 0 ] || die "bench-dpdk needs root, for huge pages"
    dpdk_is_there || packages no-such-command=pkg-config no-such-command=libdpdk-dev no-such-command=libclang-dev
    say "building l3fwd"
    # DPDK's own inline functions for this machine, as DPDK is built by those who measure it.
    FIBULA_DPDK_CPU=native cargo build --profile dist --quiet -p fibula-papers --features dpdk --bin l3fwd
    before=$(cat "$pages")
    # shellcheck disable=SC2064 # the number of now
    trap "echo $before >$pages" EXIT
    [ "$before" -ge 1024 ] || echo 1024 >"$pages"
    "$target/dist/l3fwd" "$@"
}
