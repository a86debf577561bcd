# The Python package: its environments, its tests, its wheels.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's, python is its caller's
# shellcheck disable=SC2119,SC2120 # test.sh calls python_wheel with --all

# python_for ENVIRONMENT: the interpreter of a virtual environment, made with a Python that the package can use.
python_for() {
    local base
    packages python3=python3
    if ! [ -x "$1/bin/python" ]; then
        for base in python3 python3.14 python3.13 python3.12 python3.11 ""; do
            [ -n "$base" ] || die "the Python package needs Python 3.11 or later, python3 is $(python3 -V)"
            have "$base" && "$base" -c 'import sys; sys.exit(sys.version_info < (3, 11))' && break
        done
        "$base" -c 'import ensurepip' 2>/dev/null || ! have apt-get || packages "no-such-command=$base-venv"
        say "a Python environment in $1" && "$base" -m venv "$1"
    fi
    echo "$(cd "$1" && pwd)/bin/python"
}

# pip_install PYTHON FILE: what a requirements file lists, unless that is there already.
pip_install() {
    local stamp
    stamp="$(dirname "$1")/../$(basename "$2").installed"
    cmp -s "$2" "$stamp" && return
    say "installing $2"
    "$1" -m pip install --quiet --disable-pip-version-check --requirement "$2"
    cp "$2" "$stamp"
}

# pytest_with MARKS PROFILE: the Python tests, with the command of that profile.
pytest_with() {
    FIBULA_BIN=$(cd "$target/$2" && pwd)/fibula
    export FIBULA_BIN
    (cd bindings/python && "$python" -m pytest -m "$1")
}

python_environment() {
    pip_install "$(python_for "$target/python")" bindings/python/requirements-test.txt
}

# python_built_here: the package's files with the library that the tests have compiled, put where pip would put them, and
# tested against the real packages.
python_built_here() {
    local python site library="$target/debug/lib_fibula.so"
    if ! [ -e "$library" ]; then
        python_wheel # not Linux: a module needs the linker's flags that maturin knows
        return
    fi
    python_environment
    python=$(python_for "$target/python")
    site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    rm -rf "$site"/fibula "$site"/fibula-*.dist-info
    cp -R bindings/python/python/fibula "$site/fibula"
    cp "$library" "$site/fibula/_fibula.abi3.so"
    pytest_with "not heavy" debug
}

# python_wheel [--all]: the wheel, built as it is published, installed and tested against the real packages.
python_wheel() {
    local python marks="not heavy"
    python=$(python_for "$target/python")
    pip_install "$python" bindings/python/requirements-test.txt
    if [ "${1:-}" = --all ]; then
        marks="" # heavy ones, too
        have java || packages no-such-command=default-jre-headless
        pip_install "$python" bindings/python/requirements-heavy.txt
    fi
    step "the Python wheel"
    rm -rf "$target/wheels"
    PATH="$(dirname "$python"):$PATH" "$python" -m maturin build --quiet --profile dist \
        --manifest-path bindings/python/Cargo.toml --out "$target/wheels"
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/wheels/*.whl
    build dist
    pytest_with "$marks" dist
}

# wheel [TRIPLE]: for other machines. Zig's linker takes the C library's symbols of glibc 2.28, which manylinux_2_28 promises;
# maturin checks that. For arm64 the package's tests run in an emulator, with the wheel's own files. On other systems than
# Linux it is the wheel that maturin makes there.
wheel() {
    local python for_others=() package file
    [ "$(uname)" != Linux ] || for_others=(--zig --compatibility manylinux_2_28)
    if [ -n "${1:-}" ]; then
        published_target "$1"
        for_others+=(--target "$1")
    fi
    python=$(python_for "$target/wheel-venv")
    pip_install "$python" bindings/python/requirements-wheel.txt
    step "the Python wheel"
    rm -rf "$target/wheels"
    PATH="$(dirname "$python"):$PATH" "$python" -m maturin build --quiet --profile dist --manifest-path bindings/python/Cargo.toml \
        --out "$target/wheels" ${for_others[@]+"${for_others[@]}"}
    file=$(ls "$target"/wheels/*.whl)
    "$python" - "$file" <<'CHECK'
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
for wanted in ("LICENSE-MIT", "LICENSE-APACHE", "NOTICE"):
    assert any(name.endswith(f".dist-info/licenses/{wanted}") for name in names), f"{wanted} is not in the wheel: {names}"
CHECK
    if [ "${1:-}" = "$arm64" ]; then
        step "its tests on arm64"
        python_environment
        arm64_python || die "the wheel is in $file; it was not tested"
        package=$(mktemp -d)
        "$python" -m zipfile -e "$file" "$package"
        arm64_pytest "$package"
        rm -rf "$package"
    fi
    ls -l "$file"
}
