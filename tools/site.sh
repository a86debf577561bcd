# The site: the documentation as a book, and the demo page.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's, foreign_cargo and foreign_flags are machines.sh's
# shellcheck disable=SC2164,SC2103 # dev has set -e

# site [--demo]: into target/site; its links are checked, and the demo page is tested in Chromium. --demo: the page alone.
site() {
    local python out="$target/site" from="$target/site-src"
    case ${1:-} in "" | --demo) ;; *) die "site takes --demo, not $1" ;; esac
    python=$(python_for "$target/python")
    step "the reader as WebAssembly"
    foreign wasm32-unknown-unknown || die "no standard library for wasm32-unknown-unknown: rustup target add wasm32-unknown-unknown"
    # A megabyte of stack, the linker's default, is less than threads have elsewhere.
    export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS="-C link-arg=-zstack-size=4194304"
    "${foreign_cargo[@]}" build --quiet "${foreign_flags[@]}" --profile dist -p fibula-wasm --lib
    rm -rf "$out" && mkdir -p "$out/demo"
    cp bindings/wasm/demo/* "$out/demo/"
    # The texts that the licences want beside every copy of the module.
    cp LICENSE-MIT LICENSE-APACHE "$out/demo/"
    "$python" packaging/third_party.py fibula-wasm --target wasm32-unknown-unknown --texts "$out/demo/THIRD-PARTY.txt"
    "$python" tools/site.py module "$target/wasm32-unknown-unknown/dist/fibula_wasm.wasm" "$out/demo/fibula-wasm.js"
    if [ -z "${1:-}" ]; then
        step "the book"
        tool_wheel mdbook
        mkdir -p "$from"
        "$python" tools/site.py prepare "$from"
        cp -R "$out/demo" "$from/src/demo"
        mdbook build --dest-dir "$(cd "$out" && pwd)" "$from"
        "$python" tools/site.py check "$out"
    fi
    step "the demo page in a browser"
    glass_browser >/dev/null || packages chromium=chromium
    FIBULA_PAGE=$(cd "$out/demo" && pwd)
    export FIBULA_PAGE
    # With the command that the tests have compiled, or one that is compiled now: both must give the same rows.
    [ -x "$target/debug/fibula" ] || build dev
    FIBULA_BIN=$(cd "$target/debug" && pwd)/fibula
    export FIBULA_BIN
    (cd bindings/wasm/tests && "$python" -B -m unittest page)
    say "open $out/index.html"
}
