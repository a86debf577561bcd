# arm64 in an emulator: the command, and the Python package under Debian's Python.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # target, profile and emulator are lib.sh's

arm64=aarch64-unknown-linux-gnu
on_arm64=(qemu-aarch64 -L /usr/aarch64-linux-gnu)

# arm64_demo PROFILE: what the demo does, without the measurement, by the command for arm64.
arm64_demo() (
    profile=$arm64/$1 emulator=("${on_arm64[@]}")
    demo_jobs 20000 20000 auto,planb all
)

# arm64_python: in target/arm64 a command `python`, and beside it what the package's tests import. The programs are Debian's
# and PyPI's for arm64, unpacked and not installed. Fails, having said why, where they cannot be had.
arm64_python() {
    local folder apt file version
    folder=$(cd "$target" && pwd)/arm64
    mkdir -p "$folder"/{lists,archives}/partial "$folder/site"
    if ! [ -e "$folder/root/usr/bin/python3" ]; then
        say "Python for arm64 in $folder"
        : >"$folder/status"
        apt=(apt-get -qq -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$folder"
            -o "Dir::State::status=$folder/status" -o "Dir::Cache=$folder" -o "APT::Sandbox::User=$(id -un)")
        if ! "${apt[@]}" update || ! "${apt[@]}" --no-install-recommends --download-only install python3 libstdc++6; then
            say "the system's package sources have no Python for arm64"
            return 1
        fi
        rm -rf "$folder/root"
        for file in "$folder"/archives/*.deb; do dpkg-deb -x "$file" "$folder/new"; done
        mv "$folder/new" "$folder/root"
        # Programs that tests start are emulated, too.
        printf '#!/bin/sh\nexec qemu-aarch64 -L %s %s "$@"\n' "$folder/root" "$folder/root/usr/bin/python3" >"$folder/python"
        printf 'import sys\n\nsys.executable = "%s"\n' "$folder/python" >"$folder/site/sitecustomize.py"
        chmod +x "$folder/python"
    fi
    version=$("$folder/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    case $version in
        3.[0-9] | 3.10) say "the system's package sources have Python $version for arm64, and the package needs 3.11"; return 1 ;;
    esac
    cmp -s bindings/python/requirements-test.txt "$folder/installed" && return
    say "for arm64: bindings/python/requirements-test.txt"
    "$(python_for "$target/python")" -m pip install --quiet --disable-pip-version-check --upgrade --target "$folder/site" \
        --only-binary :all: --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
        --python-version "$version" --requirement bindings/python/requirements-test.txt || return
    cp bindings/python/requirements-test.txt "$folder/installed"
}

# arm64_pytest PACKAGE [COMMAND]: the tests of the Python package that lies in a folder, with the command for arm64; those that
# are skipped are named.
arm64_pytest() {
    local folder
    folder=$(cd "$target" && pwd)/arm64
    unset FIBULA_BIN
    if [ -n "${2:-}" ]; then
        printf '#!/bin/sh\nexec %s %s "$@"\n' "${on_arm64[*]}" "$2" >"$folder/fibula"
        chmod +x "$folder/fibula"
        export FIBULA_BIN=$folder/fibula
    fi
    (cd bindings/python && FIBULA_TEST_EMULATOR="${on_arm64[0]}" PYTHONPATH="$1:$folder/site" \
        "$folder/python" -m pytest -m "not heavy" -rs -p no:cacheprovider)
}
