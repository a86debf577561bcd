# The measurements.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# bench [TABLE...]: the standard measurements, recorded by CPU and date.
bench() {
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
