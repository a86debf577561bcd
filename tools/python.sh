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
    local python library="$target/debug/lib_fibula.so"
    if ! [ -e "$library" ]; then
        python_wheel # not Linux: a module needs the linker's flags that maturin knows
        return
    fi
    python_package_here "$library"
    python=$(python_for "$target/python")
    pytest_with "not heavy" debug
}

# python_package_here LIBRARY: the package's files with this library in the environment, where pip would put them.
python_package_here() {
    local site
    python_environment
    site=$("$(python_for "$target/python")" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    rm -rf "$site"/fibula "$site"/fibula-*.dist-info
    cp -R bindings/python/python/fibula "$site/fibula"
    cp "$1" "$site/fibula/_fibula.abi3.so"
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
    # It stays there: it is for this machine, and not one of those that are published.
    rm -rf "$target/wheel-new"
    third_party fibula-python "$(rustc --print host-tuple)" --texts bindings/python/THIRD-PARTY.txt
    PATH="$(dirname "$python"):$PATH" "$python" -m maturin build --locked --quiet --profile dist \
        --manifest-path bindings/python/Cargo.toml --out "$target/wheel-new"
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/wheel-new/*.whl
    build dist
    pytest_with "$marks" dist
    [ "${1:-}" != --all ] || python_sail
}

# python_sail: the tests of Sail, with the wheel that python_wheel made.
python_sail() {
    local python
    python=$(python_for "$target/sail")
    pip_install "$python" bindings/python/requirements-sail.txt
    step "the Python wheel on Sail"
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$target"/wheel-new/*.whl
    (cd bindings/python && "$python" -m pytest tests/test_sail.py)
}

# wheel [--free-threaded] [TRIPLE]: for other machines. Zig's linker takes the C library's symbols of glibc 2.28, which
# manylinux_2_28 promises, or musl's; maturin checks that. With --free-threaded it is the stable ABI of Python 3.15 and later
# that also free-threaded interpreters have. On other systems than Linux it is the wheel that maturin makes there.
wheel() {
    local python file triple options=() tag=-cp311-abi3-
    if [ "${1:-}" = --free-threaded ]; then
        shift
        tag=-cp315-abi3.abi3t-
        options+=(--interpreter python3.15t)
    fi
    triple=${1:-$(rustc --print host-tuple)}
    if [ "$(uname)" = Linux ]; then
        published_target "$triple"
        options+=(--zig --target "$triple")
        case $triple in
            *-musl) options+=(--compatibility musllinux_1_2) ;;
            *) options+=(--compatibility manylinux_2_28) ;;
        esac
    fi
    python=$(python_for "$target/wheel-venv")
    pip_install "$python" bindings/python/requirements-wheel.txt
    step "the Python wheel for $triple"
    rm -rf "$target/wheel-new"
    third_party fibula-python "$triple" --texts bindings/python/THIRD-PARTY.txt
    PATH="$(dirname "$python"):$PATH" "$python" -m maturin build --locked --quiet --profile "$published" \
        --manifest-path bindings/python/Cargo.toml --out "$target/wheel-new" ${options[@]+"${options[@]}"}
    file=$(ls "$target"/wheel-new/*.whl)
    case $file in *"$tag"*) ;; *) die "$file is for other versions of Python than $tag: build it with Python 3.11 to 3.14" ;; esac
    wheel_checks "$python" "$file"
    case $triple in
        *-musl) say "a wheel for musl is tested where a Python for musl is: pip install it, then pytest bindings/python" ;;
        "$arm64") [ "$tag" != -cp311-abi3- ] || wheel_on_arm64 "$file" ;;
        "$(rustc --print host-tuple)") [ "$tag" != -cp311-abi3- ] || wheel_installed "$file" ;;
    esac
    publish_wheels
    ls -l "$target/wheels/$(basename "$file")"
}

# publish_wheels: moves what was built and has passed its checks to the other files of a release, in target/wheels.
publish_wheels() {
    mkdir -p "$target/wheels"
    mv "$target"/wheel-new/* "$target/wheels/"
    rmdir "$target/wheel-new"
}

# wheel_checks PYTHON FILE: its licences and its command, what PyPI refuses, symbols that manylinux or the stable ABI lack.
wheel_checks() {
    local python=$1 file=$2
    "$python" - "$file" <<'CHECK'
import sys, zipfile
wheel = zipfile.ZipFile(sys.argv[1])
names = wheel.namelist()
for wanted in ("LICENSE-MIT", "LICENSE-APACHE", "NOTICE", "THIRD-PARTY.txt"):
    assert any(name.endswith(f".dist-info/licenses/{wanted}") for name in names), f"{wanted} is not in the wheel: {names}"
entries = next(name for name in names if name.endswith(".dist-info/entry_points.txt"))
assert "fibula=fibula.__main__:main" in wheel.read(entries).decode().replace(" ", ""), "the command is not in the wheel"
CHECK
    "$python" -m twine check --strict "$file"
    # Zig calls musl's library libc.so, which musl's loader knows as itself, and auditwheel does not; maturin checks these.
    case $file in *musllinux*) ;; *) "$python" -m auditwheel show "$file" ;; esac
    case $file in *abi3t*) ;; *) "$python" -m abi3audit --strict --summary "$file" ;; esac
}

# wheel_installed FILE: pip installs it where there is no compiler, with a network and without one; the command and the module
# answer; nothing is left when it is removed; then the package's tests run on the installed one.
wheel_installed() {
    local file=$1 root=$target/wheel-root python inside
    if [ "$(id -u)" = 0 ] && have apt-get; then
        fresh_root "$root" python3-venv
        step "the wheel, installed in it"
        inside=/wheel/$(basename "$file")
        mkdir "$root/wheel"
        cp packaging/wheel-check.sh "$file" "$root/wheel/"
        ! chroot "$root" sh -c 'command -v cc' || die "the root has a compiler"
        wheel_answers "with a network" /wheel/new "$inside" chroot "$root" /wheel/wheel-check.sh
        wheel_answers "without a network" /wheel/again "$inside" unshare --net chroot "$root" /wheel/wheel-check.sh
        rm -rf "$root"
    else
        step "the wheel, installed (SKIPPED: in a root without a compiler, which needs root on Debian or Ubuntu)"
        rm -rf "$target/wheel-fresh"
        wheel_answers "in an environment" "$(cd "$target" && pwd)/wheel-fresh" "$file" \
            env "PATH=$(dirname "$(python_for "$target/python")"):$PATH" packaging/wheel-check.sh
        rm -rf "$target/wheel-fresh"
    fi
    step "its tests"
    python_environment
    python=$(python_for "$target/python")
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$file"
    (cd bindings/python && env -u FIBULA_BIN "$python" -m pytest -m "not heavy")
}

# wheel_answers HOW FOLDER FILE CHECK...: an environment in the folder, and in it the wheel installed, asked and removed by
# packaging/wheel-check.sh, which CHECK executes.
wheel_answers() {
    local how=$1 folder=$2 file=$3
    shift 3
    "$@" prepare "$folder"
    timed "from the wheel to the first answers, $how" "$@" install "$folder" "$file"
    "$@" remove "$folder"
}

# wheel_on_arm64 FILE: the package's tests in an emulator, with the wheel's own files.
wheel_on_arm64() {
    local package python
    step "its tests on arm64"
    python_environment
    arm64_python || die "the wheel is in $1; it was not tested"
    package=$(mktemp -d)
    python=$(python_for "$target/python")
    "$python" -m zipfile -e "$1" "$package"
    arm64_pytest "$package"
    rm -rf "$package"
}

# sdist [--check]: the sources of the package, in target/wheels, which pip compiles where no wheel fits; --check does it, from
# these files alone.
sdist() {
    local python file
    python=$(python_for "$target/wheel-venv")
    pip_install "$python" bindings/python/requirements-wheel.txt
    step "the sources of the Python package"
    rm -rf "$target/wheel-new"
    third_party fibula-python "$(rustc --print host-tuple)" --texts bindings/python/THIRD-PARTY.txt
    "$python" -m maturin sdist --manifest-path bindings/python/Cargo.toml --out "$target/wheel-new"
    file=$(ls "$target"/wheel-new/*.tar.gz)
    "$python" -m twine check --strict "$file"
    if [ "${1:-}" = --check ]; then
        step "a wheel of these sources"
        rm -rf "$target/sdist-wheel"
        # With dependencies that are compiled already, if this repository has some, and the versions of its Cargo.lock.
        PATH="$(dirname "$python"):$PATH" CARGO_TARGET_DIR="$(cd "$target" && pwd)/sdist" "$python" -m pip wheel --quiet \
            --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$target/sdist-wheel" "$file"
        wheel_checks "$python" "$(ls "$target"/sdist-wheel/*.whl)"
    fi
    publish_wheels
    ls -l "$target/wheels/$(basename "$file")"
}
