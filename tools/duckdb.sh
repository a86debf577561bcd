# The extension of DuckDB.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# duckdb [--rates]: built as it is published, with the licences that it has to carry; then tested, or measured.
duckdb() {
    local python
    case ${1:-} in "" | --rates) ;; *) die "duckdb takes --rates, not $1" ;; esac
    python=$(python_for "$target/python")
    say "building the extension"
    cargo build --quiet --profile dist -p fibula-duckdb
    duckdb_extension dist
    third_party fibula-duckdb "$(rustc --print host-tuple)" --texts "$target/duckdb/THIRD-PARTY.txt"
    cp LICENSE-MIT LICENSE-APACHE "$target/duckdb/"
    # The package, which both are compared with. For rates it is the published one.
    case ${1:-} in
        "")
            cargo build --quiet --workspace --lib
            python_package_here "$target/debug/lib_fibula.so"
            duckdb_tests dist ;;
        --rates)
            cargo build --quiet --profile dist -p fibula-python
            python_package_here "$target/dist/lib_fibula.so"
            FIBULA_DUCKDB=$(cd "$target/duckdb" && pwd)/fibula.duckdb_extension "$python" bindings/duckdb/rates.py ;;
    esac
    say "the extension is $target/duckdb/fibula.duckdb_extension"
}

# duckdb_extension PROFILE: the library of that profile with what DuckDB wants behind it.
duckdb_extension() {
    local platform
    case $(uname -sm) in
        "Linux x86_64") platform=linux_amd64 ;;
        "Linux aarch64") platform=linux_arm64 ;;
        *) die "the extension is built on Linux only, for x86-64 and arm64" ;;
    esac
    mkdir -p "$target/duckdb"
    "$(python_for "$target/python")" bindings/duckdb/extension.py "$target/${1/#dev/debug}/libfibula_duckdb.so" \
        "$target/duckdb/fibula.duckdb_extension" --platform "$platform" --version "v$(version)"
}

# duckdb_tests [dist]: with the package that the environment has; ten million rows with what is published.
duckdb_tests() {
    local marks="not heavy"
    [ "${1:-}" != dist ] || marks=""
    FIBULA_DUCKDB=$(cd "$target/duckdb" && pwd)/fibula.duckdb_extension \
        "$(cd "$target/python/bin" && pwd)/python" -m pytest -q -c bindings/python/pyproject.toml --rootdir bindings/duckdb \
        -p no:cacheprovider -m "$marks" bindings/duckdb/tests
}
