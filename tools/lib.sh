# What the other files use: messages, set-up of a machine, steps and their times, the command compiled.
# shellcheck shell=bash

target=${CARGO_TARGET_DIR:-target}
# The file by which OpenCL finds PoCL, its driver for the CPU.
pocl=/etc/OpenCL/vendors/pocl.icd

say() { printf '\033[1m==> %s\033[0m\n' "$*" >&2; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif have sudo; then sudo "$@"
    else die "need root or sudo to run: $*"
    fi
}

# packages COMMAND=PACKAGE...: installs the packages whose command is missing.
packages() {
    local pair try missing=()
    for pair in "$@"; do
        have "${pair%%=*}" || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} = 0 ] && return
    if have apt-get; then
        say "installing system packages: ${missing[*]}"
        # A machine that has just started updates itself, and apt lets one program work at a time.
        for try in 1 2 3 4 5 6; do as_root apt-get update -qq && break; [ $try = 6 ] || sleep 10; done
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    elif have brew; then
        say "installing with Homebrew: ${missing[*]}"
        brew install --quiet "${missing[@]}"
    else
        die "please install: ${missing[*]}"
    fi
}

setup() {
    [ -d "$HOME/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"
    if [ "$(uname)" = Darwin ]; then
        have cc || die "install the command line tools first: xcode-select --install"
    else
        packages cc=gcc curl=curl
        [ -e /etc/ssl/certs/ca-certificates.crt ] || ! have apt-get || packages no-such-command=ca-certificates
        # The C library's headers come with the compiler only when recommended packages do.
        [ -e /usr/include/stdio.h ] || ! have apt-get || packages no-such-command=libc6-dev
    fi
    # Compiles the router's programs for the kernel.
    [ "$(uname)" != Linux ] || ! have apt-get || { [ "$(id -u)" != 0 ] && ! have sudo; } || packages clang=clang
    # Executes the kernels of accelerators on the CPU.
    [ "$(uname)" != Linux ] || ! have apt-get || { [ "$(id -u)" != 0 ] && ! have sudo; } || [ -e "$pocl" ] ||
        packages no-such-command=pocl-opencl-icd no-such-command=ocl-icd-libopencl1
    if ! have rustup && ! have cargo; then
        say "installing the Rust toolchain manager (rustup) into $HOME/.cargo"
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --no-modify-path --default-toolchain none --profile minimal
        PATH="$HOME/.cargo/bin:$PATH"
    fi
    # Resolves rust-toolchain.toml; rustup downloads it on first use.
    if have rustup && ! rustup which rustc >/dev/null 2>&1; then
        say "installing the toolchain that rust-toolchain.toml names"
        rustup toolchain install
    fi
    cargo --version >/dev/null || die "cargo does not start: see the message above"
}

# room: says so at once if what a first run compiles (3 GiB) most likely has no room.
room() {
    local free
    mkdir -p "$target"
    free=$(df -Pk "$target" | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$free" -ge 4096 ] || say "only $free MiB are free for $target: a first run needs 4,096"
}

# cargo_tool COMMAND CRATE VERSION: a cargo subcommand, built from source if it is missing.
cargo_tool() {
    have "$1" && return
    say "installing $2 $3 (compiled from source, some minutes)"
    cargo install --quiet --locked "$2" --version "$3"
}

# step TITLE: says what begins; `times` tells what each step took.
step() {
    steps+=("$1") starts+=("$SECONDS")
    say "$1"
}

times() {
    local i
    starts+=("$SECONDS")
    say "seconds that each step took"
    for i in "${!steps[@]}"; do
        printf '%6d  %s\n' $((starts[i + 1] - starts[i])) "${steps[i]}"
    done >&2
    printf '%6d  in all\n' "$SECONDS" >&2
}

# timed WHAT COMMAND...: runs it and says how many seconds it took. No check depends on that: it is the machine's load, too.
timed() {
    # shellcheck disable=SC2034 # bash's own
    local TIMEFORMAT="==> $1: %R s"
    shift
    time "$@"
}

# fresh_root ROOT [PACKAGE,...]: the system of this machine without a compiler or systemd, in a folder. It needs root.
fresh_root() {
    [ "$(id -u)" = 0 ] || die "run this as root: it enters a root of its own (chroot)"
    packages mmdebstrap=mmdebstrap unshare=util-linux
    step "a fresh root"
    rm -rf "$1"
    mmdebstrap --quiet --variant=minbase ${2:+--include="$2"} "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" "$1"
}

# begin FUNCTION: runs it beside what comes next; `end` waits for it, shows what it printed, and fails if it has failed.
beside=
begin() {
    mkdir -p "$target"
    trap stop_beside EXIT
    # A process group of its own, so that what it starts is stopped with it.
    set -m
    (set +m; steps=() starts=() SECONDS=0; "$1") >"$target/beside.log" 2>&1 </dev/null &
    set +m
    beside=$!
}

end() {
    local status=0
    wait "$beside" || status=$?
    beside=
    cat "$target/beside.log" >&2
    [ "$status" = 0 ] || die "failed, as is said above"
}

stop_beside() { [ -z "$beside" ] || kill -- "-$beside" 2>/dev/null || true; }

# The profile whose command is run: debug is what the tests compile, release takes little time to compile, dist is what
# is published and measured. `emulator` is what runs a command of another machine.
profile=release emulator=()
fibula() { ${emulator[@]+"${emulator[@]}"} "$target/$profile/fibula" "$@"; }

# shellcheck disable=SC2034 # package.sh and python.sh use it
# The profile of packages. Another one (release, dev) is for trying how they are made: it takes less time.
published=${FIBULA_PACKAGE_PROFILE:-dist}

# The version of all crates.
version() { sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -1; }

# build PROFILE: the command.
build() {
    profile=$1
    say "building fibula ($1)"
    # The Python package is named so that both take what they share with the same features, compiled once.
    cargo build --profile "$1" --quiet -p fibula-cli -p fibula-python --bin fibula
}

# The folder of records of this machine's processor: vendor, family and model, as `Processor::folder` of testkit has them.
cpu() {
    awk -F '[ \t]*:[ \t]*' '
        !seen[$1]++ && $2 != "" { value[$1] = $2 }
        function of(x86, arm) { return x86 in value ? value[x86] : value[arm] }
        END {
            name["AuthenticAMD"] = "AMD"; name["GenuineIntel"] = "Intel"; name["0x41"] = "ARM"
            vendor = of("vendor_id", "CPU implementer")
            folder = vendor in name ? name[vendor] : vendor
            if (of("cpu family", "CPU architecture") != "") folder = folder "-" of("cpu family", "CPU architecture")
            if (of("model", "CPU part") != "") folder = folder "-" of("model", "CPU part")
            print folder == "" ? "unknown" : folder
        }' "$( [ -r /proc/cpuinfo ] && echo /proc/cpuinfo || echo /dev/null )"
}
