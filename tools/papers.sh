# The papers' figures.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# papers [--table | --draw | NAME...]: repeats figures, and keeps a record and a picture of each.
papers() {
    local run records
    run=$(python_for "$target/python")
    case ${1:-} in
        --table) "$run" bench/papers/run.py table --write; return ;;
        --draw) draw_records "$run"; "$run" bench/papers/run.py table --write; return ;;
    esac
    build dist
    step "the papers' programs"
    cargo build --quiet --profile dist -p fibula-papers \
        --bin bloomfwd --bin compressed --bin displaced --bin hpbf --bin planb --bin worst
    cargo build --quiet --profile dist -p fibula-engines --example dxr_paper_tables --example updates_by_length
    cargo build --quiet --profile dist -p fibula-baselines --example sail_on_chip --example dpcpe --example sail_accesses
    records="bench/records/$(cpu)/$(date -u +%F)"
    # Figures that failed are reported again at the end; the others are drawn and shown.
    local status=0
    "$run" bench/papers/run.py run --programs "$target/dist" --out "$records" "$@" || status=$?
    draw_records "$run" "$records"/*.json || status=$?
    "$run" bench/papers/run.py table --write || status=$?
    return "$status"
}

# draw_records PYTHON [RECORD...]: their pictures beside them; default: of all records.
draw_records() {
    cargo build --quiet --locked --manifest-path bench/Cargo.toml --package bench-harness --target-dir bench/target
    "$1" bench/papers/run.py draw --harness bench/target/debug/bench-harness "${@:2}"
}
