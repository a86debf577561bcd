# Tests that take long, or a tool of their own: schedules, Miri, crashes, all addresses, real data, fuzzing.
# shellcheck shell=bash

every_width() {
    step "filters, keys of every width"
    cargo test --quiet -p fibula-filter --features every-width columns::
}

# The log, the publishers and the threads of the router under shuttle, in more schedules than the tests have time for.
model() {
    local schedules=${FIBULA_MODEL_SCHEDULES:-100000}
    say "threads, in $schedules schedules"
    FIBULA_MODEL_SCHEDULES=$schedules cargo test --quiet -p fibula-rib -p fibula-router -p fibula-classify -p fibula-collect --lib model
}

# nightly_component NAME: whether the nightly toolchain has it, or can get it.
nightly_component() {
    have rustup && rustup run nightly true 2>/dev/null || return 1
    rustup +nightly component list --installed 2>/dev/null | grep -q "^$1" ||
        rustup component add --toolchain nightly "$1" >/dev/null 2>&1
}

# What Miri can see of memory that is read wrongly: in the crates that have unsafe code and make no system calls,
# without vectors.
miri() {
    if ! nightly_component miri || ! nightly_component rust-src; then
        step "Miri: SKIPPED, this machine has no nightly toolchain with the components miri and rust-src"
        return
    fi
    step "Miri"
    cargo +nightly miri test --quiet -p fibula-simd --lib table::tests::shared
    cargo +nightly miri test --quiet -p fibula-engines --test engines miri::
}

crash() {
    packages strace=strace
    FIBULA_CRASH=all cargo test --workspace --test cli crash::
}

# exhaustive [ENGINE] [OPTION...]: options are those of the test binary.
exhaustive() {
    local engine=
    case ${1:-} in
        "" | -*) ;;
        *)
            grep -q "^    [a-z0-9_]* \"$1\"$" crates/engines/tests/any_isa/exhaustive.rs || die "no IPv4 engine is called $1"
            engine=${1//-/_}; shift ;;
    esac
    say "all 2^32 addresses, ${engine:-every IPv4 engine}"
    cargo test --release -p fibula-engines --test engines -- \
        "exhaustive::$engine" "exhaustive::archives::$engine" --ignored --nocapture "$@"
}

# check-data: real tables and archives. Every table is built, and every engine's every probe of it
# compared with the oracle; then the tests that take what lies there run with optimisation.
check_data() {
    local data=${FIBULA_SHARED:-../shared}/data table
    [ -d "$data" ] || die "no shared data at $data (set FIBULA_SHARED)"
    # Tests run in the folders of their crates.
    FIBULA_SHARED=$(cd "$data/.." && pwd)
    export FIBULA_SHARED
    build release
    mkdir -p demo-out
    for table in "$data"/tables/*; do
        say "$(basename "$table")"
        fibula build "$table" -o demo-out/table.fib
        fibula verify --table demo-out/table.fib --engines all --random 1000000
    done
    rm demo-out/table.fib
    say "archives and addresses"
    cargo test --release --quiet --workspace --test cli --test ingest --test engines -- --include-ignored \
        --skip exhaustive::
}

fuzz() {
    local seconds=${1:-60} name
    cargo +nightly --version >/dev/null 2>&1 || die "fuzzing needs a nightly toolchain: rustup toolchain install nightly"
    cargo_tool cargo-fuzz cargo-fuzz 0.13.2
    for name in $(cargo +nightly fuzz list); do
        say "fuzzing $name for $seconds s"
        cargo +nightly fuzz run --features libfuzzer "$name" -- -max_total_time="$seconds" -rss_limit_mb=4096 -print_final_stats=1
    done
}
