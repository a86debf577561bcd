# Other machines: tests in an emulator, and compiling for other systems.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# foreign TRIPLE: sets `foreign_cargo` and `foreign_flags`, with which cargo compiles for it: with the standard library
# that rustup has for the project's toolchain, or else with the one that nightly builds from its sources; it says which.
# Fails if there is neither.
foreign() {
    foreign_cargo=(cargo) foreign_flags=(--target "$1")
    if rustup target list --installed | grep -qx "$1" || rustup target add "$1" 2>/dev/null; then
        say "$1: the standard library of rustup"
    elif nightly_component rust-src; then
        foreign_cargo+=(+nightly) foreign_flags+=(-Zbuild-std)
        say "$1: rustup cannot get its standard library here, so nightly builds it"
    else
        return 1
    fi
}

# portable [TRIPLE...]: tests of core, filter and engines on other machines. On s390x and i686 the scalar code runs, on
# arm64 that and NEON. At the end it says how many tests ran, and which of them did not.
portable() {
    local triple suite left=() ran=() triples=("$@")
    [ $# != 0 ] || triples=(i686-unknown-linux-gnu s390x-unknown-linux-gnu aarch64-unknown-linux-gnu)
    if [ "$(uname -m)" != x86_64 ] || ! have apt-get || ! have rustup; then
        die "portable needs Debian or Ubuntu on x86-64, and rustup"
    fi
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x -L /usr/s390x-linux-gnu"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc
    # Runs as it is, with the C library that came with the compiler.
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUNNER="/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib"
    for triple in "${triples[@]}"; do
        case $triple in
            i686-unknown-linux-gnu | s390x-unknown-linux-gnu | aarch64-unknown-linux-gnu) ;;
            *) die "portable knows only i686-, s390x- and aarch64-unknown-linux-gnu, not $triple" ;;
        esac
        if ! foreign "$triple"; then
            left+=("$triple: rustup cannot get its standard library, and no nightly toolchain has rust-src to build it")
            [ $# = 0 ] || die "${left[-1]}"
            continue
        fi
        case $triple in
            i686-*) compiler_for i686 i386 ;;
            s390x-*) compiler_for s390x s390x; packages qemu-s390x=qemu-user ;;
            aarch64-*) compiler_for aarch64 arm64; packages qemu-aarch64=qemu-user ;;
        esac
        step "core and engines on $triple"
        foreign_test -p fibula-core -p fibula-filter --lib
        # The suite on every engine, in each instruction set of the machine. For NEON all of it but large tables, which take
        # an emulator a quarter of an hour; the scalar code of other machines is that of x86-64.
        suite=(edge_tables dense_tables batch_lengths hops_out_of_range miri::)
        case $triple in aarch64-*) suite=(--skip realistic_tables --skip real_tables --skip exhaustive) ;; esac
        foreign_test -p fibula-engines --test engines -- "${suite[@]}"
        case $triple in aarch64-*) portable_arm64 ;; esac
    done
    printf '%s\n' "${ran[@]}" >&2
    [ ${#left[@]} = 0 ] || printf 'NOT TESTED  %s\n' "${left[@]}" >&2
}

# compiler_for MACHINE DEBIAN: the C compiler for a machine, and its C library.
compiler_for() {
    packages "$1-linux-gnu-gcc=gcc-$1-linux-gnu"
    [ -e "/usr/$1-linux-gnu/lib/crt1.o" ] || packages "no-such-command=libc6-dev-$2-cross"
}

# foreign_test ARGUMENTS: cargo test; `ran` gets the numbers of tests that ran and that did not, with the arguments.
foreign_test() {
    local log="$target/foreign.log"
    "${foreign_cargo[@]}" test --quiet "${foreign_flags[@]}" "$@" | tee "$log"
    ran+=("$(awk -v what="$triple: cargo test $*" '
        $1 == "test" && $2 == "result:" { run += $4; ignored += $8; left += $12 }
        END { printf "%5d tests run, %d ignored (long, or of real archives), %d left out: %s", run, ignored, left, what
              exit run == 0 }' "$log")") || die "no test ran"
}

# portable_arm64: what has code for NEON beside the engines, the command, and the Python package.
portable_arm64() {
    # Each operation of the vectors beside the scalar one. Left out are long tests of text against the standard library.
    foreign_test -p fibula-simd --lib -- --skip near_addresses_equal_std
    foreign_test -p fibula-filter --test filter
    step "the command on arm64, in NEON and in scalar code"
    PYO3_BUILD_EXTENSION_MODULE=1 "${foreign_cargo[@]}" build --quiet "${foreign_flags[@]}" -p fibula-cli -p fibula-python --bin fibula --lib
    arm64_demo debug
    local isa package folder="$target/$triple/debug"
    for isa in neon scalar; do
        "${on_arm64[@]}" "$folder/fibula" verify --table gen:v4:2024:2000:1,gen:v6:2024:2000:1 --engines auto,planb \
            --random 20000 --isa "$isa"
    done
    step "the Python package on arm64"
    if ! arm64_python; then
        left+=("$triple: the Python package, for which there is no Python")
        return
    fi
    package=$(mktemp -d)
    cp -R bindings/python/python/fibula "$package/fibula"
    cp "$folder/lib_fibula.so" "$package/fibula/_fibula.abi3.so"
    arm64_pytest "$package" "$(cd "$folder" && pwd)/fibula"
    rm -rf "$package"
}

# cross: `cargo check` compiles and does not link, so it needs a target's standard library, and its C compiler only where a
# dependency is C: zstd in annotate and export, ring in server.
cross() {
    local target compiler crates crate packages left=()
    local no_c=(core simd filter packet classify engines baselines accel rib ingest fib testkit feeds)
    local with_c=(annotate offload export server daemon python)
    for target in aarch64-unknown-linux-gnu x86_64-pc-windows-gnu aarch64-apple-darwin; do
        if ! rustup target list --installed | grep -qx "$target" && ! rustup target add "$target" 2>/dev/null; then
            left+=("$target: its standard library is not installed, and rustup cannot get it here")
            continue
        fi
        crates=("${no_c[@]}")
        case $target in
            *-linux-*) compiler=aarch64-linux-gnu-gcc crates+=(router) ;;
            *-windows-*) compiler=x86_64-w64-mingw32-gcc; left+=("$target: router, which needs Unix; the command has no serve and route there") ;;
            # Apple's C headers are on its own machines only.
            *) compiler=xcrun crates+=(router) ;;
        esac
        if ! have "$compiler"; then
            left+=("$target: ${with_c[*]}, for which there is no C compiler ($compiler); and cli, which uses them")
        else
            crates+=("${with_c[@]}" cli)
        fi
        packages=(-p fibula)
        for crate in "${crates[@]}"; do packages+=(-p "fibula-$crate"); done
        step "$target"
        cargo check --quiet --target "$target" "${packages[@]}"
    done
    [ ${#left[@]} = 0 ] || printf 'NOT CHECKED  %s\n' "${left[@]}" >&2
}
