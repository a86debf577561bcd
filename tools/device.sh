# Accelerators: every kernel under a checker, and the measurements of a device.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# Where the OpenCL library of oclgrind lies, which interprets kernels and reports races and accesses out of bounds.
oclgrind=/usr/lib/oclgrind/liboclgrind-rt.so

# kernels_checked: the tests of the contract in the interpreter, with the kernels that they use. The conformance suite would
# take hours there.
kernels_checked() {
    local log="$target/oclgrind.log"
    if [ "$(uname)" != Linux ] || ! have apt-get; then
        step "kernels in oclgrind: SKIPPED, it is a package of Debian"
        return
    fi
    [ -e "$oclgrind" ] || packages no-such-command=oclgrind
    step "kernels in oclgrind"
    rm -f "$log"
    OPENCL_DYLIB_PATH=$oclgrind OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 OCLGRIND_LOG=$PWD/$log \
        FIBULA_TEST_DEVICE=opencl:0 cargo test --workspace --test accel --quiet -- --test-threads=1 contract::
    [ ! -s "$log" ] || { head -n 40 "$log" >&2; die "oclgrind found errors: $log"; }
}

# ptx: the kernels compiled for CUDA, by the test that compares them with their text.
ptx() {
    packages clang=clang
    step "kernels for CUDA"
    FIBULA_WRITE_PTX=1 cargo test --workspace --test accel --quiet -- cuda::compiled_kernels
}

# device [--build | FOLDER [NAME...]]: conformance and measurements of the devices NAME (opencl:0, and before it cuda:0 if its
# driver is there), in at most eight minutes, with nothing but the two programs in target/device, which --build makes. The
# records are put into FOLDER.
device() {
    local programs="$target/device" out=${1:-} name names tests v4=gen:v4:2024:900000:1 v6=gen:v6:2024:200000:1
    [ -n "$out" ] || die "device takes --build, or a folder for the records"
    if [ "$out" = --build ] || ! [ -x "$programs/fibula" ]; then
        setup
        build dist
        tests=$(cargo test --workspace --test accel --no-run 2>&1 | sed -n 's/.*(\(.*\))$/\1/p' | tail -n 1)
        mkdir -p "$programs"
        cp "$target/dist/fibula" "$tests" "$programs"
        mv "$programs/$(basename "$tests")" "$programs/tests"
        say "two programs for x86-64 in $programs, which a machine without a network can run"
        [ "$out" != --build ] || return 0
    fi
    names=("${@:2}")
    if [ ${#names[@]} = 0 ]; then
        names=(opencl:0)
        ! have nvidia-smi || names=(cuda:0 opencl:0)
    fi
    mkdir -p "$out"
    SECONDS=0
    {
        date -u
        uname -srm
        sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort | uniq -c
        ! have nvidia-smi || nvidia-smi --format=csv \
            --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,pcie.link.gen.current,pcie.link.width.current
    } >"$out/machine.txt" 2>&1
    # Rates of all kernels on every device.
    for name in "${names[@]}"; do
        step "conformance on $name"
        (cd crates/accel && FIBULA_TEST_DEVICE=$name timeout 150 "../../$programs/tests" --quiet) 2>&1 |
            tee "$out/conformance-${name/:/-}.txt" | tail -n 5 || say "conformance: FAILED, see $out"
        device_rates "all-${name/:/-}" "$v4,$v6" runmap,dir24-8,sail-l,planb,wideleaf,bloomfwd 1048576,8388608 3 \
            --keys 33554432 --traffic RND,PFX
    done
    # On the first one: of the device and the CPU together; SAIL's by batch and slots; Bloomfwd's by batch.
    name=${names[0]}
    device_rates together "$v4,$v6" runmap,wideleaf,bloomfwd 1048576,4194304 3 \
        --keys 67108864 --traffic PFX --with-cpu --threads "$(nproc)"
    for slots in 1 2 3 4 8; do
        device_rates "sail-$slots" "$v4" sail-l 1024,4096,16384,65536,262144,1048576,4194304 "$slots" \
            --keys 8388608 --traffic PFX
    done
    device_rates buffers "$v4,$v6" bloomfwd 65536,262144,1048576,4194304,16777216 2 --keys 33554432 --traffic PFX
    say "records in $out, after $SECONDS seconds"
}

# device_rates FILE TABLES ENGINES BATCHES SLOTS OPTION...: a file of JSON, and the table for people.
device_rates() {
    local file=$1 tables=$2 engines=$3 batches=$4 slots=$5
    shift 5
    if [ "$SECONDS" -gt 400 ]; then
        say "$file: SKIPPED, the time is up" | tee "$out/$file.txt" >&2
        return
    fi
    step "$file"
    timeout 100 "$programs/fibula" bench --device "$name" --table "$tables" --engines "$engines" --batch "$batches" \
        --slots "$slots" --runs 3 --json "$@" >"$out/$file.json" || say "$file: failed, see above"
    python3 - "$out/$file.json" <<'PY' | tee "$out/$file.txt" || true
import json, sys
try:
    rows = json.load(open(sys.argv[1]))
except ValueError:
    sys.exit("no records")
print(f"{'kernel':14}{'traffic':8}{'batch':>9}{'CPU':>9}{'kernel':>10}{'device':>9}{'with CPU':>9}{'shares':>8}{'us/batch':>10}")
for r in rows:
    print(f"{r['kernel']:14}{r['traffic']:8}{r['batch']:9}{r['cpu_mlps']:9.1f}{r['kernel_mlps']:10.1f}{r['device_mlps']:9.1f}"
          f"{r['together_mlps']:9.1f}{r['shares_mlps']:8.1f}{r['batch_us']:10.1f}")
PY
}
