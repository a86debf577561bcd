# The functions of DataFusion: a workspace of its own.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# datafusion [--rates]: the crate's lints, statements and page; ten million rows with optimised code. Or rates.
datafusion() {
    local cargo=(--quiet --locked --manifest-path bindings/datafusion/Cargo.toml --target-dir "$target/datafusion")
    case ${1:-} in
        "")
            step "functions of DataFusion: clippy"; cargo clippy "${cargo[@]}" --all-targets -- -D warnings
            cargo fmt --manifest-path bindings/datafusion/Cargo.toml --check
            step "functions of DataFusion: tests"; cargo test "${cargo[@]}"
            step "functions of DataFusion: ten million rows"
            cargo test "${cargo[@]}" --release --test sql -- --ignored ;;
        --rates) cargo run "${cargo[@]}" --release --example rates ;;
        *) die "datafusion takes --rates, not $1" ;;
    esac
}
