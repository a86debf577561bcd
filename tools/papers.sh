# The papers' figures.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# papers [--table | NAME...]: repeats figures, and keeps a record of each.
papers() {
    local run
    run=$(python_for "$target/python")
    if [ "${1:-}" = --table ]; then
        "$run" bench/papers/run.py table --write
        return
    fi
    build dist
    step "the papers' programs"
    cargo build --quiet --profile dist -p fibula-papers --bin bloomfwd --bin hpbf --bin planb
    cargo build --quiet --profile dist -p fibula-engines --example dxr_paper_tables --example updates_by_length
    cargo build --quiet --profile dist -p fibula-baselines --example sail_on_chip --example dpcpe --example sail_accesses
    "$run" bench/papers/run.py run --programs "$target/dist" --out "bench/records/$(cpu)/$(date -u +%F)" "$@"
    "$run" bench/papers/run.py table --write
}
