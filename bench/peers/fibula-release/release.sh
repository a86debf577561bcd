#!/bin/sh
# Our engines of an earlier revision as a contestant: the peer `fibula` of that revision, compiled from its own files.
# The revision is the one that FIBULA_RELEASE names (a tag, a branch, a commit), else the last tag that begins with v.
#
#   release.sh revision               prints it; fails if there is none
#   release.sh build FOLDER PROFILE   compiles it in FOLDER
#   release.sh run FOLDER PROFILE [ENGINE]
set -eu

die() {
    echo "$*" >&2
    exit 1
}

revision=${FIBULA_RELEASE:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
[ -n "$revision" ] || die "no release is tagged; FIBULA_RELEASE may name another revision"
commit=$(git rev-parse --quiet --verify "$revision^{commit}") || die "git knows no revision $revision"
git cat-file -e "$commit:bench/peers/fibula/Cargo.toml" 2>/dev/null || die "$revision has no bench/peers/fibula"

case $1 in
    revision) echo "$revision" ;;
    build)
        folder=$2/$commit
        if [ ! -d "$folder" ]; then
            # Whole or not at all: a copy that was interrupted must not be compiled.
            rm -rf "$folder.part"
            mkdir -p "$folder.part"
            git -C "$(git rev-parse --show-toplevel)" archive "$commit" Cargo.toml crates bench | tar -x -C "$folder.part"
            mv "$folder.part" "$folder"
        fi
        # All revisions share what they depend on.
        cargo build --profile "$3" --locked --quiet --manifest-path "$folder/bench/peers/fibula/Cargo.toml" \
            --target-dir "$2/target"
        cp "$2/target/$3/peer-fibula" "$folder/peer-fibula-$3" ;;
    run)
        program=$2/$commit/peer-fibula-$3
        shift 3
        # What it calls itself names the revision.
        "$program" "$@" | sed -u "1s|\$| ($revision, $(echo "$commit" | cut -c1-12))|" ;;
    *) die "release.sh revision | build FOLDER PROFILE | run FOLDER PROFILE [ENGINE]" ;;
esac
