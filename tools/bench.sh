# The measurements.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# bench [quick | full | updates | check | compare OLD NEW | TABLE...]: beside rivals, or our engines alone; recorded by
# CPU and date.
bench() {
    case ${1:-} in
        quick) [ $# = 1 ] || die "bench quick takes no more"; bench_beside quick-v4 quick-v6 ;;
        full)
            [ $# = 1 ] || die "bench full takes no more"
            build dist # reads tables of files
            local definitions=()
            for definition in bench/definitions/*.toml; do definitions+=("$(basename "$definition" .toml)"); done
            bench_beside "${definitions[@]}" ;;
        updates) [ $# = 1 ] || die "bench updates takes no more"; bench_updates ;;
        check) [ $# = 1 ] || die "bench check takes no more"; bench_check ;;
        compare) harness "$@" ;;
        *) bench_engines "$@" ;;
    esac
}

# harness ARGUMENT...: the program of bench/, a workspace of its own.
harness() {
    [ "$(uname)" = Linux ] || die "bench quick, full and compare pin processes to cores as only Linux can"
    cargo build --quiet --locked --manifest-path bench/Cargo.toml --package bench-harness --target-dir bench/target
    bench/target/debug/bench-harness "$@"
}

# bench_beside DEFINITION...: contestants in turns, each checked first. DPDK's tables are on reserved pages if this is root.
bench_beside() {
    local pages=/proc/sys/vm/nr_hugepages before
    if [ "$(id -u)" = 0 ] && [ -w "$pages" ]; then
        before=$(cat "$pages")
        # shellcheck disable=SC2064 # the number of now
        trap "echo $before >$pages" EXIT
        [ "$before" -ge 1536 ] || echo 1536 >"$pages" || say "the system gives no huge pages: DPDK's tables have none"
    fi
    harness run --fibula "$target/dist/fibula" --out "bench/records/$(cpu)/$(date -u +%F)" "$@" ||
        say "a contestant was wrong or had to stop, as is said above"
    # Pages have tables of the newest records.
    "$(python_for "$target/python")" bench/papers/run.py table --write
}

# bench_updates: how long our engines take to follow changes of the routes, as a record and a picture.
bench_updates() {
    build dist
    local part="$target/bench-updates.json" record
    record="bench/records/$(cpu)/$(date -u +%F)/updates"
    "$target/dist/fibula" bench --table gen:v4:2024:900000:1,gen:v6:2024:200000:1 \
        --engines runmap,wideleaf,matchline,dxr18,poptrie18,dir24-8-prefetch,sail-l,hbs,miht \
        --updates 1,10,100,1000,10000 --json >"$part"
    # Whole or not at all: a run that fails leaves the record of an earlier one.
    mkdir -p "$(dirname "$record")"
    mv "$part" "$record.json"
    harness updates "$record.json" "$record.svg"
    say "recorded in $record.json"
}

# bench_check: the workspace of bench/, and the answers of all contestants that can take part, on the small tables.
bench_check() {
    if [ "$(uname)" != Linux ]; then
        step "the harness of bench/: SKIPPED, it needs Linux"
        return
    fi
    step "the harness of bench/, and the answers of rivals"
    cargo clippy --locked --manifest-path bench/Cargo.toml --target-dir bench/target --all-targets --quiet -- -D warnings
    cargo test --quiet --locked --manifest-path bench/Cargo.toml --target-dir bench/target
    harness check
}

# bench_engines [TABLE...]: the standard measurements of our engines.
bench_engines() {
    build dist
    local table record part="$target/bench-record.md"
    record="bench/records/$(cpu)/$(date -u +%F).md"
    [ $# -gt 0 ] || set -- gen:v4:2024:900000:1 gen:v6:2024:200000:1
    {
        echo "# Measurements of $(date -u +%F)"
        for table in "$@"; do
            printf '\n```\n$ fibula bench --table %s --engines all\n' "$table"
            fibula bench --table "$table" --engines all
            printf '```\n'
        done
    } | tee "$part"
    # Whole or not at all: a run that fails leaves the record of an earlier one.
    mkdir -p "$(dirname "$record")"
    mv "$part" "$record"
    say "recorded in $record"
}

# bench-annotate [TABLE...]: fibula's Python package beside its rivals, each checked for equal answers first.
# FIBULA_QUIET may name a command that keeps the machine quiet while times are taken (measure.py).
bench_annotate() {
    local data="$target/bench-annotate" here=bench/annotate case traffic group python
    build dist
    say "the rivals, and fibula's wheel, in $data"
    python=$(python_for "$data/venv")
    pip_install "$python" "$here/requirements.txt"
    rm -rf "$data/wheel"
    "$data/venv/bin/maturin" build --quiet --profile dist --manifest-path bindings/python/Cargo.toml --out "$data/wheel"
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$data"/wheel/*.whl
    say "table and addresses, in $data"
    "$python" "$here/prepare.py" --fibula "$target/dist/fibula" --out "$data" "$@"
    rm -rf "$data/results"
    for case in v4-asn v4-asn-prefix mixed-prefix u32-asn; do
        for traffic in PFX ZIPF; do
            for group in trees frames; do
                # Joins have no 128-bit keys.
                [ "$case $group" != "mixed-prefix frames" ] || continue
                "$python" "$here/measure.py" --data "$data" --case "$case" --traffic "$traffic" --group "$group"
            done
        done
    done
    "$python" "$here/report.py" --data "$data" --out "bench/records/$(cpu)/$(date -u +%F)/annotate.md"
}

# bench-xdp [OPTION...]: the fast path beside its rivals.
bench_xdp() {
    if [ "$(uname)" != Linux ] || [ "$(id -u)" != 0 ]; then
        die "the rates of the fast path need Linux and root"
    fi
    packages ip=iproute2 bpftool=bpftool nsenter=util-linux python3=python3
    [ -e /usr/include/bpf/bpf_helpers.h ] || packages no-such-command=libbpf-dev
    build release
    python3 bench/xdp/measure.py --fibula "$target/release/fibula" "$@"
}
