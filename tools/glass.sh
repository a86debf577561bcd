# The looking glass in a browser.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's
# shellcheck disable=SC2164,SC2103 # dev has set -e

# glass [--mock] [TEST...]: tests are named as unittest names them: Map, Live.test_a_change_appears.
glass() {
    local other failed=
    case ${1:-} in --mock) shift ;; *) glass_server ;; esac
    packages python3=python3
    glass_browser >/dev/null || packages chromium=chromium
    say "the looking glass in $(glass_browser)"
    cd crates/server/page-tests
    if [ $# != 0 ]; then
        python3 -B -m unittest "${@/#/glass.}"
    else
        FIBULA_GLASS_PART=1/2 python3 -B -m unittest glass &
        other=$!
        FIBULA_GLASS_PART=2/2 python3 -B -m unittest glass || failed=yes
        wait "$other" || failed=yes
        [ -z "$failed" ] || die "the looking glass is not as its tests say"
    fi
    cd - >/dev/null
}

# The Chromium that page-tests/chromium.py finds.
glass_browser() {
    [ -z "${CHROMIUM:-}" ] || { echo "$CHROMIUM"; return; }
    command -v chromium || command -v chromium-browser || command -v google-chrome
}

glass_server() {
    setup
    cargo build --workspace --example glass --quiet
    FIBULA_GLASS_COMMAND="$(cd "$target/debug/examples" && pwd)/glass"
    export FIBULA_GLASS_COMMAND
}
