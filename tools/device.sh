# Accelerators: every kernel under a checker, and the measurements of a device.
# shellcheck shell=bash
# shellcheck disable=SC2154 # target is lib.sh's

# Where the OpenCL library of oclgrind lies, which interprets kernels and reports races and accesses out of bounds.
oclgrind=/usr/lib/oclgrind/liboclgrind-rt.so

# kernels_checked: the tests of the contract and those of every kernel on few keys, in the interpreter. The conformance suite
# would take hours there. Kernels are not optimised: oclgrind 21.10 does not know the rotations that its compiler makes.
kernels_checked() {
    local log="$target/oclgrind.log"
    if [ "$(uname)" != Linux ] || ! have apt-get; then
        step "kernels in oclgrind: SKIPPED, it is a package of Debian"
        return
    fi
    [ -e "$oclgrind" ] || packages no-such-command=oclgrind
    step "kernels in oclgrind"
    rm -f "$log"
    OCLGRIND_BUILD_OPTIONS=-cl-opt-disable \
        OPENCL_DYLIB_PATH=$oclgrind OCLGRIND_DATA_RACES=1 OCLGRIND_CHECK_API=1 OCLGRIND_LOG=$PWD/$log \
        FIBULA_TEST_DEVICE=opencl:0 cargo test --workspace --test accel --quiet -- --test-threads=1 contract:: every_kernel::
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
# records are put into FOLDER. FIBULA_DEVICE_SHORT=1 tries the commands out with few keys.
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
        git describe --always --dirty >"$programs/commit" || true
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
        echo "fibula $(cat "$programs/commit" 2>/dev/null || git describe --always --dirty 2>/dev/null)," \
            "./dev device ${*:1}"
        uname -srm
        sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | sort | uniq -c
        ! have nvidia-smi || nvidia-smi --format=csv \
            --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,pcie.link.gen.current,pcie.link.width.current
    } >"$out/machine.txt" 2>&1
    # Not more than a machine's short visit allows; `short` tries the commands out. A device that looks up more than 200
    # million keys a second with copies gets all, a slower one less: only that keeps PoCL within the time.
    local many=33554432 passes=64 runs=3 sets=64,256,1024,4096,16384,65536,262144,1048576 rate
    name=${names[0]}
    device_record probe --table "$v6" --engines wideleaf --batch 1048576 --keys 2097152 --traffic PFX --runs 1
    rate=$(sed -n 's/^ *"device_mlps": \([0-9]*\).*/\1/p' "$out/probe.json" | head -n 1)
    if [ -n "${FIBULA_DEVICE_SHORT:-}" ]; then
        many=2097152 passes=1 runs=1 sets=64,1024,16384,65536
    elif [ "${rate:-200}" -lt 200 ]; then
        while [ "$many" -gt 2097152 ] && [ $((many / 167772)) -gt "$rate" ]; do
            many=$((many / 2)) passes=$(((passes + 1) / 2))
        done
        [ "$rate" -ge 50 ] || passes=1 runs=1
    fi
    say "$many keys, $passes passes, $runs runs: the probe looked up ${rate:-no} million keys a second"
    # The most that memory allows, and rates of all kernels, on every device.
    for name in "${names[@]}"; do
        step "conformance on $name"
        (cd crates/accel && FIBULA_TEST_DEVICE=$name timeout 100 "../../$programs/tests" --quiet \
            --skip host_code_on_a_driver --skip a_fault_goes_to_the_cpu) 2>&1 |
            tee "$out/conformance-${name/:/-}.txt" | tail -n 5 || say "conformance: FAILED, see $out"
        device_record "gather-${name/:/-}" --gather "$sets" --batch 4194304 --runs "$runs"
        device_record "all-${name/:/-}" --table "$v4,$v6" --engines runmap,dir24-8,sail-l,planb,wideleaf,bloomfwd \
            --batch 1048576,8388608 --keys "$many" --traffic RND,PFX --runs "$runs"
    done
    # On the first one: the device and the CPU together; SAIL's figures, by batch and slots; Bloomfwd's, by buffer over
    # 2^30 addresses, by slots and by share, where one core serves the device; and patches.
    name=${names[0]}
    device_record together --table "$v4,$v6" --engines runmap,wideleaf,bloomfwd --batch 1048576 \
        --keys "$many" --traffic PFX --with-cpu --threads "$(nproc)" --runs "$runs"
    device_record sail --table "$v4" --engines sail-l --batch 1024,16384,131072,1048576 --slots 1,2,3,4,8 \
        --keys $((many / 4)) --traffic PFX --runs "$runs"
    device_record buffers --table "$v4" --engines bloomfwd --batch 65536,262144,1048576,4194304,16777216 --slots 2 \
        --keys $((many / 2)) --passes "$passes" --traffic PFX --runs 1
    device_record asynchrony --table "$v4,$v6" --engines bloomfwd --batch 1048576 --slots 1,2,3,4 \
        --keys $((many / 2)) --traffic PFX --runs "$runs"
    device_record split --table "$v4,$v6" --engines bloomfwd --batch 1048576 --shares 0,20,40,60,80,90,100 --slots 2 \
        --keys $((many / 2)) --traffic PFX --threads "$(($(nproc) > 1 ? $(nproc) - 1 : 1))" --runs "$runs"
    device_record patches --table "$v4,$v6" --engines runmap,wideleaf,sail-l,dir24-8 --updates 1,10,100 --runs "$runs"
    step "summary"
    device_summary "$out" "${names[@]/:/-}" | tee "$out/summary.txt"
    say "records in $out, after $SECONDS seconds"
}

# device_record FILE OPTION...: a file of JSON from `fibula bench --device`.
device_record() {
    local file=$1 left=$((460 - SECONDS))
    shift
    if [ "$left" -lt 20 ]; then
        say "$file: SKIPPED, the time is up"
        return
    fi
    step "$file"
    timeout $((left < 120 ? left : 120)) "$programs/fibula" bench --device "$name" --json "$@" \
        >"$out/$file.json" 2>"$out/$file.err" || say "$file: FAILED ($?), see $out/$file.err"
}

# device_summary FOLDER DEVICE...: the records in a screen.
device_summary() {
    python3 - "$@" <<'PY' || true
import json, sys
def rows(name):
    try:
        return json.load(open(f"{sys.argv[1]}/{name}.json"))["rows"]
    except (OSError, ValueError):
        print(f"{name}: no records")
        return []
def line(title, cells):
    cells = list(cells)
    if cells:
        print(f"{title:26}" + "  ".join(cells))
def size(n):
    return f"{n >> 30}G" if n >> 30 else f"{n >> 20}M" if n >> 20 else f"{n >> 10}K"
print(*(" ".join(text.split()) for text in open(f"{sys.argv[1]}/machine.txt") if text.strip()), sep="\n")
for device in sys.argv[2:]:
    print(open(f"{sys.argv[1]}/gather-{device}.err").readline().strip())
    print(f"{device}; Mlps by kernels / with copies / keys on the device, the larger batch")
    line("random reads, M/s", (f"{size(r['bytes'])} {r['mreads_per_s']:.0f}" for r in rows(f"gather-{device}")))
    every = [r for r in rows(f"all-{device}") if r["batch"] > 1 << 20]
    for traffic in ("RND", "PFX"):
        line(f"  {traffic}", (f"{r['kernel']} {r['kernel_mlps']:.0f}/{r['device_mlps']:.0f}/{r['resident_mlps']:.0f}"
                             for r in every if r["traffic"] == traffic))
line("CPU/device/both/by shares", (f"{r['kernel']} {r['cpu_mlps']:.0f}/{r['device_mlps']:.0f}/{r['together_mlps']:.0f}/{r['shares_mlps']:.0f}"
                           for r in rows("together")))
sail = rows("sail")
for slots in sorted({r["slots"] for r in sail}):
    line(f"SAIL_L, {slots} slots, Mlps(us)", (f"{size(r['batch'])} {r['device_mlps']:.0f}({r['batch_us']:.0f})" for r in sail if r["slots"] == slots))
line("bloomfwd by buffer, Mlps", (f"{size(r['batch'])} {r['device_mlps']:.0f}" for r in rows("buffers")))
line("bloomfwd by slots, Mlps", (f"{r['family']} {r['slots']}: {r['device_mlps']:.0f}" for r in rows("asynchrony")))
for r in rows("split"):
    line(f"  split, {r['family']}, Mlps", (f"{s['percent']}% {s['mlps']:.0f}" for s in r["split"]))
for r in rows("patches"):
    line(f"patch {r['burst']}, {r['kernel']}", [f"{r['sent']} bytes, {r['pieces']} pieces, {r['upload_us']:.0f} us; whole {r['whole_us']:.0f} us"])
PY
}
