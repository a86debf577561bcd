# Other machines: tests in an emulator, and compiling for other systems.
# shellcheck shell=bash

# portable: no vectors there, so it is the scalar code of core, filter and engines that runs.
portable() {
    local triple
    if [ "$(uname -m)" != x86_64 ] || ! have apt-get || ! have rustup; then
        die "portable needs Debian or Ubuntu on x86-64, and rustup"
    fi
    packages qemu-s390x=qemu-user s390x-linux-gnu-gcc=gcc-s390x-linux-gnu i686-linux-gnu-gcc=gcc-i686-linux-gnu
    [ -e /usr/s390x-linux-gnu/lib/crt1.o ] || packages no-such-command=libc6-dev-s390x-cross
    [ -e /usr/i686-linux-gnu/lib/crt1.o ] || packages no-such-command=libc6-dev-i386-cross
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x -L /usr/s390x-linux-gnu"
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_LINKER=i686-linux-gnu-gcc
    # Runs as it is, with the C library that came with the compiler.
    export CARGO_TARGET_I686_UNKNOWN_LINUX_GNU_RUNNER="/usr/i686-linux-gnu/lib/ld-linux.so.2 --library-path /usr/i686-linux-gnu/lib"
    for triple in i686-unknown-linux-gnu s390x-unknown-linux-gnu; do
        step "core and engines on $triple"
        rustup target add "$triple" 2>/dev/null
        cargo test --quiet --target "$triple" -p fibula-core -p fibula-filter --lib
        # Of the suite on every engine, what an emulator can do in minutes.
        cargo test --quiet --target "$triple" -p fibula-engines --test engines -- edge_tables dense_tables \
            batch_lengths hops_out_of_range miri::
    done
}

# cross: `cargo check` compiles and does not link, so it needs a target's standard library, and its C compiler only where a
# dependency is C: zstd in annotate and export, ring in server.
cross() {
    local target compiler crates crate packages left=()
    local no_c=(core simd filter packet classify engines baselines rib ingest fib testkit feeds)
    local with_c=(annotate export server daemon python)
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
