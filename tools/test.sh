# Every check and every test, as CI runs them.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# All that `test` compiles is of one profile (dev), and has the features that the workspace and its tests have together:
# naming single packages would compile most dependencies again, with fewer features. So it is always --workspace, and
# each crate's integration tests are one binary that is called as the crate.
# The command `fibula` is compiled for its integration tests.
all=(--workspace --lib
    --bin bloomfwd --bin compressed --bin displaced --bin hpbf --bin planb --bin worst --tests)

# The programs of the papers' figures.
figures=(--example dxr_paper_tables --example updates_by_length --example sail_on_chip --example dpcpe --example sail_accesses)

# The tests whose result depends on the instruction set. Those that force each one, and long ones that run no kernel, are
# in modules called any_isa.
scalar=(--workspace --lib --test annotate --test engines -- --skip any_isa::)

# run COMMAND...: with memory that is kept when it is freed, on huge pages. The engines' tests fill and free large tables thousands
# of times, and without this a third of their time is the kernel's, which clears pages.
run() {
    MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000 GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "$@"
}

run_tests() {
    case ${1:-} in "" | --all) ;; --live) live_tests; return ;; *) die "test takes --all or --live, not $1" ;; esac
    [ "$(uname)" = Darwin ] || packages strace=strace openssl=openssl
    room
    python_for "$target/python" >/dev/null
    begin python_environment
    lint
    [ -z "${1:-}" ] || goflow2_there
    # With the server that the looking glass is tested on.
    step "compiling all tests"; cargo build "${all[@]}" "${figures[@]}" --example glass --quiet
    end
    # They start programs and wait for them: there is room for tests that compute.
    begin test_programs
    if [ -e "$pocl" ]; then
        # With a name, an absent device is an error.
        export FIBULA_TEST_DEVICE=${FIBULA_TEST_DEVICE:-opencl:0}
    else
        step "kernels of accelerators: SKIPPED, pocl-opencl-icd is not installed"
    fi
    step "tests"; run cargo test "${all[@]}" --quiet
    if dpdk_is_there; then
        dpdk_tests
    else
        step "ports of DPDK: SKIPPED, libdpdk-dev, pkg-config and libclang are not installed (./dev dpdk installs them)"
    fi
    step "examples in the documentation"; cargo test --workspace --doc --quiet
    step "tests without vector instructions"; FIBULA_ISA=scalar run cargo test --quiet "${scalar[@]}"
    step "waiting for the programs, Miri and the documentation"; end
    [ -z "${1:-}" ] || { abi; bench_check; every_width; kernels_checked; portable; python_wheel --all; datafusion; go_all; jvm; site; }
    times
    say "all checks passed"
}

goflow2_version=v2.2.6

# goflow2_there: compiles the collector of flows beside which ours is tested, if Go is installed.
goflow2_there() {
    local programs="$target/hosts/bin"
    have go || { step "goflow2: SKIPPED, Go is not installed"; return; }
    mkdir -p "$programs"
    programs=$(cd "$programs" && pwd)
    if [ ! -x "$programs/goflow2" ]; then
        step "compiling goflow2"
        GOBIN=$programs go install -ldflags "-s -w" "github.com/netsampler/goflow2/v2/cmd/goflow2@$goflow2_version" ||
            { step "goflow2: SKIPPED, it cannot be compiled here"; return; }
    fi
    export FIBULA_GOFLOW2=$programs/goflow2
}

# What is tested as its users run it, on what was compiled for the tests.
test_programs() {
    step "the Python package"; python_built_here
    step "the extension of DuckDB"; duckdb_extension dev; duckdb_tests
    if go_is_there .; then
        step "the module of Go"; go_tests_here
    else
        step "the module of Go: SKIPPED, Go $(go_wanted .) or later and pkg-config are not installed (./dev go needs them)"
    fi
    if have javac && have jar; then
        step "the jar"; jvm_jar dev; jvm_tests dev
    else
        step "the jar: SKIPPED, no JDK is installed (./dev jvm installs it)"
    fi
    step "the papers' figures, small"; "$(python_for "$target/python")" bench/papers/run.py check --programs "$target/debug"
    step "the demo, small"; profile=debug demo 20000 20000 auto scalar
    if glass_browser >/dev/null; then
        step "the looking glass"; glass
    else
        step "the looking glass: SKIPPED, no Chromium is installed (./dev glass installs it)"
    fi
    if have promtool; then
        step "alerts"; alerts
    else
        step "alerts: SKIPPED, promtool is not installed (Debian: prometheus)"
    fi
    if hardware_is_there; then
        step "pipelines in hardware, small"; hardware_short
    else
        step "pipelines in hardware: SKIPPED, their tools are not installed (./dev hardware installs them)"
    fi
    step "real daemons (BIRD, FRR, the kernel)"; live debug --if-possible
    step "the router between real kernels"; router debug --if-possible
    miri # takes one core, and what it compiles has a folder of its own
    # Examples are named for the features of the tests.
    step "documentation"; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --lib --examples --quiet
    times
}

# The alerts of packaging, read and tried by Prometheus's own tool.
alerts() {
    promtool check rules packaging/prometheus/fibula.rules.yml
    # It names the rules beside it.
    promtool test rules packaging/prometheus/fibula.rules.test.yml
}
